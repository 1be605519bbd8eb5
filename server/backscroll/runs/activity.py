"""What clients are shown of compactions: numbers, and the summary only where that is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backscroll.agent.events import AgentEvent, Reported
from backscroll.agui.encode import RunEncoder
from backscroll.compaction.decision import CompactionFinished, CompactionStarted
from backscroll.kernel.ports import Ids
from backscroll.kernel.request import ViewPlanned
from backscroll.kernel.usage import Usage
from backscroll.store.entry import NewEntry

KIND = "backscroll.compaction"


def compaction_activity(
    decision: Mapping[str, Any],
    window: int | None,
    summary: str | None = None,
    *,
    is_announced: bool = False,
) -> dict[str, Any] | None:
    """Return the content of the activity, or None for a decision that did nothing.

    One that was announced as running is never left without an end.
    """
    done = [stage["stage"] for stage in decision["stages"] if stage["status"] == "done"]
    status = decision["result"]
    if status == "skipped" or (status == "done" and not done):
        if not is_announced:
            return None
        status = "failed" if status == "skipped" else status
    before, after = decision["before"], decision["after"]
    tokens: dict[str, Any] = {"before": before["tokens"], "after": after["tokens"]}
    if window is not None:
        tokens["window"] = window
    content: dict[str, Any] = {
        "status": status,
        "trigger": decision["trigger"],
        "stages": done,
        "messages": {"before": before["messages"], "after": after["messages"]},
        "tokens": {**tokens, "source": "estimate"},
        "ms": decision.get("ms", 0),
    }
    if "covers" in decision:
        content["covered"] = decision["covers"][1] - decision["covers"][0] + 1
    made = decision.get("summary") or {}
    if "source" in made:
        content["summary"] = made["source"]
    if "reason" in decision:
        content["reason"] = decision["reason"]
    if summary is not None:
        content["text"] = summary
    return content


def summary_usage(decision: Mapping[str, Any]) -> tuple[str, str, Usage] | None:
    """Return provider, model and usage of the summary a decision paid for, where they are known.

    One that was not accepted has its price, too.
    """
    made = decision.get("summary") or {}
    if not made.get("usage"):
        made = decision.get("spent") or {}
    if not made.get("usage"):
        return None
    return made.get("provider") or "", made.get("model") or "", Usage(**made["usage"])


class CompactionCards:
    """The activities of one run's compactions, each stated whole when it changes.

    A decision is stated with the window of the view that comes of it, which is reported next.
    """

    def __init__(self, encoder: RunEncoder, ids: Ids, *, has_text: bool) -> None:
        self._encoder, self._ids = encoder, ids
        self.has_text = has_text
        self._announced = ""
        self._waiting: tuple[Mapping[str, Any], str | None] | None = None
        self._window: int | None = None

    def take(self, event: AgentEvent, text: str | None = None) -> list[NewEntry]:
        """Return what one event of the turn puts on the wire; `text` is that of its summary."""
        report = event.report if isinstance(event, Reported) else None
        if isinstance(report, ViewPlanned):
            self._window = report.facts.get("budget", {}).get("window", self._window)
        entries = self._stated()
        if isinstance(report, CompactionStarted):
            self._announced = self._announced or self._ids.new("cmp")
            running = {"status": "running", "trigger": report.trigger}
            entries += self._encoder.activity(self._announced, KIND, running)
        elif isinstance(report, CompactionFinished):
            self._waiting = (report.decision, text if self.has_text else None)
            used = summary_usage(report.decision)
            if used is not None:
                self._encoder.add_usage(*used)
        return entries

    def _stated(self) -> list[NewEntry]:
        """State the decision that waits, if one does."""
        if self._waiting is None:
            return []
        (decision, text), self._waiting = self._waiting, None
        name, self._announced = self._announced, ""
        content = compaction_activity(decision, self._window, text, is_announced=bool(name))
        if content is None:
            return []
        return self._encoder.activity(name or self._ids.new("cmp"), KIND, content)
