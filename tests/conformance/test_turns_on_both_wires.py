"""Turns that end badly, or look something up, leave a thread that either wire takes."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.message import user
from programs.vendor_agent import agent_over, model_over
from scripted_provider import Call, Reply, ScriptedProvider

both_wires = pytest.mark.parametrize("wire", ["openai", "anthropic"])


async def listen(event: Any) -> None:
    """Have replies streamed."""


def other(wire: str) -> str:
    """Return the other wire."""
    return "openai" if wire == "anthropic" else "anthropic"


async def goes_on(agent: Agent, wire: str, provider: ScriptedProvider) -> None:
    """Check that the next turn works, over this wire and then over the other."""
    for name in (wire, other(wire)):
        provider.add(Reply("Yes."))
        model = model_over(name, provider.url)
        result = await agent.invoke("and now?", conversation_id="t", model=model)
        await model.aclose()
        assert (result.status, result.text) == ("completed", "Yes.")
    assert provider.problems == []


@both_wires
async def test_a_stream_that_breaks_off(wire: str, provider: ScriptedProvider) -> None:
    """MF7: what had come is stored as incomplete, without its call; the next turn works."""
    call = (Call("add", {"a": 1, "b": 2}),)
    provider.add(Reply("Hel", "hm", call, end="eof"))
    async with aclosing(agent_over(wire, provider.url)) as agent:
        result = await agent.invoke("hi", conversation_id="t", on_event=listen)
        stored = await agent.memory.get("t")
        await goes_on(agent, wire, provider)

    assert result.status == "error" and result.error is not None
    assert result.error.code == "incomplete_stream"
    last = stored[-1]
    assert (last.content, last.incomplete, last.tool_calls, last.blocks) == ("Hel", True, (), None)


@both_wires
async def test_a_model_that_always_calls(wire: str, provider: ScriptedProvider) -> None:
    """LOOP3: three batches, four calls of the model, the last one answered as not executed."""
    provider.otherwise(Reply(calls=(Call("add", {"a": 1, "b": 2}),)))
    async with aclosing(agent_over(wire, provider.url).replace(max_iterations=3)) as agent:
        result = await agent.invoke("add", conversation_id="t", on_event=listen)
        stored = await agent.memory.get("t")
        await goes_on(agent, wire, provider)

    assert result.error is not None and result.error.code == "max_iterations_exceeded"
    assert len(result.records) == 3 and len(provider.requests) == 4 + 2
    outcomes = [message.outcome for message in stored if message.role == "tool"]
    assert outcomes == ["ok", "ok", "ok", "skipped"]


@both_wires
async def test_a_message_that_is_looked_up(wire: str, provider: ScriptedProvider) -> None:
    """RCL3: the recalled text stands behind complete pairs, and the history has one line of it."""
    look_up = Call("recall", {"query": "gateway port"}, "c1")
    provider.add(Reply(calls=(Call("add", {"a": 1, "b": 2}, "c0"), look_up)), Reply("8443."))
    agent = agent_over(wire, provider.url).replace(compaction=Compaction(None, recall=True))
    await agent.memory.add("t", [user("the gateway listens on port 8443", "u1")])
    async with aclosing(agent):
        await agent.invoke("which port?", conversation_id="t", on_event=listen)
        stored = await agent.memory.get("t")
        sent = str(provider.requests[1].messages[-3:])
        await goes_on(agent, wire, provider)

    assert sent.index("c1") < sent.index("<recalled>") < sent.rindex("8443")
    lines = [message.text for message in stored if message.role == "tool"]
    assert lines[0] == "3" and lines[1].startswith("[recalled ") and "8443" not in lines[1]
