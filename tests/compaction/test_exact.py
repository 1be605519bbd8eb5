"""Exact counts, with the extra and without it."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from backscroll.compaction.exact import ExactCounter, exact_counter
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.model import ModelProfile

SAMPLES = json.loads(
    (Path(__file__).parent.parent / "data" / "token-samples.json").read_text("utf-8")
)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Forget counters made by other tests."""
    exact_counter.cache_clear()
    yield
    exact_counter.cache_clear()


class Tokenizer:
    """What the library offers, counting characters."""

    def count(self, text: str) -> int:
        """Return the length; like the library, refuses what is not valid text."""
        return len(text.encode("utf-8").decode())


def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for the library where it is imported from."""
    names = {"o200k_base": Tokenizer, "cl100k_base": Tokenizer}
    module = types.ModuleType("rs_bpe.bpe")
    vars(module)["openai"] = types.SimpleNamespace(**names)
    monkeypatch.setitem(sys.modules, "rs_bpe", types.ModuleType("rs_bpe"))
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", module)


def test_is_used_when_the_profile_names_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """TOK5: with the extra, a model of a known vocabulary is counted with it."""
    library(monkeypatch)

    sizes = Sizes().under(ModelProfile(vocabulary="o200k"))

    assert (sizes.counter.name, sizes.text("hello")) == ("o200k", 5)
    assert Sizes().under(ModelProfile(vocabulary="other")).counter.name == "pieces"


def test_counts_text_with_a_lone_surrogate() -> None:
    """Text that is not valid Unicode is counted all the same."""
    assert ExactCounter("o200k", Tokenizer()).count("a\ud800b") == 3


def test_without_the_extra_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the counter is missing, which is no error."""
    monkeypatch.setitem(sys.modules, "rs_bpe", None)
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)

    assert exact_counter("o200k") is None
    assert exact_counter(None) is None


def test_nothing_imports_the_library() -> None:
    """TOK5: loading the package and counting by pieces does not load the library."""
    code = (
        "import sys; from backscroll.compaction.tokens import Sizes; Sizes().text('a');"
        "sys.exit('rs_bpe' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=15).returncode == 0


@pytest.mark.needs("tokens")
def test_real_counts_are_exact() -> None:
    """TOK5: with the extra installed the counts are those of the vocabulary."""
    counter = exact_counter("o200k")

    assert counter is not None
    assert [counter.count(s["text"]) for s in SAMPLES] == [s["o200k"] for s in SAMPLES]
