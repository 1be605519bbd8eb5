"""What of a request is the beginning of the one before it."""

from __future__ import annotations

import dataclasses

from backscroll.compaction.plan import Plan, PlanInput, plan
from backscroll.compaction.prefix import SentView, compare, sent_view
from backscroll.compaction.store import Cache
from backscroll.compaction.view import Layout
from backscroll.kernel.message import Message
from backscroll.kernel.request import ChatRequest
from backscroll.kernel.tool import ToolSpec
from compaction.histories import u
from compaction.planning import given, talk


def sent(history: list[Message], system: str = "Be brief.") -> tuple[SentView, Plan]:
    """Return what a call over a history sends."""
    planned = plan(given(history))
    found = sent_view(planned, ChatRequest(planned.view, (system,)))
    assert found is not None
    return found, planned


def difference(before: SentView, now: SentView, planned: Plan) -> tuple[object, object]:
    """Return how many messages are equal, and what broke the equality."""
    assert planned.reading is not None
    found = compare(before, now, planned.reading.hashes)
    assert found is not None
    return found["messages"], found["broke"]


def test_a_history_that_grew_extends_the_former_request() -> None:
    """The system text counts as one message; nothing broke."""
    before, _ = sent(talk(2))
    now, planned = sent(talk(3))
    assert difference(before, now, planned) == (9, None)
    assert compare(before, now, planned.reading.hashes)["tokens"] == sum(now.tokens[:8])  # type: ignore[union-attr, index]


def test_without_a_former_call_nothing_is_said() -> None:
    """Null after a restart."""
    now, planned = sent(talk(2))
    assert planned.reading is not None
    assert compare(None, now, planned.reading.hashes) is None


def test_another_system_text_or_tool_breaks_it_at_once() -> None:
    """They stand in front of everything."""
    before, _ = sent(talk(2))
    now, planned = sent(talk(3), "Be long.")
    assert difference(before, now, planned) == (0, "system")
    tool = ToolSpec("read", "Read.", {})
    more = sent_view(planned, ChatRequest(planned.view, ("Be brief.",), (tool,)))
    assert more is not None
    assert difference(before, more, planned) == (9, "tools")


def test_an_edited_history_is_told_from_a_mark_that_moved() -> None:
    """The hashes of the history say which it was."""
    history = talk(3)
    before, _ = sent(history)
    now, planned = sent([*history[:4], u(99, "edited"), *history[5:]])
    assert difference(before, now, planned) == (5, "edit")
    shorter, planned = sent(history[:4])
    assert difference(before, shorter, planned) == (5, "edit")


def test_each_mark_is_named() -> None:
    """Summary before drop before micro; what is left is caps."""
    now, planned = sent(talk(3))
    changed = ("x" * 64, *now.digests[1:])
    for layout, name in [
        (Layout(Cache(1, "a", "s"), 0, 0), "summary"),
        (Layout(None, 0, 4), "drop"),
        (Layout(None, 4, 0), "micro"),
        (now.layout, "caps"),
    ]:
        before = dataclasses.replace(now, digests=changed, layout=layout)
        assert difference(before, now, planned) == (1, name)


def test_a_plan_that_failed_is_compared_with_nothing() -> None:
    """It has no view of its own making."""
    broken = PlanInput((object(),), given([]).asked, given([]).means)  # type: ignore[arg-type]  # a bug
    planned = plan(broken)
    assert sent_view(planned, ChatRequest(())) is None
