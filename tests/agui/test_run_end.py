"""How a run ends: which of the four ends it is, and what an end user is told."""

from __future__ import annotations

import pytest
from backscroll.agui.run_end import CANCELLED, end_of, failed, failed_with
from backscroll.kernel.errors import (
    BackscrollError,
    FilterError,
    MaxIterationsExceeded,
    ModelError,
)
from backscroll.kernel.turn import Pause, PauseItem, TurnResult


def test_a_completed_turn_completes_the_run() -> None:
    """The text of an ordinary answer is not repeated as a result."""
    end = end_of(TurnResult("completed", text="hello"))

    assert (end.status, end.result, end.pending) == ("completed", None, ())


def test_a_direct_answer_is_the_result() -> None:
    """A return-direct tool's text, and structured output, are the run's result."""
    assert end_of(TurnResult("completed", text="A", return_direct=True)).result == "A"
    assert end_of(TurnResult("completed", output={"a": 1})).result == {"a": 1}


def test_a_stopped_run_ends_cancelled_whatever_failed() -> None:
    """A run that was asked to stop never ends as failed."""
    error = TurnResult("error", error=ModelError("network", "gone"))

    assert end_of(error, is_stopped=True) == CANCELLED
    assert end_of(TurnResult("cancelled")) == CANCELLED


def test_a_pause_leaves_calls_pending() -> None:
    """Calls of frontend tools are named; questions are not among them."""
    items = tuple(
        PauseItem(name, kind, "pick", {}, "", ())  # type: ignore[arg-type]
        for name, kind in (("c1", "client"), ("c2", "approval"))
    )

    end = end_of(TurnResult("paused", pause=Pause("p", "t", items, "", 0.0)))

    assert (end.status, end.pending) == ("completed", ("c1",))


def test_a_blocked_run_is_marked() -> None:
    """A refusal that is not stored is no part of the history."""
    blocked = TurnResult("completed", text="No.", blocked_by="safeguard")

    assert end_of(blocked).is_blocked
    assert not end_of(blocked.replace(store=True)).is_blocked


def test_providers_words_reach_no_end_user() -> None:
    """A model error has our own sentence; whether to retry is kept."""
    end = failed(ModelError("rate_limit", "key sk-123 exceeded"), "req_1")

    assert (end.code, end.message) == ("rate_limit", "The model is busy right now.")
    assert end.is_retryable and end.request_id == "req_1"


def test_errors_of_filters_and_limits_speak_for_themselves() -> None:
    """Their messages are written for people."""
    assert failed(FilterError("f", "retrieval_failed", "No index.")).message == "No index."
    assert failed(MaxIterationsExceeded(3, "Stopped.")).code == "max_iterations_exceeded"


@pytest.mark.parametrize("error", [BackscrollError("secret"), TurnResult("error")])
def test_anything_else_is_internal(error: BackscrollError | TurnResult) -> None:
    """An error nobody named says nothing of itself."""
    end = end_of(error) if isinstance(error, TurnResult) else failed(error)

    assert end.code == "internal_error" and "secret" not in end.message


def test_the_server_ends_runs_too() -> None:
    """Time limit, lost worker and restart have their codes, and may be tried again."""
    for code in ("run_timeout", "worker_lost", "restarting"):
        end = failed_with(code)
        assert (end.status, end.code, end.is_retryable) == ("failed", code, True)
