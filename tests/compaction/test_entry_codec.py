"""Entries as values and bytes: round trips, and what cannot be read."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from backscroll.compaction.entry_codec import (
    entry_from_dict,
    entry_to_dict,
    fact_from_dict,
    fact_to_dict,
    pack_entry,
    unpack_entry,
)
from backscroll.compaction.store import EMPTY, ModelFact
from compaction.compaction_store_contract import PLAIN, WHOLE


@pytest.mark.parametrize("entry", [EMPTY, PLAIN, WHOLE])
def test_an_entry_comes_back(entry: Any) -> None:
    """CS1, STO1: as values and as bytes; the generation is the store's."""
    assert entry_from_dict(entry_to_dict(entry.replace(generation=7))) == entry
    assert unpack_entry(pack_entry(entry)) == entry


def test_a_value_of_the_seed_shape_is_read() -> None:
    """STO2: cache and failures alone are a whole entry."""
    value = {"cache": {"prefix_n": 3, "prefix_hash": "aa", "summary": "s"}, "failures": 1}
    entry = entry_from_dict(value)
    assert entry.cache is not None and entry.cache.prefix_n == 3
    assert entry.failures == 1


def test_unknown_fields_do_no_harm() -> None:
    """STO1: a field of another version is passed over."""
    value = {**entry_to_dict(WHOLE), "mood": "fine"}
    assert entry_from_dict(value) == WHOLE


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {"v": 99},
        {"cache": 1},
        {"cache": {"prefix_n": -1, "prefix_hash": "a", "summary": "s"}},
        {"cache": {"prefix_n": True, "prefix_hash": "a", "summary": "s"}},
        {"cache": {"prefix_n": 1, "prefix_hash": None, "summary": "s"}},
        {"cache": {"prefix_n": 1}},
        {"failures": "many"},
        {"marks": [1, 2]},
        {"marks": [1, 2, 3, 4]},
    ],
)
def test_a_corrupt_value_is_the_empty_entry(value: Any) -> None:
    """CS1, STO1: nothing is guessed from what cannot be read."""
    assert entry_from_dict(value) == EMPTY


def test_bytes_that_are_no_entry_are_the_empty_entry() -> None:
    """CS1: nothing stored, noise, and other values."""
    for data in (None, b"\xc1", b"", msgpack.packb([1, 2])):
        assert unpack_entry(data) == EMPTY


def test_what_is_known_of_a_model_comes_back() -> None:
    """All five fields; absent ones are defaults; noise is nothing learned."""
    fact = ModelFact(1.25, 9, 32_768, 1_764_465_600.5, 131_072)
    assert fact_from_dict(fact_to_dict(fact)) == fact
    assert fact_from_dict({}) == ModelFact()
    assert fact_from_dict(None) == ModelFact()
    assert fact_from_dict({"r": "x"}) == ModelFact()
