"""A refused request leaves a note in the thread it named, where that helps somebody."""

from __future__ import annotations

import json

import pytest
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.request import Note
from backscroll.runs.notes import note_entry
from backscroll.runs.refusals import Refusals
from backscroll.store.connection import RedisClients, connect
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import ThreadLog
from cutting_proxy import cutting_proxy

T = ThreadKey("local", "t")


@pytest.fixture
async def log(clients: RedisClients, keys: Keys) -> ThreadLog:
    """Give a log with a thread t of one entry."""
    found = ThreadLog(clients, keys, "w")
    await found.append(T, [note_entry(Note("first", "it exists"))], fence=0)
    return found


async def told(log: ThreadLog) -> list[dict[str, str]]:
    """Return what the notes of the thread say, but the first."""
    return [json.loads(entry.body) for entry in await log.read(T, 0, 100)][1:]


async def test_a_refusal_is_noted_in_its_thread(log: ThreadLog) -> None:
    """With its code and the run that was refused; a request that names no thread leaves nothing."""
    refusals = Refusals(log)

    await refusals.note("local", RequestRefused("thread_busy", "Busy.").for_request("t", "r"))
    await refusals.note("local", RequestRefused("not_json", "no object"))

    (note,) = await told(log)
    assert (note["code"], note["refused_run"], note["text"]) == ("thread_busy", "r", "Busy.")


@pytest.mark.parametrize("code", ["draining", "unavailable"])
async def test_what_is_no_fault_of_the_request(log: ThreadLog, code: str) -> None:
    """A worker that leaves, or has no room, is nothing to note in a thread."""
    await Refusals(log).note("local", RequestRefused(code, "Later.").for_request("t", "r"))

    assert await told(log) == []


async def test_a_thread_is_not_made_by_a_note(log: ThreadLog) -> None:
    """Of a thread that does not exist nothing is written."""
    refusal = RequestRefused("nothing_to_run", "Nothing.").for_request("new", "r")

    await Refusals(log).note("local", refusal)

    assert not (await log.head(ThreadKey("local", "new"))).exists


async def test_a_note_that_cannot_be_written_is_no_new_fault(
    valkey_url: str, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """The sender gets its refusal, the server's log the failure."""
    async with cutting_proxy(valkey_url) as proxy:
        clients = connect(proxy.url)
        proxy.cuts = 1_000_000
        refusal = RequestRefused("thread_busy", "Busy.").for_request("t", "r")
        await Refusals(ThreadLog(clients, keys, "w")).note("local", refusal)
        await clients.close()

    assert "a refusal was not noted" in caplog.text
