"""What one call may use: the window, what is reserved, and what is left for messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from backscroll.compaction.reasons import Warned
from backscroll.compaction.settings import Settings
from backscroll.compaction.tokens import RATIO_MAX, RATIO_MIN, Sizes, estimate
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import ToolSpec

MIN_WINDOW = 512
DEFAULT_OUTPUT = 8_192
STEPS = (1.0, 1.25, 1.5, RATIO_MAX)
"""The steps a ratio is rounded up to where bytes follow from it."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """What stands beside the messages of a request, in tokens."""

    system: int = 0
    tools: int = 0
    response_format: int = 0
    notes: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.system + self.tools + self.response_format + self.notes


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request brings besides its messages; `default_output` is the wire's own maximum."""

    profile: ModelProfile = field(default_factory=ModelProfile)
    options: ModelOptions = field(default_factory=ModelOptions)
    system: Sequence[str] = ()
    tools: Sequence[ToolSpec] = ()
    notes: Sequence[str] = ()
    default_output: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one call may use, in tokens.

    `available` is what estimates of messages are compared with. `size_base` is what the sizes of
    shortened bodies follow; it knows neither notes nor small changes of the ratio, so that those
    change no bytes. `clamped` has a sentence for each value of a catalogue or request that made
    no sense.
    """

    window: int
    source: str
    configured: int | None
    learned: int | None
    output: int
    requested_output: int | None
    hard: int
    safety: int
    overhead: Overhead
    available: int
    size_base: int
    ratio: float
    shares_window: bool
    warnings: tuple[Warned, ...] = ()
    clamped: tuple[str, ...] = ()

    @property
    def room(self) -> int:
        """What the messages of a request may take at most: the hard limit less all the rest."""
        return self.hard - self.safety - self.overhead.total

    def estimate(self, raw: int) -> int:
        """Return the calibrated estimate of a raw size."""
        return estimate(raw, self.ratio)


def make_budget(
    asked: Asked,
    settings: Settings,
    sizes: Sizes,
    ratio: float = 1.0,
    learned_limit: int | None = None,
) -> Budget:
    """Return the budget of one call; `sizes` are those under the profile that is asked."""
    clamped: list[str] = []
    ratio = max(RATIO_MIN, min(ratio, RATIO_MAX))
    configured, source = _configured(asked.profile, settings, clamped)
    window = configured or settings.unknown_window
    learned = learned_limit if learned_limit and 0 < learned_limit < window else None
    window = max(MIN_WINDOW, learned or window)
    requested = _requested(asked, clamped)
    max_input = _positive(asked.profile.max_input_tokens, "max_input_tokens", clamped)
    output = 0 if max_input else _reserve(asked.profile, settings, requested, window, clamped)
    hard = min(max_input or window, window - output)
    # Where only the prompt is limited, the margin follows that limit and not a larger window.
    safety = max(256, -(-min(window, max_input or window) // 50))
    raw = _overhead(asked, sizes)
    overhead = Overhead(*(estimate(part, ratio) for part in _parts(raw)))
    room, floor = hard - safety - overhead.total, max(1_024, -(-window // 10))
    return Budget(
        window=window,
        source="learned" if learned else source,
        configured=configured,
        learned=learned,
        output=output,
        requested_output=requested,
        hard=hard,
        safety=safety,
        overhead=overhead,
        available=max(room, floor),
        size_base=_size_base(hard - safety, ratio, raw.total - raw.notes),
        ratio=ratio,
        shares_window=not max_input,
        warnings=_warnings(window, configured is None, room < floor, asked, sizes),
        clamped=tuple(clamped),
    )


def fit_output(
    budget: Budget, options: ModelOptions, view: int
) -> tuple[ModelOptions, Warned | None]:
    """Return the options with the maximum output lowered to what a view leaves of the window.

    `view` is an estimate. Nothing changes where no maximum would be sent.
    """
    requested = budget.requested_output
    if requested is None or not budget.shares_window:
        return options, None
    left = budget.window - view - budget.overhead.total - budget.safety
    # A view that does not fit goes out all the same, and then with the reserve.
    allowed = max(left, min(requested, budget.output), 1)
    if requested <= allowed:
        return options, None
    lowered = Warned("output_lowered", {"from": requested, "to": allowed})
    return options.replace(max_output_tokens=allowed), lowered


def _configured(
    profile: ModelProfile, settings: Settings, clamped: list[str]
) -> tuple[int | None, str]:
    """Return the window that somebody stated, if any, and who did."""
    if settings.window is not None:
        return settings.window, "setting"
    window = _positive(profile.context_window, "context_window", clamped)
    if window is None or profile.window_source == "default":
        return None, "assumed"
    return window, "profile" if profile.window_source == "unknown" else profile.window_source


def _requested(asked: Asked, clamped: list[str]) -> int | None:
    """Return the maximum output that would be sent, if any."""
    given = _positive(asked.options.max_output_tokens, "max_output_tokens", clamped)
    return given or _positive(asked.default_output, "default_output", clamped)


def _reserve(
    profile: ModelProfile,
    settings: Settings,
    requested: int | None,
    window: int,
    clamped: list[str],
) -> int:
    """Return what is kept free for the answer."""
    if settings.reserve_output is None:
        most = profile.max_output_tokens
        known = requested or _positive(most, "profile max_output_tokens", clamped)
        return min(known or DEFAULT_OUTPUT, window // 4)
    # A reserve set for a larger window must not eat a smaller one.
    most = window - -(-window // 4)
    if settings.reserve_output > most:
        clamped.append(f"reserve_output: {settings.reserve_output} of {window} lowered to {most}")
    return min(settings.reserve_output, most)


def _size_base(prompt: int, ratio: float, raw_overhead: int) -> int:
    step = next(step for step in STEPS if step >= ratio)
    return max(768, (int(prompt / step) - raw_overhead) // 256 * 256)


def _overhead(asked: Asked, sizes: Sizes) -> Overhead:
    return Overhead(
        system=sum(map(sizes.system, asked.system)),
        tools=sum(map(sizes.tool, asked.tools)),
        response_format=sizes.response_format(asked.options.response_format),
        notes=sum(map(sizes.system, asked.notes)),
    )


def _parts(overhead: Overhead) -> tuple[int, int, int, int]:
    return overhead.system, overhead.tools, overhead.response_format, overhead.notes


def _warnings(
    window: int, assumed: bool, too_large: bool, asked: Asked, sizes: Sizes
) -> tuple[Warned, ...]:
    out: list[Warned] = []
    if assumed:
        out.append(Warned("window_assumed", {"window": window}))
    if too_large:
        named = [(tool.name, sizes.tool(tool)) for tool in asked.tools]
        largest = sorted(named, key=lambda item: (-item[1], item[0]))[:5]
        out.append(Warned("overhead_too_large", {"tools": largest}))
    return tuple(out)


def _positive(value: int | None, name: str, clamped: list[str]) -> int | None:
    """Return a stated number if it makes sense; None, with a sentence, if it does not."""
    if value is None or value > 0:
        return value
    clamped.append(f"{name}: expected more than 0, got {value}; it is not used")
    return None
