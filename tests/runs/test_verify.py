"""A whole thread checked against its records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from backscroll.runs.verify import Checked, judge, verify_thread
from backscroll.runs.worker import Worker
from played_model import call, calls
from scripted_provider import Reply, ScriptedProvider
from working import agent_of, entries, key, run, working


@tool
def add(a: int) -> int:
    """Add."""
    return a


def agent_at(provider: ScriptedProvider) -> Agent:
    """Return an agent that speaks to the scripted provider."""
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k")
    return Agent(name="a", model=model, instructions="Be kind.", tools=[add])


async def verdicts(worker: Worker) -> list[Checked]:
    """Return what became of every request of the thread."""
    return [found async for found in verify_thread(worker.log, key())]


async def test_every_request_of_a_thread_is_as_recorded(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC1: each call is rebuilt, messages and body, and nothing differs; the log has not grown."""
    provider.add(Reply(text="one"), Reply(text="two 你好"))
    async with working(agent_at(provider), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        await run(worker, "t", "r2", "hi", "more")
        before = await entries(worker)

        found = await verdicts(worker)

        assert await entries(worker) == before
    assert found == [Checked(1, 1, "same"), Checked(2, 1, "same")]


async def test_a_changed_message_is_found(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """A history that somebody altered behind our back is told, call by call."""
    provider.add(Reply(text="one"))
    async with working(agent_at(provider), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        name = worker.keys.messages(key())
        element = await worker.clients.write.lindex(name, 0)
        await worker.clients.write.lset(name, 0, element.replace(b"hi", b"ho"))

        found = await verdicts(worker)

    assert [f.verdict for f in found] == ["differs"] and found[0].is_wrong
    assert str(found[0]) == (
        "call 1, attempt 1: differs: the messages are not those that were sent"
    )


async def test_what_is_gone_is_named(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """REC10: a request whose texts were deleted cannot be rebuilt, and says what is gone."""
    provider.add(Reply(text="one"))
    async with working(agent_at(provider), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        await worker.clients.write.delete(worker.keys.blobs(key()))

        found = await verdicts(worker)

    assert found[0].verdict == "missing" and found[0].is_wrong
    assert str(found[0]).startswith("call 1, attempt 1: cannot be rebuilt: gone: ")


async def test_a_model_without_a_wire_cannot_be_compared(valkey_url: str, prefix: str) -> None:
    """Its messages are exact; that there is no body to compare is told and is no fault."""
    script: tuple[Any, ...] = (calls(call("add", {"a": 1})), "x")
    async with working(agent_of(*script, tools=[add]), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "hi")
        found = await verdicts(worker)

    assert [f.verdict for f in found] == ["incomparable"] * 2
    assert not any(f.is_wrong for f in found) and "messages exact" in found[0].why


@pytest.mark.parametrize(
    ("answer", "verdict", "words"),
    [
        ({"sent_matches": True, "matches": False}, "differs", "the body has other bytes"),
        ({"sent_matches": True}, "incomparable", "written by other/9, which is not here"),
    ],
)
def test_a_body_that_cannot_be_compared_or_differs(
    answer: dict[str, Any], verdict: str, words: str
) -> None:
    """Exact messages are said to be exact, whatever became of the body."""
    record = json.loads('{"attempt": 2, "wire_sha256": "x", "model": {"wire": "other/9"}}')

    found = judge(7, record, answer)

    assert (found.call, found.attempt, found.verdict) == (7, 2, verdict)
    assert "messages exact" in found.why and words in found.why
