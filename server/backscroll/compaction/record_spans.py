"""What operators see of a call record: spans over history and request, and the budget's parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PARTS = ("system", "tools", "response_format", "summary", "messages", "results", "notes")
_BESIDE = ("system", "tools", "response_format")


def spans_for_api(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return one attempt in the operator API's form; made from the record alone.

    Every live history position is in one span, every sent position too, that of a summary
    excepted. The parts add up to `sent.tokens`; `history.tokens` is what the whole history would
    have taken with all that stood beside it, so that the two can be compared.
    """
    parts = _parts(record)
    sent = {"messages": record["sent"]["messages"], "tokens": sum(p["tokens"] for p in parts)}
    beside = sum(p["tokens"] for p in parts if p["part"] in _BESIDE)
    history = {
        "messages": record["history"]["messages"],
        "tokens": record["history"]["tokens"] + beside,
    }
    out: dict[str, Any] = {
        "attempt": record["attempt"],
        "history": history,
        "sent": {**sent, "sha256": record["sent"]["sha256"]},
    }
    out["budget"] = {**_budget(record), "parts": parts}
    out["spans"] = _spans(record)
    if record.get("warnings"):
        out["warnings"] = list(record["warnings"])
    return out


def _budget(record: Mapping[str, Any]) -> dict[str, Any]:
    budget = record.get("budget")
    if budget is None:
        return {"source": "estimate"}
    above = sum(budget["overhead"].values())
    triggers = [
        {
            "stage": stage,
            "ratio": round(budget[name] / max(budget["available"], 1), 4),
            "tokens": above + budget[name],
        }
        for stage, name in (("micro", "micro"), ("summary", "trigger"))
    ]
    return {
        "window": budget["window"],
        "window_source": budget["source"],
        "reserved": budget["output"],
        "hard": budget["hard"],
        "source": "estimate",
        "triggers": triggers,
    }


def _parts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = dict(record["sent"]["parts"])
    answer = record.get("budget", {}).get("overhead", {}).get("response_format", 0)
    if answer:
        found["response_format"] = [answer, 1]
    return [
        {"part": name, "tokens": found[name][0], "count": found[name][1]}
        for name in _PARTS
        if name in found
    ]


def _spans(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return spans by history position; what has none stands after what was sent before it."""
    placed = [_left_out(span) for span in record["left_out"] if span["fate"] != "summarised"]
    covered = [_left_out(span) for span in record["left_out"] if span["fate"] == "summarised"]
    loose: list[dict[str, Any]] = []
    number = 1
    for span in record["view"]:
        count = span["to"] - span["from"] + 1 if "from" in span else 1
        shown = _sent(span, [number, number + count - 1])
        number += count
        if span.get("what") == "summary" and covered:
            placed += _covered(covered, span, shown)
            covered = []
        elif "from" in span:
            placed.append(shown)
        else:
            loose.append(shown)
    placed += covered
    placed.sort(key=lambda span: span["history"][0])
    return _with_loose(placed, loose)


def _with_loose(
    placed: list[dict[str, Any]], loose: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    out = placed
    for span in loose:
        before = span["sent"][0] - 1
        at = next((n for n, s in enumerate(out) if s.get("sent", [0, -1])[1] == before), None)
        if before == 0 or at is None:
            out.insert(0, span)
            continue
        while at + 1 < len(out) and out[at + 1].get("sent") == out[at].get("sent"):
            at += 1
        out.insert(at + 1, span)
    return out


def _covered(
    spans: Sequence[dict[str, Any]], summary: Mapping[str, Any], shown: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Join the left-out spans with the summary that stands for them; its tokens count once."""
    out = []
    for number, span in enumerate(spans):
        joined = {**span, "sent": shown["sent"]}
        joined["tokens_after"] = 0 if number else summary["tokens"][1]
        if "compaction" in summary:
            joined["compaction"] = summary["compaction"]
        out.append(joined)
    return out


def _left_out(span: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {"fate": span["fate"], "history": [span["from"], span["to"]]}
    out["tokens_before"] = span["tokens"][0]
    return _named(out, span)


def _sent(span: Mapping[str, Any], sent: list[int]) -> dict[str, Any]:
    out: dict[str, Any] = {"fate": span["fate"]}
    if "from" in span:
        out["history"] = [span["from"], span["to"]]
    out["sent"] = sent
    for name in ("what", "role", "of"):
        if name in span:
            out[name] = span[name]
    if "from" in span:
        out["tokens_before"] = span["tokens"][0]
    out["tokens_after"] = span["tokens"][1]
    return _named(out, span)


def _named(out: dict[str, Any], span: Mapping[str, Any]) -> dict[str, Any]:
    for name, shown in (("by", "by"), ("why", "reason"), ("repaired", "repaired")):
        if name in span:
            out[shown] = span[name]
    return out
