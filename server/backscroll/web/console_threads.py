"""The operator API on threads: their list, one head, its runs, its messages, a stop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.compaction.tokens import Sizes, estimate
from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.store.entry import one_line
from backscroll.store.history import StoredMessage, message_head
from backscroll.store.run_record import RunInfo
from backscroll.store.threads import ThreadRecord, ThreadStore
from backscroll.web.answers import (
    DIGITS,
    choice,
    json_answer,
    json_body,
    no_thread,
    number,
    services_of,
    thread_of,
    words,
)

SCANNED = 2000
PAGE = 200

_Place = tuple[int, str]
_SORTS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "activity": lambda head: head["activity"],
    "thread": lambda head: head["thread"],
    "title": lambda head: head["title"],
    "status": lambda head: head["status"],
    "agent": lambda head: head["agent"],
    "runs": lambda head: head["runs"],
    "messages": lambda head: head["messages"],
    "entries": lambda head: head["entries"],
    "compactions": lambda head: head["compactions"],
    "errors": lambda head: head["errors"],
    "model": lambda head: head.get("model", ""),
    "questions": lambda head: head["questions"],
    "context": lambda head: head.get("context", {}).get("tokens", 0),
}


def thread_head(record: ThreadRecord) -> dict[str, Any]:
    """Return a thread's head as operators see it."""
    head: dict[str, Any] = {
        "thread": record.thread.key,
        "thread_id": record.thread.thread_id,
        "owner": record.thread.owner,
        "agent": record.agent,
        "title": record.title,
        "archived": record.archived,
        "status": record.status,
        "runs": record.runs,
        "messages": record.messages,
        "entries": record.entries,
        "compactions": record.counts.get("compaction", 0),
        "errors": record.errors,
        "questions": record.questions,
        "started": record.started,
        "activity": record.activity,
    }
    if record.run:
        head["run"], head["worker"] = record.run, record.worker
    if "model" in record.extra:
        head["model"] = record.extra["model"]
    if "context" in record.extra:
        head["context"] = json.loads(record.extra["context"])
    return head


async def list_threads(request: Request) -> Response:
    """List threads, filtered and sorted; `next` leads to the next page."""
    query = request.query_params
    limit = number(query, "limit", 50, PAGE) or 50
    sort = query.get("sort", "-activity")
    key = _SORTS.get(sort.removeprefix("-"))
    if key is None:
        allowed = ", ".join(_SORTS)
        raise RequestRefused.of_problems([Problem("sort", f"must be one of {allowed}")])
    keep, threads = _filter(query), services_of(request).worker.threads
    before, owner = _cursor(query.get("cursor")), query.get("owner")
    if sort == "-activity":
        found, after = await _page(threads, keep, owner, before, limit)
    else:
        # Another order needs all of them; of very many, those that were active last.
        start = before[0] if before is not None else 0
        every, _ = await _page(threads, keep, owner, None, SCANNED)
        every.sort(key=key, reverse=sort.startswith("-"))
        found = every[start : start + limit]
        after = (start + limit, "") if start + limit < len(every) else None
    answer: dict[str, Any] = {"threads": found}
    if after is not None:
        answer["next"] = f"{after[0]}:{after[1]}"
    return json_answer(answer)


async def _page(
    threads: ThreadStore,
    keep: Callable[[dict[str, Any]], bool],
    owner: str | None,
    before: _Place | None,
    limit: int,
) -> tuple[list[dict[str, Any]], _Place | None]:
    """Return heads by last activity, and where to go on, None at the end.

    Searching works in bounded steps: a page may hold less than asked for and yet have a next one.
    """
    found: list[dict[str, Any]] = []
    for _ in range(SCANNED // PAGE):
        page = await threads.heads(owner, before=before, limit=PAGE)
        for at, record in enumerate(page):
            head = thread_head(record)
            if keep(head):
                found.append(head)
            before = (record.indexed, record.thread.key)
            if len(found) == limit:
                is_last = at + 1 == len(page) < PAGE
                return found, None if is_last else before
        if len(page) < PAGE:
            return found, None
    return found, before


async def get_thread(request: Request) -> Response:
    """Return one thread's head with what only its own page shows."""
    thread = thread_of(request)
    worker = services_of(request).worker
    record = await worker.threads.record(thread)
    if record is None:
        raise no_thread(thread.key)
    runs = await worker.registry.store.runs(thread)
    head = thread_head(record)
    head.update(floor=record.floor, head=record.entries, counts=dict(record.counts))
    head["models"] = sorted({m["model"] for run in runs for m in run.details.get("usage", ())})
    if record.pause:
        head["pause"] = record.pause
    if record.run:
        head["lease"] = {"fence": record.fence, "until": record.lease}
    state = await worker.log.state(thread)
    if state is not None:
        head["state"] = json.loads(state)
    return json_answer(head)


async def list_runs(request: Request) -> Response:
    """Return the runs of a thread, oldest first."""
    thread = thread_of(request)
    runs = await services_of(request).worker.registry.store.runs(thread)
    return json_answer({"runs": [run_json(run) for run in runs]})


def run_json(run: RunInfo) -> dict[str, Any]:
    """Return a run as operators see it."""
    found: dict[str, Any] = {
        "run": run.run_id,
        "status": run.status,
        "agent": run.agent,
        "started": run.started,
        "seq": [run.first, run.last],
    }
    if run.ended is not None:
        found["ended"] = run.ended
    if run.error:
        found["error"] = run.error
    return {**found, **run.details}


async def list_messages(request: Request) -> Response:
    """Return stored messages by position, by ids, or with a text; superseded ones are marked."""
    thread = thread_of(request)
    query = request.query_params
    full = choice(query, "fields", ("head", "full"), "head") == "full"
    reader = services_of(request).worker.history
    total = await reader.total(thread)
    if "ids" in query:
        stored = await reader.by_ids(thread, sorted(words(query, "ids")))
    else:
        first = number(query, "from", 1) or 1
        last = number(query, "to", total)
        stored = await reader.stored(thread, first, total if last is None else last)
    if query.get("q"):
        wanted = query["q"].casefold()
        stored = [found for found in stored if wanted in _searched(found).casefold()]
    sizes = Sizes()
    shown = [message_json(found, sizes, full=full) for found in stored]
    return json_answer({"messages": shown, "total": total})


def message_json(stored: StoredMessage, sizes: Sizes, *, full: bool) -> dict[str, Any]:
    """Return a stored message: its head, or all of it with the head's facts."""
    message = stored.message
    head = message_head(stored.position, message)
    head.pop("bytes", None)
    calls = ", ".join(f"{call.name}({call.args_text})" for call in message.tool_calls)
    head["preview"] = one_line(clean_text(message.text or calls))
    head["tokens"] = estimate(sizes.message(message), 1.0)
    if stored.run:
        head["run"] = stored.run
    head.update(seq=stored.seq, time=stored.time)
    if stored.marks:
        head["marks"] = list(stored.marks)
    return {**head, "message": message.to_dict()} if full else head


async def get_message(request: Request) -> Response:
    """Return one stored message, whole; a superseded or archived one too."""
    thread = thread_of(request)
    reader = services_of(request).worker.history
    name = unquote(request.path_params["message"])
    found = await reader.by_ids(thread, [name])
    if not found:
        # Only live messages are found by their id; a superseded one is looked for.
        stored = await reader.stored(thread, 1, await reader.total(thread))
        found = [one for one in reversed(stored) if one.message.id == name]
    if not found:
        raise RequestRefused("not_found", f"There is no message {name}.", {"thread": thread.key})
    return json_answer(found[0].message.to_dict())


async def cancel_run(request: Request) -> Response:
    """Ask the active run, or the one named, to stop."""
    thread = thread_of(request)
    worker = services_of(request).worker
    body = await json_body(request)
    record = await worker.threads.record(thread)
    if record is None:
        raise no_thread(thread.key)
    run = body.get("run", record.run)
    if not isinstance(run, str):
        raise RequestRefused.of_problems([Problem("run", "must be text")])
    stopping = bool(run) and await worker.registry.store.stop(thread, run)
    return json_answer({"stopping": stopping})


def _searched(stored: StoredMessage) -> str:
    calls = " ".join(f"{call.name} {call.args_text}" for call in stored.message.tool_calls)
    return f"{stored.message.text} {calls}"


def _filter(query: Mapping[str, str]) -> Callable[[dict[str, Any]], bool]:
    text = query.get("q", "").casefold()
    statuses, has = words(query, "status"), words(query, "has")
    agent = query.get("agent")
    since, until = number(query, "from"), number(query, "to")

    def keep(head: dict[str, Any]) -> bool:
        searched = canonical_json([head["thread_id"], head["title"], head["owner"]]).casefold()
        return (
            text in searched
            and (not statuses or head["status"] in statuses)
            and (agent is None or head["agent"] == agent)
            and ("compactions" not in has or head["compactions"] > 0)
            and ("failures" not in has or head["errors"] > 0)
            and ("questions" not in has or head["questions"] > 0)
            and (since is None or head["activity"] >= since)
            and (until is None or head["activity"] <= until)
        )

    return keep


def _cursor(text: str | None) -> _Place | None:
    if text is None:
        return None
    time, colon, key = text.partition(":")
    if not colon or not (time.isascii() and time.isdecimal() and len(time) <= DIGITS):
        raise RequestRefused.of_problems([Problem("cursor", "must be the `next` of a page")])
    return int(time), key
