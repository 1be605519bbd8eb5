"""What a safeguard refuses is taken out of a plan; a refused last question is asked, not kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from backscroll.agui.plan import Plan
from backscroll.agui.screened import screened
from backscroll.kernel.message import Message, assistant, tool_result, user

RESULT = tool_result("c", "pick", "bad", id="t")
OLD = (user("bad", "u1"), assistant("sorry", id="a1"))


def guard(messages: Sequence[Message]) -> str | None:
    """Refuse what is bad."""
    return "no" if any("bad" in message.text for message in messages) else None


def plan_of(*store: Message) -> Plan:
    """Return a plan that stores and echoes messages."""
    return Plan("run", store=store, echo=store)


def test_good_questions_change_nothing() -> None:
    """A plan without refused questions is the same plan; results and old words do not count."""
    for plan in (plan_of(user("hi", "u1")), plan_of(RESULT), plan_of(*OLD, user("hi", "u2"))):
        assert screened(plan, guard) is plan


@pytest.mark.parametrize(
    ("texts", "kept", "refused"),
    [
        (["bad"], [], ["u0"]),
        (["bad", "good"], ["u1"], []),
        (["good", "bad"], ["u0"], ["u1"]),
        (["bad", "bad"], [], ["u1"]),
    ],
)
def test_refused_questions(texts: list[str], kept: list[str], refused: list[str]) -> None:
    """SG1, SG2: neither stored nor echoed; the last one, if refused, is what the turn is asked."""
    asked = [user(text, f"u{n}") for n, text in enumerate(texts)]

    plan = screened(plan_of(RESULT, *asked), guard)

    assert [m.id for m in plan.store] == [m.id for m in plan.echo] == ["t", *kept]
    assert [m.id for m in plan.refused] == refused
