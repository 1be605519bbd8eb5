"""Model calls as they are read back from the log."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.kernel.errors import ModelError
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from backscroll.runs.call_book import CallBook, blob_names, read_calls, sent_json
from backscroll.store.entry import Entry
from played_model import Said, call, calls
from scripted_provider import Reply, ScriptedProvider
from working import agent_of, begun, held, key, run, working


@tool
def add(a: int) -> int:
    """Add."""
    return a


def entry(seq: int, type_: str, number: int, body: dict[str, Any]) -> Entry:
    """Return an entry of a call."""
    data = json.dumps(body).encode()
    return Entry(seq, 1000 + seq, "r", "call", type_, "operator", str(number), "", "w", data)


def record(attempt: int = 1, **members: Any) -> dict[str, Any]:
    """Return as much of a record as a head needs."""
    return {"attempt": attempt, "run": "r", "model": {"provider": "p", "name": "m"}, **members}


async def test_calls_are_read_with_their_outcome(valkey_url: str, prefix: str) -> None:
    """Each call once, oldest first, with what came of it."""
    script = (calls(call("add", {"a": 1})), Said("three"))
    async with working(agent_of(*script, tools=[add]), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        book = CallBook(worker.log)
        first, second = await book.calls(key())
        alone = await book.call(key(), 1)
        newest = await book.call(key(), None)

        assert await book.call(key(), 9) is None
        assert await book.call(key("nope"), None) is None
    assert alone == first and newest == second
    head = first.head(is_live=False)
    assert (head["call"], head["status"], head["run"], head["iteration"]) == (1, "ok", "r", 1)
    assert (head["finish_reason"], second.head(False)["finish_reason"]) == ("tool_calls", "stop")
    whole = second.whole(is_live=False)["attempts"]
    assert [a["status"] for a in whole] == ["ok"] and whole[0]["history"]["messages"] == 3


async def test_later_calls_of_a_known_thread_are_found(valkey_url: str, prefix: str) -> None:
    """What the book remembers of a thread does not hide what came since."""
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        book = CallBook(worker.log)
        numbers = []
        for n in (1, 2):
            await run(worker, "t", f"r{n}", *[f"m{k}" for k in range(n)])
            newest = await book.call(key(), None)
            numbers.append(newest and newest.number)

    assert numbers == [1, 2]


async def test_a_live_call_is_running_and_a_lost_one_unknown(valkey_url: str, prefix: str) -> None:
    """Without an outcome it depends on whether its run is active."""
    async with working(agent_of(held()), valkey_url, prefix) as worker:
        await begun(worker)
        found = await CallBook(worker.log).call(key(), 1)

    assert found is not None
    assert found.head(is_live=True)["status"] == "running"
    assert found.whole(is_live=False)["attempts"][0]["status"] == "unknown"


async def test_the_request_is_rebuilt_to_the_byte(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC1: messages and body are what the provider received, and both hashes agree."""
    provider.add(Reply(text="hello"))
    model = OpenAIModel("m", base_url=provider.base_url, api_key="secret-key")
    agent = Agent(name="a", model=model, instructions="Be kind.", tools=[add])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi 你好")
        book = CallBook(worker.log)
        found = await book.call(key(), 1)
        assert found is not None
        request = await book.request(key(), found.attempts[0])
        rebuilt = await book.sent(key(), found.attempts[0])
        exported = b"".join(e.body for e in await worker.log.read(key(), 0))
        await agent.aclose()

    received = provider.requests[0]
    assert request["matches"] is True and request["sent_matches"] is True
    assert request["sha256"] == hashlib.sha256(received.body).hexdigest()
    assert request["body"] == received.json and request["provider"] == model.provider
    assert [m["role"] for m in sent_json(rebuilt, 1, 9)] == ["system", "user"]
    assert b"secret-key" not in exported


async def test_a_model_without_a_wire_shows_its_messages(valkey_url: str, prefix: str) -> None:
    """There is no body to compare, so the messages stand for it and nothing is claimed."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        book = CallBook(worker.log)
        found = await book.call(key(), 1)
        assert found is not None
        request = await book.request(key(), found.attempts[0])

    assert "matches" not in request and request["sent_matches"] is True
    assert [m["role"] for m in request["body"]] == ["user"]


async def test_what_is_gone_is_named(valkey_url: str, prefix: str) -> None:
    """REC10: a record whose blobs are gone says which, and shows the rest."""
    agent = agent_of("x", instructions="Be kind.")
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        await worker.clients.write.delete(worker.keys.blobs(key()))
        book = CallBook(worker.log)
        found = await book.call(key(), 1)
        assert found is not None
        request = await book.request(key(), found.attempts[0])
        rebuilt = await book.sent(key(), found.attempts[0])

    assert request["missing"] and "body" not in request
    assert sent_json(rebuilt, 1, 9)[0] == {"sent": 1, "missing": True}
    assert sent_json(rebuilt, 2, 2)[0]["role"] == "user"


async def test_an_encoder_that_is_gone_claims_nothing(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """A body written by an encoder we do not have is shown as messages."""
    provider.add(Reply(text="hello"))
    agent = Agent(name="a", model=OpenAIModel("m", base_url=provider.base_url, api_key="k"))
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        book = CallBook(worker.log)
        found = await book.call(key(), 1)
        assert found is not None
        attempt = found.attempts[0]
        name = attempt.record["model"]["setup"]
        blobs = await worker.log.blobs(key(), [name])
        setup = {**json.loads(blobs[name]), "wire": "other-wire/9"}
        await worker.clients.write.hset(worker.keys.blobs(key()), name, json.dumps(setup))
        request = await book.request(key(), attempt)
        await agent.aclose()

    assert "matches" not in request and request["body"][0]["role"] == "user"


def test_attempts_belong_to_one_call() -> None:
    """A forced compaction is attempt 2; each outcome goes to its own attempt."""
    found = read_calls(
        [
            entry(1, "started", 4, record(1)),
            entry(2, "failed", 4, {"attempt": 1, "status": "error", "error": {"kind": "x"}}),
            entry(3, "started", 4, record(2, compaction=7)),
            entry(4, "finished", 4, {"attempt": 2, "status": "ok", "ms": 5, "message": "m1"}),
            entry(5, "odd", 4, {"attempt": 2}),
            entry(6, "finished", 9, {"attempt": 1, "status": "ok"}),
        ]
    )

    (one,) = found
    assert [a.outcome and a.outcome["status"] for a in one.attempts] == ["error", "ok"]
    head = one.head(is_live=False)
    assert (head["attempts"], head["seq"], head["started"], head["compaction"]) == (2, 1, 1001, 7)
    assert (head["ms"], head["message"]) == (5, "m1") and "error" not in head


def test_the_blobs_of_a_record() -> None:
    """Everything a rebuild needs is named once."""
    names = blob_names(
        {
            "view": [{"fate": "injected", "blob": "a"}, {"fate": "kept"}],
            "bodies": [[2, "b"]],
            "whole": "c",
            "request": {"tools": "d", "texts": "e"},
            "model": {"setup": "f"},
        }
    )

    assert names == set("abcdef")
    assert blob_names({}) == set()


async def test_threads_are_remembered_within_bounds(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least recently asked one is forgotten, and found again when asked."""
    monkeypatch.setattr("backscroll.runs.call_book.THREADS", 1)
    async with working(agent_of("a", "b"), valkey_url, prefix) as worker:
        await run(worker, "t1", "r1", "hi")
        await run(worker, "t2", "r2", "hi")
        book = CallBook(worker.log)
        for thread in ("t1", "t2", "t1"):
            found = await book.call(key(thread), 1)

            assert found is not None and found.attempts[0].record["run"] == f"r{thread[1]}"


async def test_a_failed_call_says_how(valkey_url: str, prefix: str) -> None:
    """The error of the outcome is in head and attempt."""
    async with working(agent_of(ModelError("auth", "no key")), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        found = await CallBook(worker.log).call(key(), 1)

    assert found is not None
    assert found.head(False)["error"] == {"kind": "auth", "message": "no key"}
    assert found.whole(False)["attempts"][0]["error"]["kind"] == "auth"
