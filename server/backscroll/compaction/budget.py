"""What one call may use: the window, what is reserved, and what is left for messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backscroll.compaction.reasons import Warned
from backscroll.compaction.settings import Settings
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import ToolSpec


@dataclass(frozen=True, slots=True)
class Overhead:
    """What stands beside the messages of a request, in estimates."""

    system: int = 0
    tools: int = 0
    response_format: int = 0
    notes: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.system + self.tools + self.response_format + self.notes


@dataclass(frozen=True, slots=True)
class Budget:
    """What one call may use, in tokens.

    `available` is what estimates of messages are compared with; `size_base` is what raw sizes of
    shortened bodies follow, so that notes and calibration do not change bytes. `clamped` holds a
    sentence for each value of a catalogue or request that made no sense.
    """

    window: int
    source: str
    configured: int | None
    learned: int | None
    output: int
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
        """What the messages of a request may take at most: the hard limit less the rest."""
        return self.hard - self.safety - self.overhead.total

    def estimate(self, raw: int) -> int:
        """Return the calibrated estimate of a raw size."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request brings besides its messages."""

    profile: ModelProfile
    options: ModelOptions = ModelOptions()
    system: Sequence[str] = ()
    tools: Sequence[ToolSpec] = ()
    notes: Sequence[str] = ()
    default_output: int | None = None


def make_budget(
    asked: Asked,
    settings: Settings,
    sizes: Sizes,
    ratio: float = 1.0,
    learned_limit: int | None = None,
) -> Budget:
    """Return the budget of one call; `response_format` is taken from the options."""
    raise NotImplementedError


def fit_output(
    budget: Budget, options: ModelOptions, view: int
) -> tuple[ModelOptions, Warned | None]:
    """Return the options with the maximum output lowered to what the window leaves."""
    raise NotImplementedError
