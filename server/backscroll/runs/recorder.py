"""What operators read of a run: call records with their outcomes, compaction decisions, notes.

The record of a call is written before its request leaves. It is made from what is really sent;
what filters claimed supplies the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.agent.events import (
    AgentEvent,
    CallFinished,
    CallRetried,
    CallStarted,
    ContextChanged,
    IterationStarted,
    Reported,
)
from backscroll.compaction.call_record import CallPlace, make_record, merge_plans
from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Message
from backscroll.kernel.request import CallStart, Note, ViewPlanned
from backscroll.runs.notes import note_blob, note_entry, operator_entry
from backscroll.store.entry import Kind, NewEntry

ERROR_CHARS = 300
RING = 8


@dataclass(frozen=True, slots=True)
class Recorded:
    """Entries to append, with the blobs they name and what they change in the thread's head."""

    entries: tuple[NewEntry, ...] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    meta: Mapping[str, str] = field(default_factory=dict)


NOTHING = Recorded()


class Recorder:
    """Turns what a run reports into operator entries; one per run, called in order."""

    def __init__(
        self,
        run: str,
        worker: str,
        sizes: Sizes,
        *,
        calls: int,
        compactions: int,
        summaries: Mapping[str, int] | None = None,
    ) -> None:
        """`summaries` tells which decision made the summary of a prefix, by the prefix's hash."""
        self._run, self._worker, self._sizes = run, worker, sizes
        self._summaries = dict(summaries or {})
        self._call, self._compactions = calls, compactions
        self._iteration: int | None = None
        self._plans: list[ViewPlanned] = []
        self._noted: set[str] = set()
        self._retries = 0

    @property
    def call(self) -> int:
        """The number of the newest call of the thread."""
        return self._call

    def take(
        self, event: AgentEvent, history: Sequence[tuple[int, Message]], rewrites: int = 0
    ) -> Recorded:
        """Return what one event puts into the log; `history` is what the run's memory read last.

        `rewrites` is how often write-back had shortened that.
        """
        match event:
            case IterationStarted():
                self._iteration = event.index + 1
            case Reported():
                return self._reported(event.report, history)
            case CallStarted():
                return self._started(event, history, rewrites)
            case CallRetried():
                self._retries = event.try_number
            case CallFinished():
                return self._finished(event)
            case ContextChanged() if event.conflicts:
                names = ", ".join(event.conflicts)
                return self.note(Note("slot_conflict", f"written twice in one batch: {names}"))
        return NOTHING

    def note(self, note: Note) -> Recorded:
        """Return a note as an entry; one with a key only the first time in its thread.

        That it was written is stored with it: whoever records next asks for its `note_blob`, and
        says so with `mark_noted`.
        """
        entry = note_entry(note, self._run)
        if note.key is None:
            return Recorded((entry,))
        if note.key in self._noted:
            return NOTHING
        self._noted.add(note.key)
        name, data = note_blob(note.key)
        return Recorded((entry,), {name: data})

    def is_noted(self, key: str) -> bool:
        """Say whether this run knows that a note of the key is in the log."""
        return key in self._noted

    def mark_noted(self, key: str) -> None:
        """Take in that an earlier run of the thread wrote a note of the key."""
        self._noted.add(key)

    def number_compaction(self, number: int) -> None:
        """Take in which number the next decision has in its thread."""
        self._compactions = number - 1

    def _reported(self, report: Any, history: Sequence[tuple[int, Message]]) -> Recorded:
        if isinstance(report, ViewPlanned):
            self._plans.append(report)
        elif isinstance(report, Note):
            return self.note(report)
        elif isinstance(report, CompactionFinished):
            return self._compacted(report, history)
        return NOTHING

    def _compacted(
        self, report: CompactionFinished, history: Sequence[tuple[int, Message]]
    ) -> Recorded:
        self._compactions += 1
        decision = with_positions(report.decision, history)
        attempt = decision.get("attempt", 1)
        self._summaries = summaries_with(self._summaries, decision, self._compactions)
        # The decision comes before the record of the attempt it belongs to.
        call = self._call + 1 if attempt == 1 else self._call
        body = {"compaction": self._compactions, "call": call, **decision}
        line = decision_line(decision)
        entry = self._entry("compaction", decision["result"], body, str(self._compactions), line)
        return Recorded((entry,), report.blobs, {"summaries": canonical_json(self._summaries)})

    def _started(
        self, event: CallStarted, history: Sequence[tuple[int, Message]], rewrites: int
    ) -> Recorded:
        if event.attempt == 1:
            self._call += 1
        plan = merge_plans(self._plans)
        self._plans.clear()
        self._retries = 0
        prefix = plan.facts.get("cache", {}).get("prefix_hash", "")
        place = CallPlace(
            self._call,
            event.attempt,
            self._run,
            self._iteration,
            self._worker,
            self._summaries.get(prefix),
            rewrites,
        )
        start = CallStart(event.message_id, event.model, event.request, event.stream)
        made = make_record(place, start, plan, history, self._sizes)
        record = made.record
        name = record["model"]["name"]
        # With the tools, which are no messages: what the whole request is estimated at.
        tokens = sum(part[0] for part in record["sent"]["parts"].values())
        preview = (
            f"call {self._call}, attempt {event.attempt}, {name}, "
            f"{record['sent']['messages']} messages, {tokens} tokens"
        )
        entry = self._entry("call", "started", record, str(self._call), preview)
        context = {
            "tokens": tokens,
            "window": record.get("budget", {}).get("window"),
            "source": "estimate",
            "call": self._call,
        }
        known = {key: value for key, value in context.items() if value is not None}
        head = {"model": name, "call": str(self._call), "context": canonical_json(known)}
        return Recorded((entry,), made.blobs, head)

    def _finished(self, event: CallFinished) -> Recorded:
        outcome: dict[str, Any] = {
            "call": self._call,
            "attempt": event.attempt,
            "message": event.message_id,
            "ms": round(event.duration_s * 1000),
            "tries": self._retries + 1,
        }
        if event.usage is not None:
            outcome["usage"] = event.usage.to_dict()
        if event.finish_reason is not None:
            outcome["finish_reason"] = event.finish_reason.value
        type_ = "finished"
        if event.error is not None:
            type_ = "cancelled" if event.error.kind == "cancelled" else "failed"
            outcome["error"] = _error(event.error)
        outcome["status"] = {"finished": "ok", "failed": "error"}.get(type_, type_)
        entry = self._entry("call", type_, outcome, str(self._call), _outcome_line(outcome))
        return Recorded((entry,))

    def _entry(
        self, kind: Kind, type_: str, body: Mapping[str, Any], ref: str, preview: str
    ) -> NewEntry:
        return operator_entry(kind, type_, body, self._run, ref, preview)


def _error(error: ModelError) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": error.kind, "message": str(error)[:ERROR_CHARS]}
    if error.status is not None:
        found["status"] = error.status
    if error.refusal is not None:
        found["class"], found["rule"] = error.refusal.cls, error.refusal.rule
    return found


def _outcome_line(outcome: Mapping[str, Any]) -> str:
    words = [outcome.get("finish_reason") or outcome["status"], f"{outcome['ms']} ms"]
    usage = outcome.get("usage", {})
    if "input_tokens" in usage:
        words.append(f"{usage['input_tokens']} in")
    if "output_tokens" in usage:
        words.append(f"{usage['output_tokens']} out")
    if "error" in outcome:
        words.append(outcome["error"]["message"])
    return ", ".join(words)


def with_positions(
    decision: Mapping[str, Any], history: Sequence[tuple[int, Message]]
) -> dict[str, Any]:
    """Return a decision whose range and cut name store positions, as the log and the API do."""
    found = dict(decision)
    places = [position for position, _ in history]
    if "covers" in found and all(0 < n <= len(places) for n in found["covers"]):
        found["covers"] = [places[n - 1] for n in found["covers"]]
    cut = found.get("cut")
    if cut:
        rejected = [_placed(one, places) for one in cut.get("rejected", ())]
        found["cut"] = {**_placed(cut, places), **({"rejected": rejected} if rejected else {})}
    return found


def _placed(cut: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """Return a cut, or one that was rejected, with its position in the store."""
    at = cut.get("position", 0)
    return {**cut, "position": places[at - 1]} if 0 < at <= len(places) else dict(cut)


def summaries_with(
    known: Mapping[str, int], decision: Mapping[str, Any], number: int
) -> dict[str, int]:
    """Return which decision made the summary of a prefix, by the prefix's hash, after one more."""
    summary = decision.get("summary", {})
    made = summary.get("source") in ("fresh", "merged", "partial")
    prefix = decision.get("cache", {}).get("prefix_hash")
    if not prefix or not (made or decision.get("action") == "edit"):
        return dict(known)
    # Only the newest ones can be in use: a cache and its ring.
    return {**dict([*known.items()][-RING:]), prefix: number}


def decision_line(decision: Mapping[str, Any]) -> str:
    """Return a decision in one line: what was done, and what it changed."""
    before, after = decision["before"], decision["after"]
    stages = ", ".join(stage["stage"] for stage in decision["stages"]) or "nothing"
    line = (
        f"{decision['trigger']}: {stages}, {before['messages']} to {after['messages']} messages, "
        f"{before['tokens']} to {after['tokens']} tokens"
    )
    return f"{line}, {decision['reason']}" if "reason" in decision else line
