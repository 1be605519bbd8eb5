"""The value that planning gives: what one attempt of a call sends, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.compaction.decision import Decision, Trigger
from backscroll.compaction.ladder import Aim, Climb
from backscroll.compaction.material import SummaryJob
from backscroll.compaction.overflow import SMALLER, Reaction
from backscroll.compaction.reading import PlanInput, Reading
from backscroll.compaction.reasons import Warned
from backscroll.compaction.report import Made
from backscroll.compaction.store import CompactionEntry
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelOptions
from backscroll.kernel.request import Claim


@dataclass(frozen=True, slots=True)
class Plan:
    """What one attempt of a call sends, why, and what is to be stored.

    With a `job` it is not finished: `settle` takes what came of the summary.
    """

    given: PlanInput
    view: tuple[Message, ...]
    options: ModelOptions
    entry: CompactionEntry
    claims: tuple[Claim, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    warnings: tuple[Warned, ...] = ()
    job: SummaryJob | None = None
    made: Made | None = None
    reaction: Reaction | None = None
    reading: Reading | None = None
    state: Climb | None = None
    aim: Aim | None = None
    before: Plan | None = None
    sends: bool = True
    adopted: bool = False

    @property
    def trigger(self) -> Trigger:
        """What began it."""
        if self.given.manual:
            return "manual"
        return "ratio" if self.reaction is None else "overflow"

    @property
    def changed(self) -> bool:
        """Say whether the entry has to be stored."""
        return self.entry != self.given.entry

    def unsent(self) -> Plan:
        """Return this plan as one whose request is not made, because it would be refused again."""
        reaction = self.reaction
        if reaction is not None:
            reaction = dataclasses.replace(reaction, resend=False)
        decision = self.decision
        if decision is not None and reaction is not None:
            decision = decision.replace(overflow=reaction.to_dict(), result="failed")
        return dataclasses.replace(self, reaction=reaction, decision=decision, sends=False)

    @property
    def shortened(self) -> frozenset[str]:
        """The ids of the messages that the view does not show whole."""
        return frozenset(
            claim.message_id
            for claim in self.claims
            if claim.message_id is not None and claim.fate != "kept"
        )

    @property
    def raw(self) -> int:
        """The raw size of the messages."""
        return self.given.means.sizes.messages(self.view)

    @property
    def raw_prompt(self) -> int:
        """The raw size of the whole request; that of the messages where nothing was estimated."""
        if self.reading is None:
            return self.raw
        budget = self.reading.budget
        return self.raw + round(budget.overhead.total / budget.ratio)

    @property
    def prompt(self) -> int:
        """The estimate of the whole request; 0 where nothing could be estimated."""
        if self.reading is None:
            return 0
        return self.reading.budget.estimate(self.raw) + self.reading.budget.overhead.total

    @property
    def is_smaller(self) -> bool:
        """Say whether a forced plan asks for less than the one that was refused, or for other."""
        first, reaction = self.before, self.reaction
        if first is None or reaction is None or reaction.kind == "none":
            return False
        if reaction.kind == "output":
            return True
        if reaction.kind == "heal":
            return self.view != first.view
        return self.raw <= SMALLER * first.raw
