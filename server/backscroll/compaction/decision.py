"""What compaction decided for one call, and what came of it: one entry of the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.compaction.reasons import Reason

Trigger = Literal["ratio", "overflow", "manual", "background"]
StageName = Literal["micro", "summary", "drop", "trim"]
StageStatus = Literal["done", "skipped", "failed"]
Result = Literal["done", "skipped", "failed", "cancelled"]
SummarySource = Literal["cache", "fresh", "merged", "partial", "adopted"]


_PARTS = ("cut", "summary", "spent", "cache", "store", "health", "overflow", "write_back")


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the ladder: whether it was done, why, and what it changed."""

    stage: StageName
    status: StageStatus
    why: str = ""
    messages: int = 0
    tokens: int = 0
    ms: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; `tokens` is the change, negative where it shrank."""
        out: dict[str, Any] = {"stage": self.stage, "status": self.status}
        if self.why:
            out["why"] = self.why
        if self.status == "done":
            out.update(messages=self.messages, tokens=self.tokens)
        if self.ms is not None:
            out["ms"] = self.ms
        return out


@dataclass(frozen=True, slots=True)
class Amount:
    """How many messages, and how many tokens with all that stands beside them."""

    messages: int
    tokens: int

    def to_dict(self) -> dict[str, int]:
        """Return it as JSON values."""
        return {"messages": self.messages, "tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided and done; the fields of a `compaction` entry that are known in advance.

    `covers` and the cut are references of the history (`#n`); `ids` names the messages at both
    ends of what the summary stands for. `spent` is the usage of a summary that was not accepted.
    """

    trigger: Trigger
    because: str
    stages: tuple[Stage, ...]
    before: Amount
    after: Amount
    attempt: int = 1
    covers: tuple[int, int] | None = None
    ids: tuple[str | None, str | None] | None = None
    cut: Mapping[str, Any] | None = None
    summary: Mapping[str, Any] | None = None
    spent: Mapping[str, Any] | None = None
    cache: Mapping[str, Any] = field(default_factory=dict)
    store: Mapping[str, Any] = field(default_factory=dict)
    health: Mapping[str, Any] = field(default_factory=dict)
    overflow: Mapping[str, Any] | None = None
    write_back: Mapping[str, Any] | None = None
    warnings: tuple[Mapping[str, Any], ...] = ()
    result: Result = "done"
    reason: Reason | None = None
    ms: int = 0

    def replace(self, **changes: Any) -> Decision:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values; what does not apply is left out."""
        out: dict[str, Any] = {
            "attempt": self.attempt,
            "trigger": self.trigger,
            "because": self.because,
            "stages": [stage.to_dict() for stage in self.stages],
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }
        for name in ("covers", "ids"):
            pair = getattr(self, name)
            if pair is not None:
                out[name] = list(pair)
        for name in _PARTS:
            value = getattr(self, name)
            if value:
                out[name] = dict(value)
        if self.warnings:
            out["warnings"] = [dict(warning) for warning in self.warnings]
        out["result"] = self.result
        if self.reason is not None:
            out["reason"] = self.reason
        out["ms"] = self.ms
        return out


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """A summary is being made while the call waits."""

    trigger: Trigger
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """A decision was carried out; `blobs` holds the texts it names by their sha256."""

    decision: Mapping[str, Any]
    blobs: Mapping[str, bytes] = field(default_factory=dict)
