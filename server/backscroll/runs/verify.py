"""A whole thread checked: every request rebuilt from its record and compared with its hashes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from backscroll.runs.call_book import blob_names, read_calls, request_json, rewrites_of
from backscroll.store.history_reader import HistoryReader
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog

Verdict = Literal["same", "incomparable", "differs", "missing"]


@dataclass(frozen=True, slots=True)
class Checked:
    """One request of a call, and whether its messages and its body are what was recorded."""

    call: int
    attempt: int
    verdict: Verdict
    why: str = ""

    @property
    def is_wrong(self) -> bool:
        """Say whether the request cannot be shown exactly as it was sent."""
        return self.verdict in ("differs", "missing")

    def __str__(self) -> str:
        words = {"incomparable": "cannot be compared", "missing": "cannot be rebuilt"}
        told = f"call {self.call}, attempt {self.attempt}: {words.get(self.verdict, self.verdict)}"
        return f"{told}: {self.why}" if self.why else told


async def verify_thread(log: ThreadLog, thread: ThreadKey) -> AsyncIterator[Checked]:
    """Yield what became of every request of a thread, oldest first; nothing is written."""
    reader = HistoryReader(log.clients, log.keys)
    history = await reader.read(thread)
    seqs = await log.call_seqs(thread)
    for call in read_calls(await log.entries_at(thread, seqs)):
        for attempt in call.attempts:
            blobs = await log.blobs(thread, sorted(blob_names(attempt.record)))
            past = await reader.past(thread, history, rewrites_of(attempt.record))
            found = request_json(attempt.record, past, blobs)
            yield judge(call.number, attempt.record, found)


def judge(call: int, record: Mapping[str, Any], found: Mapping[str, Any]) -> Checked:
    """Return the verdict on a request that `request_json` rebuilt from its record."""
    attempt = int(record["attempt"])
    if "missing" in found:
        return Checked(call, attempt, "missing", f"gone: {', '.join(found['missing'])}")
    if not found["sent_matches"]:
        return Checked(call, attempt, "differs", "the messages are not those that were sent")
    if "matches" not in found:
        return Checked(call, attempt, "incomparable", f"messages exact, {_why_no_body(record)}")
    if not found["matches"]:
        return Checked(call, attempt, "differs", "messages exact, the body has other bytes")
    return Checked(call, attempt, "same")


def _why_no_body(record: Mapping[str, Any]) -> str:
    if "wire_sha256" not in record:
        return "no hash of the body was recorded"
    return f"body written by {record['model'].get('wire', 'an encoder')}, which is not here"
