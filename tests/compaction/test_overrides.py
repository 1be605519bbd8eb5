"""What an operator set for one conversation."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.overrides import (
    InMemoryOverrideStore,
    changed,
    is_enabled,
    settings_under,
)
from backscroll.compaction.settings import Settings
from backscroll.kernel.errors import AssemblyError


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"trigger_ratio": 1.5}, "trigger_ratio"),
        ({"trigger_ratio": 0.4}, "micro_ratio"),
        ({"keep_tool_groups": -1}, "keep_tool_groups"),
        ({"keep_tool_groups": 2.5}, "keep_tool_groups"),
        ({"facts_ratio": "much"}, "facts_ratio"),
        ({"facts_ratio": True}, "facts_ratio"),
        ({"enabled": 1}, "enabled"),
        ({"window": 4_000}, "window"),
    ],
)
def test_what_the_constructor_refuses_is_refused(changes: dict[str, Any], where: str) -> None:
    """The setting is named, and so is what was expected of it."""
    with pytest.raises(AssemblyError, match="expected") as error:
        changed(Settings(), {}, changes)

    assert (error.value.kind, error.value.where) == ("invalid_option", where)


def test_changes_are_added_and_none_takes_one_back() -> None:
    """What is not named stays as it was."""
    known = changed(Settings(), {}, {"enabled": False, "trigger_ratio": 0.9})

    assert changed(Settings(), known, {"trigger_ratio": None}) == {"enabled": False}
    assert changed(Settings(), known, {}) == known


def test_settings_hold_under_what_was_set() -> None:
    """The numbers replace those of the agent; the switch is no number."""
    settings = Settings()

    assert settings_under(settings, {"enabled": False}) is settings
    assert settings_under(settings, {"trigger_ratio": 0.9}).trigger_ratio == 0.9
    assert settings_under(Settings(micro_ratio=0.8), {"trigger_ratio": 0.75}).trigger_ratio == 0.85
    assert is_enabled(True, {}) and not is_enabled(True, {"enabled": False})
    assert is_enabled(False, {"enabled": True})


async def test_the_process_keeps_what_was_set_last() -> None:
    """A conversation that was left alone has nothing set; the oldest one is forgotten."""
    store = InMemoryOverrideStore(limit=2)
    for name in "abc":
        await store.override(name, {"facts_ratio": 0.1})

    assert await store.overrides("a") == {}
    assert await store.overrides("c") == {"facts_ratio": 0.1}
