"""A turn's values: answers made by filters, and results that can raise."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.errors import StoreError
from backscroll.kernel.message import user
from backscroll.kernel.request import Note
from backscroll.kernel.turn import Continue, IterationRequest, TurnRequest, TurnResult


def test_a_filter_can_answer_itself() -> None:
    """An answer is completed, names who gave it, and keeps the context."""
    request = TurnRequest((user("x"),), {"budget": 0})

    result = request.answer("No.", blocked_by="quota", store=True)

    assert (result.status, result.text, result.blocked_by) == ("completed", "No.", "quota")
    assert result.store and result.context == {"budget": 0}
    assert IterationRequest(()).answer("x").text == "x"


def test_results_raise_their_error() -> None:
    """An error result raises, any other is returned."""
    fine = TurnResult("completed")

    assert fine.raise_for_status() is fine
    with pytest.raises(StoreError):
        TurnResult("error", error=StoreError("gone")).raise_for_status()


def test_changing_makes_a_copy() -> None:
    """Each value has a copy with changes."""
    assert TurnRequest(None).replace(is_resume=True).is_resume
    assert IterationRequest(()).replace(index=2).index == 2
    assert Continue(()).replace(notes=("n",)).notes == ("n",)
    assert TurnResult("completed").replace(text="t").text == "t"


async def test_reports_without_an_observer_go_nowhere() -> None:
    """Turn and iteration requests report like the others."""

    class Listener:
        def __init__(self) -> None:
            self.got: list[Any] = []

        async def report(self, report: Any) -> None:
            self.got.append(report)

    listener: Any = Listener()
    await TurnRequest(None).report(Note("k", "t"))
    await TurnRequest(None, observer=listener).report(Note("k", "a"))
    await IterationRequest((), observer=listener).report(Note("k", "b"))
    await IterationRequest(()).report(Note("k", "t"))
    assert [note.text for note in listener.got] == ["a", "b"]
