"""Numbers a developer may set, and the sizes that follow from a budget."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.settings import Settings, limits
from backscroll.kernel.errors import AssemblyError


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("trigger_ratio", 0.0, {}),
        ("trigger_ratio", 1.1, {}),
        ("micro_ratio", 0.9, {}),
        ("micro_ratio", -0.1, {}),
        ("drop_to", 0.85, {}),
        ("facts_ratio", 2.0, {}),
        ("trigger_ratio", "0.8", {}),
        ("tool_cap", [], {}),
        ("ring", None, {}),
        ("window", 0, {}),
        ("window", -5, {}),
        ("unknown_window", 0, {}),
        ("reserve_output", 0, {}),
        ("reserve_output", 8_000, {"window": 8_000}),
        ("keep_tool_groups", -1, {}),
        ("tool_cap", 0, {}),
        ("summary_timeout", -1.0, {}),
        ("media_tokens", {"image/*": -1}, {}),
    ],
)
def test_refuses_what_makes_no_sense(name: str, value: Any, given: dict[str, Any]) -> None:
    """BUD3: a setting that cannot work is refused at assembly, by name."""
    with pytest.raises(AssemblyError, match=f"{name}: expected .*, got") as caught:
        Settings(**{name: value}, **given)

    assert (caught.value.kind, caught.value.where) == ("invalid_option", name)


def test_takes_the_edges() -> None:
    """One threshold for micro and summary, and a count of 0, are allowed."""
    settings = Settings(trigger_ratio=1.0, micro_ratio=1.0, keep_tool_groups=0)

    assert settings.replace(micro_ratio=0.5).micro_ratio == 0.5


def test_sizes_scale_with_the_size_base() -> None:
    """Caps, tail, summary and facts follow the size base, thresholds the budget."""
    found = limits(Settings(), 24_000, 28_000)

    assert (found.tool_cap, found.group_cap, found.tail) == (3_600, 9_600, 3_600)
    assert (found.summary_max, found.facts_max, found.digest_max) == (1_200, 6_000, 2_400)
    assert (found.trigger, found.micro, found.micro_goal) == (23_800, 19_600, 21_000)
    assert (found.min_cover, found.drop_to, found.uncompact) == (2_800, 14_000, 16_800)


def test_sizes_are_clamped() -> None:
    """Tiny and huge windows keep sizes that still work."""
    small, large = limits(Settings(), 768, 1_024), limits(Settings(), 900_000, 900_000)

    assert (small.tool_cap, small.tail, small.summary_max) == (400, 268, 76)
    assert (large.tool_cap, large.tail, large.facts_max) == (8_000, 20_000, 24_000)
    assert small.min_cover == 204


def test_a_given_size_wins() -> None:
    """A size that was set does not scale."""
    settings = Settings(tool_cap=700, tail=900, min_cover=50, summary_max=60, facts_max=70)

    found = limits(settings, 24_000, 28_000)

    assert (found.tool_cap, found.tail, found.min_cover) == (700, 900, 50)
    assert (found.summary_max, found.facts_max) == (60, 70)
    assert found.replace(tool_cap=350).tool_cap == 350
