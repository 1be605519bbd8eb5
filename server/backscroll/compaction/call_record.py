"""The call record: the recipe of one request, with the numbers it was planned with."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.compaction.canon_forms import Digests, sent_digest
from backscroll.compaction.rebuild import choice_to_json, options_to_json
from backscroll.compaction.record import Explained, Positioned, explain, sent_list
from backscroll.compaction.record_items import Item
from backscroll.compaction.tokens import Sizes, estimate
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.request import CallStart, ViewPlanned

VERSION = 1
_PLANNED = ("budget", "estimate", "cache", "prefix")


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call stands: its number and attempt in the thread, its run, iteration and worker.

    `compaction` is the number of the decision that made the summary in use, `rewrites` how often
    the stored history was rewritten before.
    """

    call: int
    attempt: int = 1
    run: str | None = None
    iteration: int | None = None
    worker: str | None = None
    compaction: int | None = None
    rewrites: int = 0


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A record as JSON values, and the blobs it names by their sha256."""

    record: dict[str, Any]
    blobs: Mapping[str, bytes]


def merge_plans(plans: Iterable[ViewPlanned]) -> ViewPlanned:
    """Return what several layers reported about one view as one report, in order."""
    claims: list[Any] = []
    facts: dict[str, Any] = {}
    for plan in plans:
        claims += plan.claims
        facts.update(plan.facts)
    return ViewPlanned(tuple(claims), facts)


def make_record(
    place: CallPlace,
    start: CallStart,
    plan: ViewPlanned,
    history: Sequence[Positioned],
    sizes: Sizes,
) -> CallRecord:
    """Return the record of a request that is about to leave.

    `history` is the live history as the run's memory last read it. The request's own bytes are
    hashed where the model tells them.
    """
    ratio = float(plan.facts.get("estimate", {}).get("ratio", 1.0))
    fitted = sizes.under(start.model.profile)

    def size(message: Message) -> int:
        return estimate(fitted.message(message), ratio)

    sent = sent_list(start.request)
    explained = explain(history, sent, plan.claims, size)
    blobs = dict(explained.blobs)
    record: dict[str, Any] = {"v": VERSION, "call": place.call, "attempt": place.attempt}
    for name in ("run", "iteration", "worker"):
        if getattr(place, name) is not None:
            record[name] = getattr(place, name)
    record["model"] = _model(start, blobs)
    record["history"] = _history(history, explained, place, sizes.digests)
    record.update(explained.recipe)
    record["request"] = _request(start, blobs)
    tools = [estimate(fitted.tool(tool), ratio) for tool in start.request.tools]
    record["sent"]["parts"] = _parts(explained.items, sent, tools)
    encode = getattr(start.model, "encode", None)
    if encode is not None:
        record["wire_sha256"] = hashlib.sha256(encode(start.request, start.stream)).hexdigest()
    record.update({name: plan.facts[name] for name in _PLANNED if name in plan.facts})
    record["stable"] = _stable(start.request, plan)
    record["warnings"] = [*plan.facts.get("warnings", ()), *explained.warnings]
    _number(record, place.compaction)
    return CallRecord(record, blobs)


def _model(start: CallStart, blobs: dict[str, bytes]) -> dict[str, Any]:
    out = {"provider": start.model.provider, "name": start.model.name}
    if start.request.options.model is not None:
        out["name"] = start.request.options.model
    wire = getattr(start.model, "wire", None)
    if wire is not None:
        out["wire"] = wire
    setup = getattr(start.model, "setup", None)
    if setup is not None:
        out["setup"] = _blob(blobs, setup(start.request.texts))
    return out


def _history(
    history: Sequence[Positioned], explained: Explained, place: CallPlace, digests: Digests
) -> dict[str, Any]:
    before = sum(item.before for item in explained.items)
    before += sum(span["tokens"][0] for span in explained.recipe["left_out"])
    messages = [message for _, message in history]
    return {
        "messages": len(history),
        "last": history[-1][0] if history else 0,
        "tokens": before,
        "sha256": digests.chain(messages)[-1],
        "rewrites": place.rewrites,
    }


def _request(start: CallStart, blobs: dict[str, bytes]) -> dict[str, Any]:
    request = start.request
    out: dict[str, Any] = {"system": len(request.system)}
    if request.tools:
        specs = [
            {"name": tool.name, "description": tool.description, "schema": dict(tool.schema)}
            for tool in request.tools
        ]
        out["tools"] = _blob(blobs, specs)
    out["tool_choice"] = choice_to_json(request.tool_choice)
    out["options"] = options_to_json(request.options)
    out["texts"] = _blob(blobs, dataclasses.asdict(request.texts))
    out["stream"] = start.stream
    return out


def _parts(
    items: Sequence[Item], sent: Sequence[Message], tools: Sequence[int]
) -> dict[str, list[int]]:
    """Return tokens and count of each part of the request, for the budget strip."""
    parts: dict[str, list[int]] = {}
    for item, message in zip(items, sent, strict=True):
        part = parts.setdefault(_part(item, message), [0, 0])
        part[0] += item.after
        part[1] += 1
    if tools:
        parts["tools"] = [sum(tools), len(tools)]
    return parts


def _part(item: Item, message: Message) -> str:
    if item.what in ("system", "summary"):
        return item.what
    if message.role.value == "tool":
        return "results"
    if item.what in ("note", "digest", "recall"):
        return "notes"
    return "messages"


def _stable(request: ModelRequest, plan: ViewPlanned) -> list[int]:
    """Return the sent indexes a provider's cache may be marked at; none if the view was changed."""
    at: Sequence[int] = plan.facts.get("stable", ())
    planned = [claim.digest for claim in plan.claims if claim.digest is not None]
    sent = [sent_digest(message) for message in request.messages[: max(at, default=-1) + 1]]
    if sent != planned[: len(sent)]:
        return []
    systems = len(request.system)
    return [*([systems - 1] if systems else []), *(systems + index for index in at)]


def _number(record: dict[str, Any], compaction: int | None) -> None:
    if compaction is None:
        return
    record["compaction"] = compaction
    for span in record["view"]:
        if span.get("what") == "summary":
            span["compaction"] = compaction


def _blob(blobs: dict[str, bytes], value: Any) -> str:
    data = value if isinstance(value, bytes) else canonical_json(value).encode()
    name = hashlib.sha256(data).hexdigest()
    blobs[name] = data
    return name
