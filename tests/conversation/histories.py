"""Histories for tests: short ways to write them, random ones, and what providers demand of them."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.kernel.message import Message, Role, ToolCall, assistant, tool_result, user
from hypothesis import strategies as st

NAMES = st.sampled_from(["c1", "c2", "c3"])


def u(n: int) -> Message:
    """Return the n-th user message."""
    return user(f"question {n}", f"u{n}")


def a(n: int, *calls: str) -> Message:
    """Return the n-th assistant message, with calls or with text."""
    wanted = [ToolCall(call_id, "look", {"of": call_id}) for call_id in calls]
    return assistant(None if calls else f"answer {n}", wanted, f"a{n}")


def t(call_id: str, id: str = "") -> Message:
    """Return the result of a call."""
    return tool_result(call_id, "look", f"saw {call_id}", id=id or f"t-{call_id}")


@st.composite
def random_histories(draw: st.DrawFn) -> list[Message]:
    """Draw a list of messages in which anything may be missing, doubled or in the wrong place."""
    kinds = draw(st.lists(st.sampled_from(["user", "text", "calls", "result"]), max_size=14))
    out: list[Message] = []
    for n, kind in enumerate(kinds):
        if kind == "user":
            out.append(u(n))
        elif kind == "text":
            out.append(a(n))
        elif kind == "calls":
            out.append(a(n, *draw(st.lists(NAMES, min_size=1, max_size=3))))
        else:
            out.append(t(draw(NAMES), f"t{n}"))
    return out


def faults(messages: Sequence[Message]) -> list[str]:
    """Return what a strict provider would refuse: calls and results that do not fit together."""
    found: list[str] = []
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if message.role is Role.TOOL:
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id or "")
            else:
                found.append(f"messages[{at}] answers no call before it")
            continue
        found += [f"messages[{at}] stands before the result of {call}" for call in waiting]
        waiting = [call.id for call in message.tool_calls]
        found += [f"messages[{at}] repeats {call}" for call in waiting if call in seen]
        found += [f"messages[{at}] repeats {c}" for c in set(waiting) if waiting.count(c) > 1]
        seen.update(waiting)
    return found + [f"{call} has no result" for call in waiting]
