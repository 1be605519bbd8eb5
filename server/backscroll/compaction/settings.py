"""The numbers of compaction: what a developer may set, and what follows for one budget."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.kernel.errors import AssemblyError

_RATIOS = (
    "trigger_ratio",
    "micro_ratio",
    "micro_min_gain",
    "group_cap_ratio",
    "facts_ratio",
    "drop_to",
    "max_shrink",
    "pins_ratio",
    "uncompact_ratio",
)
_COUNTS = (
    "keep_tool_groups",
    "placeholder_min",
    "args_cap",
    "failures_open",
    "ring",
    "summary_timeout",
    "count_timeout",
    "cooldown",
    "learned_for",
)
_SIZES = ("window", "reserve_output", "unknown_window")
_OPTIONAL_SIZES = ("tool_cap", "tail", "min_cover", "summary_max", "facts_max")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a developer may set; raises `invalid_option` naming a number that makes no sense.

    Sizes are tokens and times are seconds. A size of None scales with the window. `media_tokens`
    maps a media type (`image/png`, `image/*`) to the tokens of one file. With `shrink_on_tpm` a
    request that is larger than a budget of tokens a minute is sent once more, smaller.
    """

    window: int | None = None
    reserve_output: int | None = None
    unknown_window: int = 32_768
    trigger_ratio: float = 0.85
    micro_ratio: float = 0.70
    micro_min_gain: float = 0.20
    keep_tool_groups: int = 4
    tool_cap: int | None = None
    group_cap_ratio: float = 0.40
    placeholder_min: int = 120
    args_cap: int = 200
    tail: int | None = None
    min_cover: int | None = None
    summary_max: int | None = None
    facts_max: int | None = None
    facts_ratio: float = 0.25
    drop_to: float = 0.50
    max_shrink: float = 0.80
    pins_ratio: float = 0.30
    uncompact_ratio: float = 0.60
    summary_timeout: float = 60.0
    count_timeout: float = 3.0
    failures_open: int = 3
    cooldown: float = 300.0
    ring: int = 4
    learned_for: float = 86_400.0
    shrink_on_tpm: bool = False
    media_tokens: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        for name in (*_RATIOS, *_COUNTS, *_SIZES, *_OPTIONAL_SIZES):
            value = getattr(self, name)
            is_absent = value is None and name not in (*_RATIOS, *_COUNTS)
            _require(is_absent or isinstance(value, int | float), name, "a number", self)
        for name in _RATIOS:
            _require(0 < getattr(self, name) <= 1, name, "a ratio above 0 and up to 1", self)
        for name in _COUNTS:
            _require(getattr(self, name) >= 0, name, "0 or more", self)
        for name in (*_SIZES, *_OPTIONAL_SIZES):
            value = getattr(self, name)
            _require(value is None or value > 0, name, "more than 0", self)
        sizes_given = all(value >= 0 for value in self.media_tokens.values())
        _require(sizes_given, "media_tokens", "0 or more for each media type", self)
        limit = f"at most trigger_ratio ({self.trigger_ratio})"
        _require(self.micro_ratio <= self.trigger_ratio, "micro_ratio", limit, self)
        limit = f"less than trigger_ratio ({self.trigger_ratio})"
        _require(self.drop_to < self.trigger_ratio, "drop_to", limit, self)
        if self.window is not None and self.reserve_output is not None:
            limit = f"less than window ({self.window})"
            _require(self.reserve_output < self.window, "reserve_output", limit, self)

    def replace(self, **changes: Any) -> Settings:
        """Return a copy with some numbers changed, checked again."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes one view is shaped with.

    The first group is raw and scales with the size base; the second is estimates and scales with
    the budget (see `budget.Budget`).
    """

    tool_cap: int
    group_cap: int
    placeholder_min: int
    args_cap: int
    tail: int
    summary_max: int
    facts_max: int
    digest_max: int
    block_max: int

    trigger: int
    micro: int
    micro_min_gain: int
    micro_goal: int
    min_cover: int
    drop_to: int
    pins_max: int
    uncompact: int

    def replace(self, **changes: Any) -> Limits:
        """Return a copy with some sizes changed."""
        return dataclasses.replace(self, **changes)


def limits(settings: Settings, size_base: int, available: int) -> Limits:
    """Return the sizes that follow from the size base (raw) and the available budget."""
    z, b = size_base, available
    tool_cap = _clamp(int(0.15 * z), 400, 8_000)
    tail = _clamp(int(0.15 * z), min(2_000, int(0.35 * z)), 20_000)
    summary_max = _clamp(int(0.05 * z), min(400, int(0.10 * z)), 2_500)
    facts_max = min(int(settings.facts_ratio * z), 24_000)
    min_cover = max(int(0.10 * b), min(1_000, int(0.20 * b)))
    return Limits(
        tool_cap=_given(settings.tool_cap, tool_cap),
        group_cap=int(settings.group_cap_ratio * z),
        placeholder_min=settings.placeholder_min,
        args_cap=settings.args_cap,
        tail=_given(settings.tail, tail),
        summary_max=_given(settings.summary_max, summary_max),
        facts_max=_given(settings.facts_max, facts_max),
        digest_max=int(0.10 * z),
        block_max=int(0.30 * z),
        trigger=int(settings.trigger_ratio * b),
        micro=int(settings.micro_ratio * b),
        micro_min_gain=int(settings.micro_min_gain * b),
        micro_goal=int(0.75 * b),
        min_cover=_given(settings.min_cover, min_cover),
        drop_to=int(settings.drop_to * b),
        pins_max=int(settings.pins_ratio * b),
        uncompact=int(settings.uncompact_ratio * b),
    )


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _require(holds: bool, name: str, expected: str, settings: Settings) -> None:
    if not holds:
        got = getattr(settings, name)
        raise AssemblyError("invalid_option", f"{name}: expected {expected}, got {got!r}", name)
