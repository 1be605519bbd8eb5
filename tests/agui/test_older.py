"""Events as clients before 1.0 accept them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui import core as ag
from backscroll.agui.messages import echo
from backscroll.agui.older import older_json
from backscroll.agui.snapshot import messages_snapshot
from backscroll.agui.wire import event_json
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import tool_result, user

PARTS = (TextPart("See:"), FilePart("image/png", data="A" * 24_000), TextPart("there"))


def older(event: ag.BaseEvent) -> dict[str, Any]:
    """Return an event as an older peer gets it."""
    value: dict[str, Any] = json.loads(older_json(event_json(event, 7)))
    return value


def finished(outcome: Any, **members: Any) -> ag.RunFinishedEvent:
    """Return the end of a run."""
    return ag.RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome, **members)


def test_success_has_no_outcome() -> None:
    """With or without pending calls; the result and usage stay."""
    usage = [ag.TokenUsage(input_tokens=1)]
    event = older(finished(ag.RunFinishedSuccessOutcome(pending_tool_call_ids=["c"]), usage=usage))

    assert "outcome" not in event and "result" not in event and event["usage"]


def test_cancelled_is_told_by_the_result() -> None:
    """No failure banner, and still tellable apart."""
    event = older(finished(ag.RunFinishedCancelledOutcome()))

    assert "outcome" not in event and event["result"] == {"status": "cancelled"}


def test_interrupts_stay() -> None:
    """Older clients know them."""
    interrupt = ag.Interrupt(id="c", reason="tool_call")
    event = older(finished(ag.RunFinishedInterruptOutcome(interrupts=[interrupt])))

    assert event["outcome"]["type"] == "interrupt"


def test_parts_of_results_become_text() -> None:
    """In events and in snapshots."""
    result = tool_result("c", "look", PARTS, id="t1")
    event = ag.ToolCallResultEvent(
        message_id="t1", tool_call_id="c", content=[ag.TextPart(text="a"), ag.TextPart(text="b")]
    )
    snapshot = messages_snapshot([user("q", "u"), result])

    assert older(event)["content"] == "a\nb" and snapshot is not None
    assert older(snapshot)["messages"][1]["content"] == "See:\n[image, image/png, 18 kB]\nthere"


def test_handles_of_files_become_a_line() -> None:
    """In echoes and snapshots; other parts stay as they are."""
    handle = FilePart("application/pdf", handle="f1", provider="openai")
    question = user((*PARTS, handle), "u")
    started = ag.RunStartedEvent(thread_id="t", run_id="r", input=echo("t", "r", [question]))

    parts = older(started)["input"]["messages"][0]["content"]

    assert [part["type"] for part in parts] == ["text", "image", "text", "text"]
    assert parts[3]["text"] == "[file, application/pdf]"


@pytest.mark.parametrize(
    "event",
    [
        ag.TextMessageContentEvent(message_id="m", delta='"content":['),
        ag.ToolCallResultEvent(message_id="t1", tool_call_id="c", content="text"),
        ag.RunStartedEvent(thread_id="t", run_id="r"),
        ag.RunErrorEvent(message="Gone.", code="network"),
    ],
)
def test_all_others_are_the_same(event: ag.BaseEvent) -> None:
    """Not a byte changes."""
    text = event_json(event, 7)

    assert older_json(text) is text
