"""Stored histories and clients' lists by short names, and what reconciliation makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from agui_stories import CountedIds
from backscroll.agui.input import RunInput
from backscroll.agui.options import AgentRules
from backscroll.agui.plan import Plan, Stored
from backscroll.agui.reconcile import reconcile
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.message import Message, Role, assistant, tool_call, tool_result, user
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec

RULES = AgentRules("a", tool_names=frozenset({"add"}))
PICK = (ToolSpec("pick", "", {}), ToolSpec("confirm", "", {}))


def calls(name: str, *ids: str, tool: str = "pick") -> Message:
    """Return an assistant message with calls."""
    return assistant(None, [tool_call(call_id, tool) for call_id in ids], id=name)


def result(name: str, call_id: str, text: str = "done", tool: str = "pick") -> Message:
    """Return a stored result."""
    return tool_result(call_id, tool, text, id=name)


def sent_result(name: str, call_id: str, text: str = "done") -> Message:
    """Return a result as a client sends it, without the tool's name."""
    return Message(Role.TOOL, text, name, tool_call_id=call_id, outcome="ok")


def messages(names: str) -> list[Message]:
    """Return messages by their names: u1 is a user message, a1 an assistant message."""
    return [user(n, n) if n[0] == "u" else assistant(n, id=n) for n in names.split()]


def planned(stored: Sequence[Message] | None, sent: Sequence[Message], **request: Any) -> Plan:
    """Return the plan for a list; None is a thread nobody knows."""
    facts = Stored(tuple(stored or ()), stored is not None)
    asked = RunInput("t", "r", tuple(sent), **request)
    return reconcile(asked, facts, CountedIds(), Texts(), RULES)


def refused(stored: Sequence[Message] | None, sent: Sequence[Message], **request: Any) -> str:
    """Return the code with which a list is refused."""
    with pytest.raises(RequestRefused) as caught:
        planned(stored, sent, **request)
    assert caught.value.details["threadId"] == "t" and caught.value.details["runId"] == "r"
    return caught.value.code


def ids(found: Sequence[Message]) -> list[str | None]:
    """Return the ids of messages."""
    return [message.id for message in found]
