"""A pause survives being JSON."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

import pytest
from agent.pause_store_contract import full_pause
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import ResumeRefused
from backscroll.kernel.pause_codec import (
    json_context,
    pause_from_json,
    pause_to_json,
    read_pause,
    write_pause,
)
from backscroll.kernel.turn import Pause
from hypothesis import given
from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=8,
)  # fmt: skip


def test_round_trip() -> None:
    """PS3: every field comes back as it was, CJK text and edited arguments included."""
    pause = full_pause()

    assert read_pause(write_pause(pause)) == pause
    assert pause_to_json(pause)["version"] == 1


def test_parts_come_back() -> None:
    """Results may hold parts."""
    parts = (TextPart("x"), FilePart("image/png", data="AA=="))
    pause = full_pause()
    record = dataclasses.replace(pause.records[0], content=parts)

    assert read_pause(write_pause(pause.replace(records=(record,)))).records[0].content == parts


@given(st.dictionaries(st.text("abc"), JSON))
def test_contexts_come_back(context: dict[str, Any]) -> None:
    """PS3: a context of JSON values comes back equal, with nothing left out."""
    kept, left_out = json_context(context)
    pause = Pause("p", "t", (), 0.0, context=kept)

    assert left_out == ()
    assert kept == context
    assert read_pause(write_pause(pause)) == pause


def test_what_is_no_json_is_left_out() -> None:
    """PS4: a socket, a NaN and a circle are left out and named, the rest stays."""
    circle: list[Any] = []
    circle.append(circle)
    with socket.socket() as open_socket:
        values = {"a": (1, 2), "s": open_socket, "n": float("nan"), "c": circle, "o": {"x": {1}}}

        kept, left_out = json_context(values)

    assert (kept, left_out) == ({"a": [1, 2]}, ("s", "n", "c", "o"))


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {},
        {"version": 2},
        {"version": 1},
        {**pause_to_json(full_pause()), "calls": 7},
        {**pause_to_json(full_pause()), "records": [{"call_id": "x"}]},
    ],
)
def test_unreadable_values(value: Any) -> None:
    """What is no pause of this version raises `pause_unreadable`; it is never "not paused"."""
    with pytest.raises(ResumeRefused) as caught:
        pause_from_json(value)

    assert caught.value.code == "pause_unreadable"


def test_unreadable_text() -> None:
    """Neither does broken JSON count as not paused."""
    with pytest.raises(ResumeRefused, match="the stored pause is not JSON"):
        read_pause(b"{")
