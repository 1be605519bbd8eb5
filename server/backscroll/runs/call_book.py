"""Model calls of a thread, read from its log: heads, attempts, what was sent, and its bytes.

Everything is a function of the log, the stored history and the call's number: nothing is planned
again and nothing is taken from the present compaction store.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.compaction.rebuild import Rebuilt, rebuild, rebuild_request, sent_bytes
from backscroll.compaction.record_spans import spans_for_api
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelRequest
from backscroll.providers.wires import UnknownWire, encode_from_setup
from backscroll.store.entry import Entry
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog

THREADS = 32
_OUTCOMES = ("finished", "failed", "cancelled")
_COPIED = ("message", "usage", "ms", "finish_reason", "tries", "error")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of a call: its record, and what came of it, if that is known."""

    seq: int
    time: int
    record: Mapping[str, Any]
    outcome: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call with its attempts, oldest first."""

    number: int
    attempts: tuple[Attempt, ...]

    def head(self, is_live: bool) -> dict[str, Any]:
        """Return the call in one line of facts; `is_live` while its run is active."""
        first, last = self.attempts[0], self.attempts[-1]
        record = last.record
        head: dict[str, Any] = {
            "call": self.number,
            "attempts": len(self.attempts),
            "seq": first.seq,
            "run": record.get("run", ""),
            "iteration": record.get("iteration"),
            "provider": record["model"]["provider"],
            "model": record["model"]["name"],
            "status": _status(last, is_live),
            "started": first.time,
            "compaction": record.get("compaction"),
        }
        for name in _COPIED:
            if last.outcome is not None and name in last.outcome:
                head[name] = last.outcome[name]
        return {name: value for name, value in head.items() if value is not None}

    def whole(self, is_live: bool) -> dict[str, Any]:
        """Return the head and every attempt with its spans and budget."""
        attempts = []
        for attempt in self.attempts:
            shown = spans_for_api(attempt.record)
            shown["status"] = _status(attempt, is_live)
            for name in ("usage", "ms", "finish_reason", "error"):
                if attempt.outcome is not None and name in attempt.outcome:
                    shown[name] = attempt.outcome[name]
            attempts.append(shown)
        return {**self.head(is_live), "attempts": attempts}


class CallBook:
    """Reads the calls of any thread."""

    def __init__(self, log: ThreadLog) -> None:
        self._log = log
        self._numbers: OrderedDict[ThreadKey, dict[int, int]] = OrderedDict()
        self._history = HistoryReader(log.clients, log.keys)

    async def calls(self, thread: ThreadKey) -> list[Call]:
        """Return all calls of a thread, oldest first."""
        seqs = await self._log.call_seqs(thread)
        return read_calls(await self._log.entries_at(thread, seqs))

    async def call(self, thread: ThreadKey, number: int | None) -> Call | None:
        """Return one call, the newest for None; only its own entries are read."""
        numbers = await self._places(thread)
        wanted = max(numbers.values(), default=None) if number is None else number
        seqs = [seq for seq, found in numbers.items() if found == wanted]
        calls = read_calls(await self._log.entries_at(thread, seqs))
        return calls[0] if calls else None

    async def _places(self, thread: ThreadKey) -> dict[int, int]:
        """Return the number of the call that each call entry belongs to, by seq."""
        seqs = await self._log.call_seqs(thread)
        known = self._numbers.pop(thread, {})
        if len(known) > len(seqs):
            known = {}
        new = [seq for seq in seqs if seq not in known]
        known.update((e.seq, int(e.ref)) for e in await self._log.entries_at(thread, new))
        self._numbers[thread] = known
        while len(self._numbers) > THREADS:
            self._numbers.popitem(last=False)
        return known

    async def sent(self, thread: ThreadKey, attempt: Attempt) -> Rebuilt:
        """Return the messages of an attempt as they were sent, rebuilt from its record."""
        return rebuild(attempt.record, *await self._material(thread, attempt))

    async def request(self, thread: ThreadKey, attempt: Attempt) -> dict[str, Any]:
        """Return the request body of an attempt, and whether its hash is the recorded one."""
        return request_json(attempt.record, *await self._material(thread, attempt))

    async def _material(
        self, thread: ThreadKey, attempt: Attempt
    ) -> tuple[list[tuple[int, Message]], dict[str, bytes]]:
        stored = await self._history.read(thread)
        blobs = await self._log.blobs(thread, sorted(blob_names(attempt.record)))
        past = await self._history.past(thread, stored, rewrites_of(attempt.record))
        return past, blobs


def read_calls(entries: Iterable[Entry]) -> list[Call]:
    """Return the calls that entries of kind `call` tell of."""
    attempts: dict[int, list[Attempt]] = {}
    for entry in entries:
        body = json.loads(entry.body)
        known = attempts.setdefault(int(entry.ref), [])
        if entry.type == "started":
            known.append(Attempt(entry.seq, entry.time, body))
        elif entry.type in _OUTCOMES:
            for place, attempt in enumerate(known):
                if attempt.record["attempt"] == body["attempt"] and attempt.outcome is None:
                    known[place] = Attempt(attempt.seq, attempt.time, attempt.record, body)
    return [Call(number, tuple(found)) for number, found in attempts.items() if found]


def request_json(
    record: Mapping[str, Any],
    history: Sequence[tuple[int, Message]],
    blobs: Mapping[str, bytes],
) -> dict[str, Any]:
    """Return a request body rebuilt from its record, and whether hashes are the recorded ones.

    `matches` is absent where the body cannot be compared: its encoder is not in this program, or
    no hash of it was recorded.
    """
    rebuilt = rebuild_request(record, history, blobs)
    sent = rebuild(record, history, blobs)
    answer: dict[str, Any] = {"provider": record["model"]["provider"]}
    if rebuilt.missing:
        return {**answer, "missing": list(rebuilt.missing)}
    canon = [form for form in sent.sent if form is not None]
    digest = hashlib.sha256(sent_bytes(canon)).hexdigest()
    answer["sent_matches"] = digest == record["sent"]["sha256"]
    body = _wire_body(record, blobs, rebuilt.request)
    if body is None:
        answer["body"] = [json.loads(form) for form in canon]
        return {**answer, "sha256": digest}
    answer["body"] = json.loads(body)
    answer["sha256"] = hashlib.sha256(body).hexdigest()
    if "wire_sha256" in record:
        answer["matches"] = answer["sha256"] == record["wire_sha256"]
    return answer


def blob_names(record: Mapping[str, Any]) -> set[str]:
    """Return the names of all blobs a record needs."""
    names = {span["blob"] for span in record.get("view", ()) if "blob" in span}
    names |= {name for _, name in record.get("bodies", ())}
    asked = record.get("request", {})
    more: Sequence[Any] = (
        record.get("whole"),
        asked.get("tools"),
        asked.get("texts"),
        record.get("model", {}).get("setup"),
    )
    return names | {name for name in more if isinstance(name, str) and name}


def rewrites_of(record: Mapping[str, Any]) -> int:
    """Return how often write-back had shortened the history that a record was made from."""
    return int(record.get("history", {}).get("rewrites", 0))


def sent_json(rebuilt: Rebuilt, first: int, last: int) -> list[dict[str, Any]]:
    """Return sent messages at positions first to last, from 1; a body that is gone says so."""
    found = []
    for place in range(max(first, 1), min(last, len(rebuilt.sent)) + 1):
        form = rebuilt.sent[place - 1]
        body = {"missing": True} if form is None else json.loads(form)
        found.append({"sent": place, **body})
    return found


def _wire_body(
    record: Mapping[str, Any], blobs: Mapping[str, bytes], request: ModelRequest
) -> bytes | None:
    """Return the bytes of a request by the encoder that wrote it, None where there is none."""
    setup = blobs.get(record["model"].get("setup", ""))
    if setup is None:
        return None
    try:
        return encode_from_setup(json.loads(setup), request, bool(record["request"]["stream"]))
    except UnknownWire:
        return None


def _status(attempt: Attempt, is_live: bool) -> str:
    if attempt.outcome is None:
        return "running" if is_live else "unknown"
    return str(attempt.outcome["status"])
