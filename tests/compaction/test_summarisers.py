"""Which summariser a call has."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.summarise import ModelSummariser
from backscroll.compaction.summarisers import Summarisers
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ModelProfile

TEXTS = CompactionTexts()


class Model:
    """A model that is only named."""

    name, provider = "m", "p"

    def __init__(self, window: int = 8_000) -> None:
        self.profile = ModelProfile(context_window=window)

    async def generate(self, request: Any) -> Any:
        """Never called."""

    closed = False

    async def aclose(self) -> None:
        """Note it."""
        self.closed = True


def test_own_is_the_model_of_the_call() -> None:
    """The same object for the same model, another for another."""
    one, two = Model(), Model()
    summarisers = Summarisers("own", TEXTS)
    first = summarisers.of(one)
    assert isinstance(first, ModelSummariser) and first.model is one
    assert summarisers.of(one) is first
    assert summarisers.of(two) is not first


def test_another_model_or_summariser_serves_all_calls() -> None:
    """Or none does."""
    small, extractive = Model(4_000), ExtractiveSummariser()
    found = Summarisers(small, TEXTS).of(Model())
    assert isinstance(found, ModelSummariser) and found.model is small
    assert Summarisers(extractive, TEXTS).of(Model()) is extractive
    assert Summarisers(None, TEXTS).of(Model()) is None


def test_a_learned_limit_counts_for_the_own_model_only() -> None:
    """Another model has a window of its own; an extractive one has none."""
    own = Summarisers("own", TEXTS)
    assert own.window(own.of(Model()), 3_000) == 3_000
    assert own.window(own.of(Model()), None) == 8_000
    other = Summarisers(Model(4_000), TEXTS)
    assert other.window(other.of(Model()), 3_000) == 4_000
    assert other.window(ExtractiveSummariser(), 3_000) is None
    assert other.window(None, 3_000) is None


@pytest.mark.parametrize("given", ["model", 7, object()])
def test_anything_else_is_refused(given: Any) -> None:
    """BUD3: at assembly, naming the setting."""
    with pytest.raises(AssemblyError) as caught:
        Summarisers(given, TEXTS)
    assert (caught.value.kind, caught.value.where) == ("invalid_option", "summariser")


async def test_only_a_model_that_summarises_alone_is_closed() -> None:
    """The model of the call belongs to its agent."""
    small, own = Model(), Model()
    await Summarisers(small, TEXTS).aclose()
    shared = Summarisers("own", TEXTS)
    shared.of(own)
    await shared.aclose()
    assert (small.closed, own.closed) == (True, False)
