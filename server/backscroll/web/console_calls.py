"""The operator API on model calls and compactions: what was sent, and why it differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from backscroll.agui.refusal import RequestRefused
from backscroll.compaction.settings import Settings
from backscroll.runs.call_book import Attempt, Call, rewrites_of, sent_json
from backscroll.runs.compaction_card import compaction_card
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.entry import Entry
from backscroll.store.keys import ThreadKey
from backscroll.web.answers import (
    DIGITS,
    json_answer,
    number,
    path_number,
    services_of,
    thread_of,
)
from backscroll.web.services import Services


async def list_calls(request: Request) -> Response:
    """Return the heads of all calls of a thread, and up to where its log was surely read."""
    thread = thread_of(request)
    services = services_of(request)
    head = (await services.worker.log.head(thread)).seq
    calls = await services.calls.calls(thread)
    live = await _live_run(services, thread)
    heads = [call.head(call.attempts[-1].record.get("run") == live) for call in calls]
    return json_answer({"calls": heads, "head": head})


async def get_call(request: Request) -> Response:
    """Return one call with its attempts: spans of the history by fate, and the budget."""
    thread, services = thread_of(request), services_of(request)
    call = await _call(request, services, thread)
    record = await services.worker.threads.record(thread)
    live, extra = (record.run, record.extra) if record is not None else ("", {})
    whole = call.whole(call.attempts[-1].record.get("run") == live)
    if extra.get("rewritten"):
        written = [e for e in await _compactions(services, thread) if _is_written_back(e)]
        for shown, attempt in zip(whole["attempts"], call.attempts, strict=True):
            after = written[rewrites_of(attempt.record) :]
            if after:
                shown["rewritten"] = {"compaction": int(after[0].ref), "seq": after[0].seq}
    return json_answer(whole)


async def list_sent(request: Request) -> Response:
    """Return the messages of an attempt as they were sent, by sent position."""
    thread, services = thread_of(request), services_of(request)
    attempt = _attempt(request, await _call(request, services, thread))
    rebuilt = await services.calls.sent(thread, attempt)
    total = len(rebuilt.sent)
    first = number(request.query_params, "from", 1) or 1
    last = number(request.query_params, "to", total)
    messages = sent_json(rebuilt, first, total if last is None else last)
    answer: dict[str, Any] = {"messages": messages, "total": total}
    if rebuilt.missing:
        answer["missing"] = list(rebuilt.missing)
    return json_answer(answer)


async def get_request(request: Request) -> Response:
    """Return the request body of an attempt, rebuilt and compared with the recorded hash."""
    thread, services = thread_of(request), services_of(request)
    attempt = _attempt(request, await _call(request, services, thread))
    return json_answer(await services.calls.request(thread, attempt))


async def list_compactions(request: Request) -> Response:
    """Return every decision of a thread, the state of its cache, and where the log was read to."""
    thread, services = thread_of(request), services_of(request)
    head = (await services.worker.log.head(thread)).seq
    entries = await _compactions(services, thread)
    found = [decision_json(entry) for entry in entries]
    card = await _card(services, thread)
    return json_answer({"card": card, "compactions": found, "head": head})


async def get_compaction(request: Request) -> Response:
    """Return one decision with the texts it names."""
    thread, services = thread_of(request), services_of(request)
    wanted = path_number(request, "number")
    entries = await _compactions(services, thread)
    found = next((entry for entry in entries if int(entry.ref) == wanted), None)
    if found is None:
        message = f"There is no compaction {wanted}."
        raise RequestRefused("not_found", message, {"thread": thread.key})
    decision = decision_json(found)
    summary = decision.get("summary")
    if summary:
        decision.update(await _texts(services, thread, summary))
    earlier = [int(e.ref) for e in entries if int(e.ref) < wanted and _has_summary(e)]
    if earlier:
        decision["previous"] = earlier[-1]
    return json_answer(decision)


def decision_json(entry: Entry) -> dict[str, Any]:
    """Return a compaction entry as the API shows it."""
    body: dict[str, Any] = json.loads(entry.body)
    found = {**body, "seq": entry.seq, "time": entry.time, "run": entry.run}
    return {name: value for name, value in found.items() if value != ""}


async def _texts(
    services: Services, thread: ThreadKey, summary: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the text of a summary and what its summariser was asked, as far as they are kept."""
    names = [str(summary[name]) for name in ("sha256", "exchanges") if name in summary]
    blobs = await services.worker.log.blobs(thread, names)
    found: dict[str, Any] = {}
    if summary.get("sha256") in blobs:
        found["text"] = blobs[summary["sha256"]].decode("utf-8", "replace")
    if summary.get("exchanges") in blobs:
        asked = json.loads(blobs[summary["exchanges"]])
        found["exchanges"] = [{"prompt": prompt, "answer": answer} for prompt, answer in asked]
        found["prompt"] = "\n\n".join(prompt for prompt, _ in asked)
    return found


async def _compactions(services: Services, thread: ThreadKey) -> list[Entry]:
    fold = await services.rows.rows(thread)
    seqs = [row.seq[0] for row in fold.rows if row.family == "compaction"]
    return await services.worker.log.entries_at(thread, seqs)


async def _card(services: Services, thread: ThreadKey) -> dict[str, Any]:
    """Return what the compaction store holds now, and whether it still fits the history."""
    worker = services.worker
    store = RedisCompactionStore(worker.clients, worker.keys, thread.owner)
    entry = await store.get(thread.thread_id)
    live = [found.message for found in (await worker.history.read(thread)).live]
    compaction = worker.agent.compaction
    settings = compaction.settings if compaction is not None else Settings()
    choices = worker.operator.choices(thread)
    card = compaction_card(
        entry,
        live,
        settings,
        await worker.log.now(),
        await choices.pins(thread.thread_id),
        await choices.overrides(thread.thread_id),
    )
    ends_at = await worker.log.lifetime.ends_at(thread)
    return card if ends_at is None else {**card, "expires": ends_at}


async def _call(request: Request, services: Services, thread: ThreadKey) -> Call:
    text = request.path_params["call"]
    call = None
    if text == "latest":
        call = await services.calls.call(thread, None)
    elif text.isdecimal() and len(text) <= DIGITS:
        call = await services.calls.call(thread, int(text))
    if call is None:
        raise RequestRefused("not_found", f"There is no call {text}.", {"thread": thread.key})
    return call


def _attempt(request: Request, call: Call) -> Attempt:
    wanted = number(request.query_params, "attempt", len(call.attempts))
    for attempt in call.attempts:
        if attempt.record["attempt"] == wanted:
            return attempt
    raise RequestRefused("not_found", f"Call {call.number} has no attempt {wanted}.")


async def _live_run(services: Services, thread: ThreadKey) -> str:
    return (await services.worker.log.head(thread)).run


def _is_written_back(entry: Entry) -> bool:
    return bool(json.loads(entry.body).get("write_back", {}).get("stored"))


def _has_summary(entry: Entry) -> bool:
    body: Mapping[str, Any] = json.loads(entry.body)
    return bool(body.get("summary"))
