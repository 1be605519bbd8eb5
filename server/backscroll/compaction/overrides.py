"""What an operator set for one conversation: compaction on or off, and three of its numbers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

from backscroll.compaction.settings import Settings
from backscroll.compaction.store import LRU
from backscroll.kernel.errors import AssemblyError

NUMBERS = ("trigger_ratio", "keep_tool_groups", "facts_ratio")
OVERRIDABLE = ("enabled", *NUMBERS)


class OverrideStore(Protocol):
    """Keeps what was set for a conversation, by the names in OVERRIDABLE."""

    async def overrides(self, conversation_id: str) -> Mapping[str, Any]:
        """Return what was set; nothing for a conversation that was left alone."""
        ...

    async def override(self, conversation_id: str, overrides: Mapping[str, Any]) -> None:
        """Replace what was set."""
        ...


class InMemoryOverrideStore:
    """What was set, in the process; the least recently set conversations are forgotten."""

    def __init__(self, limit: int = LRU) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    async def overrides(self, conversation_id: str) -> Mapping[str, Any]:
        """Return what was set."""
        return self._kept.get(conversation_id, {})

    async def override(self, conversation_id: str, overrides: Mapping[str, Any]) -> None:
        """Replace what was set."""
        self._kept[conversation_id] = dict(overrides)
        self._kept.move_to_end(conversation_id)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)


def changed(
    settings: Settings, known: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what holds after a change; None takes a value back to that of the agent.

    Raises `invalid_option`, naming the setting, for what the constructor would refuse.
    """
    for name, value in changes.items():
        if name not in OVERRIDABLE:
            expected = ", ".join(OVERRIDABLE)
            raise AssemblyError("invalid_option", f"{name}: expected one of {expected}", name)
        _check_type(name, value)
    merged = {**known, **changes}
    found = {name: value for name, value in merged.items() if value is not None}
    settings.replace(**_numbers(found))
    return found


def settings_under(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """Return an agent's settings as they hold for a conversation.

    Numbers that no longer go together with those of the agent are left out, all of them.
    """
    numbers = _numbers(overrides)
    if not numbers:
        return settings
    try:
        return settings.replace(**numbers)
    except (AssemblyError, TypeError):
        return settings


def is_enabled(enabled: bool, overrides: Mapping[str, Any]) -> bool:
    """Say whether compaction is on: as it was set for the conversation, else as the agent says."""
    return bool(overrides.get("enabled", enabled))


def _numbers(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name: overrides[name] for name in NUMBERS if name in overrides}


def _check_type(name: str, value: Any) -> None:
    if value is None or (name == "enabled" and isinstance(value, bool)):
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "keep_tool_groups":
        is_number = is_number and isinstance(value, int)
    if name == "enabled" or not is_number:
        kind = {"enabled": "true or false", "keep_tool_groups": "a whole number"}
        expected = kind.get(name, "a number")
        raise AssemblyError("invalid_option", f"{name}: expected {expected}, got {value!r}", name)
