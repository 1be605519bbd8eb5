"""The operator API on a thread's log: entries, folded rows, and exports."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from backscroll import __version__
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.canon import clean_text
from backscroll.runs.entry_json import entry_full, entry_head
from backscroll.runs.fold_row import Row, family_of
from backscroll.store.entry import Entry
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog
from backscroll.web.answers import (
    SECURITY_HEADERS,
    choice,
    json_answer,
    number,
    path_number,
    services_of,
    thread_of,
    words,
)
from backscroll.web.download import Download

MOST = 1000
SEARCHED = 5000
PAGE = 1000


async def list_entries(request: Request) -> Response:
    """Return entries after, before or around a seq, filtered; `next` is where to go on."""
    thread, query = thread_of(request), request.query_params
    log = services_of(request).worker.log
    full = choice(query, "fields", ("head", "full"), "head") == "full"
    limit = number(query, "limit", 200, MOST) or 200
    show = entry_full if full else entry_head
    head = await log.head(thread)
    answer: dict[str, Any] = {"floor": head.floor, "head": head.seq}
    before, around = number(query, "before"), number(query, "around")
    if before is not None:
        found = await log.read_before(thread, before, limit)
        more = bool(found) and found[0].seq > head.floor + 1
        return json_answer({"entries": [show(e) for e in found], **answer, "more": more})
    after = number(query, "after", 0) or 0
    if around is not None:
        after = max(around - limit // 2 - 1, 0)
    keep = _filter(query)
    kept: list[Entry] = []
    searched = 0
    while len(kept) < limit and searched < SEARCHED:
        page = await log.read(thread, after, min(PAGE, SEARCHED))
        searched += len(page)
        for entry in page:
            after = entry.seq
            if keep(entry):
                kept.append(entry)
                if len(kept) == limit:
                    break
        if len(page) < PAGE:
            break
    answer.update(more=after < head.seq, next=after)
    return json_answer({"entries": [show(e) for e in kept], **answer})


async def get_entry(request: Request) -> Response:
    """Return one entry with its body, or with `raw=1` the body alone."""
    thread = thread_of(request)
    seq = path_number(request, "seq")
    entry = await services_of(request).worker.log.entry(thread, seq)
    if entry is None:
        raise RequestRefused("not_found", f"There is no entry {seq}.", {"thread": thread.key})
    if request.query_params.get("raw") == "1":
        headers = {**SECURITY_HEADERS, "Cache-Control": "no-store"}
        return Response(entry.body, 200, headers, "application/json")
    return json_answer(entry_full(entry))


async def list_rows(request: Request) -> Response:
    """Return folded rows by number; without `start` the last ones, with `around` those at a seq."""
    thread, query = thread_of(request), request.query_params
    fold = await services_of(request).rows.rows(thread)
    limit = number(query, "limit", 200, MOST) or 200
    keep = _row_filter(query)
    rows = fold.rows if keep is None else [row for row in fold.rows if keep(row)]
    start = number(query, "start")
    around = number(query, "around")
    if around is not None:
        at = next((n for n, row in enumerate(rows) if row.seq[1] >= around), len(rows))
        start = max(at - limit // 2, 0) + 1
    if start is None:
        start = max(len(rows) - limit, 0) + 1
    start = max(start, 1)
    shown = [row.to_dict() for row in rows[start - 1 : start - 1 + limit]]
    return json_answer({"rows": shown, "start": start, "total": len(rows), "head": fold.head})


async def export(request: Request) -> Response:
    """Stream a thread as a download: AG-UI events, or all entries, one JSON line each."""
    thread, query = thread_of(request), request.query_params
    format_ = choice(query, "format", ("events", "entries"), "events")
    log = services_of(request).worker.log
    head = await log.head(thread)
    keep = _filter(query)
    day = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", thread.key)[:80] or "thread"
    name = f"{safe}_{head.floor + 1}-{head.seq}_{format_}_{day}_v{__version__}.jsonl"
    headers = {
        **SECURITY_HEADERS,
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    lines = _lines(log, thread, head.seq, format_ == "events", keep)
    timeout_s = services_of(request).limits.send_timeout_s
    return Download(lines, headers, "application/x-ndjson", timeout_s)


async def _lines(
    log: ThreadLog, thread: ThreadKey, until: int, events: bool, keep: Callable[[Entry], bool]
) -> AsyncIterator[bytes]:
    after = 0
    while after < until:
        page = await log.read(thread, after, PAGE)
        if not page:
            return
        for entry in page:
            after = entry.seq
            if entry.seq > until or not keep(entry) or (events and entry.kind != "event"):
                continue
            if events:
                yield entry.body + b"\n"
            else:
                yield clean_text(json.dumps(entry_full(entry), ensure_ascii=False)).encode() + b"\n"


def _filter(query: Mapping[str, str]) -> Callable[[Entry], bool]:
    kinds, types, families = words(query, "kind"), words(query, "type"), words(query, "family")
    run, audience = query.get("run"), query.get("audience")
    since, until = number(query, "from"), number(query, "to")
    text = query.get("q", "").casefold()

    def keep(entry: Entry) -> bool:
        return (
            (not kinds or entry.kind in kinds)
            and (not types or entry.type in types)
            and (not families or family_of(entry.kind, entry.type) in families)
            and (run is None or entry.run == run)
            and (audience is None or entry.audience == audience)
            and (since is None or entry.time >= since)
            and (until is None or entry.time <= until)
            and (not text or text in entry.body.decode("utf-8", "replace").casefold())
        )

    return keep


def _row_filter(query: Mapping[str, str]) -> Callable[[Row], bool] | None:
    families, statuses = words(query, "family"), words(query, "status")
    run, text = query.get("run"), query.get("q", "").casefold()
    since, until = number(query, "from"), number(query, "to")
    if not (families or statuses or run or text or since is not None or until is not None):
        return None

    def keep(row: Row) -> bool:
        searched = f"{row.title} {row.subject} {row.preview} {row.ref or ''}".casefold()
        return (
            (not families or row.family in families)
            and (not statuses or row.status in statuses)
            and (run is None or row.run == run)
            and (since is None or row.started >= since)
            and (until is None or row.started <= until)
            and text in searched
        )

    return keep
