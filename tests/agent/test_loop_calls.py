"""Odd calls of a model: repeated ids, broken arguments, failing tools, replies asked for twice."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from agent.agents import Events, agent_of, lines, model_of
from backscroll.agent.events import ToolCallOpened, ToolFinished
from backscroll.kernel.errors import ClientError, ModelError
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Role
from backscroll.kernel.tool import tool
from played_model import call, calls, sent


@tool
async def look() -> str:
    """Look."""
    return "saw it"


async def test_an_id_that_each_turn_repeats() -> None:
    """MSG9: two turns with `call_0` store two ids; events and the next request use the same."""
    rounds = [calls(call("look", id="call_0")), "ok"] * 2
    agent = agent_of(*rounds, "done", tools=[look])
    events = Events()

    for text in ("one", "two", "three"):
        await agent.invoke(text, conversation_id="t", on_event=events)

    stored = await agent.memory.get("t")
    ids = [c.id for message in stored for c in message.tool_calls]
    assert len(set(ids)) == 2 and ids[0] == "call_0"
    assert [event.call_id for event in events.of(ToolCallOpened)] == ids
    assert [event.call_id for event in events.of(ToolFinished)] == ids
    assert [m.tool_call_id for m in stored if m.role is Role.TOOL] == ids
    assert model_of(agent).requests[-1].messages == tuple(stored[:-1])


async def test_broken_arguments_and_then_right_ones() -> None:
    """RUN9: the broken call is not run and keeps its raw text; the next one, correct, runs."""
    deleted: list[list[int]] = []

    @tool
    async def delete_items(ids: list[int]) -> str:
        """Delete."""
        deleted.append(ids)
        return "gone"

    broken, right = call("delete_items", '{"ids":[1,2'), call("delete_items", {"ids": [1, 2]})
    agent = agent_of(calls(broken), calls(right), "ok", tools=[delete_items])

    result = await agent.invoke("hi", conversation_id="t")

    assert (result.text, deleted) == ("ok", [[1, 2]])
    assert [record.outcome for record in result.records] == ["error", "ok"]
    assert "Expecting ',' delimiter" in str(result.records[0].content)
    (kept,) = (await agent.memory.get("t"))[1].tool_calls
    assert (kept.args, kept.raw) == (None, '{"ids":[1,2')


async def test_a_tool_that_does_not_exist() -> None:
    """RUN10: the model reads the name and the offered ones, and the turn ends normally."""
    agent = agent_of(calls(call("lock")), "sorry", tools=[look])

    result = await agent.invoke("hi")

    assert (result.status, result.text) == ("completed", "sorry")
    read = sent(model_of(agent).requests[1])[-1]
    assert read == 'tool: error: there is no tool named "lock". Available tools: look.'


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("text", ["", None, "{}", " "])
async def test_a_call_without_arguments(streaming: bool, text: str | None) -> None:
    """RUN14: a tool without parameters runs with `{}`, streamed or not."""
    agent = agent_of(calls(call("look", text)), "ok", tools=[look], streaming=streaming)

    result = await agent.invoke("hi", on_event=Events())

    assert [(r.args, r.content, r.outcome) for r in result.records] == [({}, "saw it", "ok")]


@pytest.mark.parametrize(
    ("error", "retry", "kind", "attempts"),
    [
        (httpx.ConnectTimeout("late"), None, "transient", 1),
        (httpx.ConnectTimeout("late"), True, "transient", 3),
        (ModelError("auth", "bad key", status=401), True, "environment", 1),
    ],
)
async def test_failures_and_their_attempts(
    error: Exception, retry: Any, kind: str, attempts: int
) -> None:
    """ERR3: a timeout is transient and tried again only if declared; a 401 is the environment."""

    @tool(retry=retry)
    async def ask() -> str:
        """Ask somebody else."""
        raise error

    result = await agent_of(calls(call("ask")), "ok", tools=[ask]).invoke("hi")

    (record,) = result.records
    assert record.failure is not None
    assert (record.failure.kind, record.attempts) == (kind, attempts)


async def test_a_reply_asked_for_again_after_it_began() -> None:
    """REQ7: once text was delivered, a filter that calls the chain again gets an error."""
    seen: list[str] = []

    async def twice(request: Any, chain: Any) -> Any:
        await chain(request)
        try:
            return await chain(request)
        except ClientError as error:
            seen.append(error.code)
            raise

    agent = agent_of("one", "two", filters=[Filter.of("twice", chat=twice)])

    result = await agent.invoke("hi", conversation_id="t", on_event=Events())

    assert seen == ["stream_already_started"] and result.status == "error"
    assert len(model_of(agent).requests) == 1


async def test_a_reply_asked_for_again_before_it_began() -> None:
    """REQ7: before any delta it works, and the memory has one question and one answer."""

    async def again(request: Any, chain: Any) -> Any:
        try:
            return await chain(request)
        except ModelError:
            return await chain(request)

    agent = agent_of(
        ModelError("provider", "down"), "two", filters=[Filter.of("again", chat=again)]
    )

    await agent.invoke("hi", conversation_id="t", on_event=Events())

    assert lines(await agent.memory.get("t")) == ["user: hi", "assistant: two"]
