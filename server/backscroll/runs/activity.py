"""What clients are shown of a compaction: numbers, and the summary only where that is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KIND = "backscroll.compaction"


def compaction_activity(
    decision: Mapping[str, Any], window: int | None, summary: str | None
) -> dict[str, Any] | None:
    """Return the content of the activity, or None for a decision that did nothing."""
    done = [stage["stage"] for stage in decision["stages"] if stage["status"] == "done"]
    if decision["result"] == "skipped" or (not done and decision["result"] == "done"):
        return None
    before, after = decision["before"], decision["after"]
    tokens: dict[str, Any] = {"before": before["tokens"], "after": after["tokens"]}
    if window is not None:
        tokens["window"] = window
    content: dict[str, Any] = {
        "status": decision["result"],
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
