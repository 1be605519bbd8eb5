"""What to do about a refusal for size, and how to see a cut that nobody reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.compaction.budget import Budget
from backscroll.compaction.tokens import RATIO_MAX, RATIO_MIN
from backscroll.kernel.errors import ModelError, Refusal
from backscroll.kernel.usage import FinishReason, Usage

ReactionKind = Literal["none", "output", "forced", "heal"]

LIMIT_LEAST = 1_000
OUTPUT_LEAST = 1_024
SMALLER = 0.95
AFTER_SILENT_CUT = 0.50
GOAL_LEAST = 256
_NEAR_WINDOW, _NEARLY_EMPTY_AT, _CUT_FROM = 0.98, 0.9, 2_000
_OURS = ("overflow", "sum", "overflow_bytes", "heal")


@dataclass(frozen=True, slots=True)
class Reaction:
    """How a refusal is answered: with less output, a smaller view, or another form of it.

    `limit` was learned and holds for later calls; `ratio` calibrates this call only.
    """

    kind: ReactionKind
    refusal: Refusal
    limit: int | None = None
    ratio: float | None = None
    max_output: int | None = None
    resend: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return what the decision says of the refusal."""
        given = {"used": self.refusal.used, "output": self.refusal.output}
        out: dict[str, Any] = {"class": self.refusal.cls, "rule": self.refusal.rule}
        out |= {name: value for name, value in given.items() if value is not None}
        if self.refusal.limit is not None:
            out["limit"] = self.refusal.limit
        return {**out, "reaction": self.kind, "resend": self.resend}


def refusal_of(
    error: ModelError, budget: Budget, prompt: int, *, shrink_on_tpm: bool = False
) -> Refusal | None:
    """Return the refusal that an error amounts to, if its class is one of ours.

    `prompt` is the estimate of the whole request. An empty answer to one that nearly fills the
    window is a refusal too; one for a rate is, if that is wanted.
    """
    if error.refusal is not None:
        ours = (*_OURS, "over_tpm") if shrink_on_tpm else _OURS
        return error.refusal if error.refusal.cls in ours else None
    if error.kind == "context_overflow":
        return Refusal("overflow", rule="context_overflow")
    if error.kind == "incomplete_stream" and prompt >= _NEARLY_EMPTY_AT * budget.window:
        return Refusal("overflow", rule="empty_answer")
    return None


def react(
    refusal: Refusal, budget: Budget, raw: int, *, changed: bool, shrink_on_tpm: bool = False
) -> Reaction:
    """Return how to answer a refusal.

    `raw` is the raw size of the whole request; `changed` says whether the view differs from the
    history, so that another form of it could be accepted.
    """
    if refusal.cls == "over_tpm":
        # Neither the limit of a rate nor how it counts says anything about the model.
        return Reaction("forced" if shrink_on_tpm else "none", refusal)
    limit = refusal.limit
    learned = limit if limit is not None and LIMIT_LEAST <= limit < budget.window else None
    ratio = None
    if refusal.used and raw > 0:
        ratio = max(RATIO_MIN, min(refusal.used / raw, RATIO_MAX))
    if refusal.cls == "heal":
        return Reaction("heal" if changed else "none", refusal)
    if refusal.cls == "sum":
        output = _output_left(refusal, budget)
        if output is not None:
            return Reaction("output", refusal, learned, ratio, output)
    if refusal.cls in ("overflow", "sum", "overflow_bytes"):
        return Reaction("forced", refusal, learned, ratio)
    return Reaction("none", refusal)


def forced_goal(reaction: Reaction, budget: Budget, view: int) -> int:
    """Return what the second view may take; `budget` is the one under the learned limit."""
    half = budget.available // 2
    above = budget.overhead.total
    refusal, limit = reaction.refusal, reaction.limit
    if refusal.cls == "over_tpm":
        limit = refusal.limit
    if limit is not None:
        goal = min(half, int(0.80 * limit) - above)
    elif refusal.used is not None:
        goal = min(half, int(0.60 * refusal.used) - above)
    else:
        goal = min(half, int(0.60 * view))
    return max(goal, GOAL_LEAST)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why an answer looks as if the provider had cut the prompt or the window had ended."""

    why: str
    data: Mapping[str, Any] = field(default_factory=dict)


def suspect(
    budget: Budget, prompt: int, finish: FinishReason | None, usage: Usage | None
) -> Suspicion | None:
    """Judge a successful answer; `prompt` is the estimate of the whole request."""
    told = usage.input_tokens if usage is not None else None
    output = usage.output_tokens if usage is not None else None
    data = {"window": budget.window, "estimate": prompt, "prompt": told, "output": output}
    if finish is FinishReason.CONTEXT_WINDOW:
        return Suspicion("the answer ended with the window", data)
    used = (prompt if told is None else told) + (output or 0)
    asked = budget.requested_output
    short = output is not None and (asked is None or output < asked)
    if finish is FinishReason.MAX_TOKENS and used >= _NEAR_WINDOW * budget.window and short:
        return Suspicion("the answer was cut where the window ends", data)
    if told is None or told <= 0:
        return None
    if told > budget.window:
        return Suspicion("the provider counts more than its window", data)
    if prompt >= _CUT_FROM and told < prompt / 2:
        return Suspicion("the provider counts less than half of what was sent", data)
    return None


def _output_left(refusal: Refusal, budget: Budget) -> int | None:
    """Return the output that fits beside the prompt, if it is enough to be worth a resend."""
    requested = budget.requested_output or refusal.output
    if refusal.limit is None or refusal.used is None:
        return None
    left = refusal.limit - refusal.used - budget.safety
    if requested is not None and left >= requested:
        # The provider counts otherwise than it says; asking for as much again would not help.
        left = requested // 2
    least = min(OUTPUT_LEAST, requested) if requested is not None else OUTPUT_LEAST
    return left if left >= least else None
