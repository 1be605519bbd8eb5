"""The last look at a view before it is sent: what providers and readers rely on."""

from __future__ import annotations

from bisect import bisect_right

from backscroll.compaction.reading import Reading
from backscroll.compaction.stored_summary import is_stored_summary
from backscroll.compaction.view import View
from backscroll.kernel.message import Message, Role


def violation(reading: Reading, view: View) -> str | None:
    """Return what is wrong with a view, None if nothing is; a finding is a bug of ours."""
    indexes = [item.index for item in view.items if item.index is not None]
    if indexes != sorted(set(indexes)):
        return "messages are out of order or sent twice"
    sent = set(indexes)
    for index in reading.kept:
        if index not in sent:
            return f"message {index} must be kept and is missing"
    for at in {bisect_right(reading.starts, index) - 1 for index in indexes}:
        group = reading.groups[at]
        if group.end - group.start == 1:
            continue
        inside = [
            i for i in range(group.start, group.end) if reading.history[i].role is not Role.SYSTEM
        ]
        if 0 < sum(i in sent for i in inside) < len(inside):
            return f"the group at {group.start} was split"
    return _edited(reading, view)


def _edited(reading: Reading, view: View) -> str | None:
    for item in view.items:
        if item.index is None:
            continue
        original = reading.history[item.index]
        if item.message is original:
            continue
        if _bones(item.message) != _bones(original):
            return f"message {item.index} lost its role, name or call ids"
        if item.index in reading.newest_users and item.fate != "truncated":
            if item.message.for_model() != original.for_model():
                return f"the newest user message at {item.index} was changed"
        if original.blocks is not None and item.message != original:
            return f"message {item.index} has blocks and was changed"
    return None


def _bones(message: Message) -> tuple[object, ...]:
    """Return what no shortening may touch."""
    calls = tuple((call.id, call.name) for call in message.tool_calls)
    role = Role.USER if is_stored_summary(message) else message.role
    return role, message.tool_call_id, message.name, message.id, calls
