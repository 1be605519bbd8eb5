"""Turns that end badly, or look something up, leave a thread that either wire takes."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.filters.structured_output import StructuredOutput
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Role, user
from backscroll.kernel.tool import ToolResult, tool
from backscroll.kernel.turn import Continue, IterationRequest
from programs.vendor_agent import agent_over, model_over
from pydantic import BaseModel, Field
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


def keys_of(value: Any) -> set[str]:
    """Return every key of a body, at any depth."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(keys_of, value.values()))


@tool
async def stock(at: str) -> ToolResult:
    """Tell the stock."""
    return ToolResult("7", writes={"shelf_slot": at})


class Hint(Filter):
    """Adds a message to the history and a note to the next request."""

    name = "hint"

    async def iteration(self, request: IterationRequest, chain: Any) -> Any:
        """Do so after each batch."""
        step = await chain(request)
        if not isinstance(step, Continue):
            return step
        more = (*step.messages, self.message(Role.USER, "Mind the shelf."))
        return step.replace(messages=more, notes=("Be quick.",))


@both_wires
async def test_what_is_ours_stays_here(wire: str, provider: ScriptedProvider) -> None:
    """MSG3, REQ3, REQ8: system texts are joined and not stored; no key of ours is in a body."""
    provider.add(Reply(calls=(Call("stock", {"at": "A"}),)), Reply("Seven."), Reply("Yes."))
    model = model_over(wire, provider.url)
    agent = Agent(model=model, instructions=["A", "B"], tools=[stock], filters=[Hint()])
    async with aclosing(agent):
        for text in ("how many?", "sure?"):
            result = await agent.invoke(text, conversation_id="t", context={"tenant_key": "n"})
            assert result.status == "completed"
        stored = await agent.memory.get("t")

    assert stored[2].writes == {"shelf_slot": "A"} and stored[3].origin == "filter:hint"
    assert {str(message.role) for message in stored} == {"user", "assistant", "tool"}
    assert provider.problems == [] and len(provider.requests) == 3
    ours = "context notes observer stream_sink sink cancel reply_id taken_call_ids texts writes"
    ours += " origin outcome shelf_slot tenant_key conversation_id"
    for record in provider.requests:
        assert not keys_of(record.json) & set(ours.split())
        assert record.json.get("system", record.messages[0]["content"]) == "A\nB"
        assert "tenant_key" not in record.body.decode()


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


class Order(BaseModel):
    """What the shop knows of an order."""

    number: Annotated[str, Field(max_length=9)]
    lines: Annotated[list[str], Field(min_length=1)]


@both_wires
async def test_an_answer_as_data(wire: str, provider: ScriptedProvider) -> None:
    """SO2, SO5: the schema goes out in the wire's form; what is not right is asked for again."""
    right = Order(number="A-1042", lines=["saddle"])
    provider.add(Reply('{"number": "A-1042", "lines": []}'), Reply(right.model_dump_json()))
    model = model_over(wire, provider.url)
    model.profile = replace(model.profile, response_format="json_schema")
    async with aclosing(Agent(model=model, filters=[StructuredOutput(Order)])) as agent:
        result = await agent.invoke("Which order?", conversation_id="t", on_event=listen)

    assert result.output == right and provider.problems == [] and len(provider.requests) == 2
    key = "output_config" if wire == "anthropic" else "response_format"
    assert all("lines" in str(record.json[key]) for record in provider.requests)


NOTES = """## Goal
The user reports one thing after the other and wants each of them acknowledged in a sentence.
## Done
All the reports so far were read, each of them said that all is well, and nothing is open.
"""


@both_wires
async def test_a_summary_is_asked_for(wire: str, provider: ScriptedProvider) -> None:
    """SUM8: the model's own summary, whatever it was set to: thinking, sampling, no tools."""
    ask = "Write the new notes now."
    provider.when(ask, Reply(NOTES))
    provider.otherwise(Reply("Noted."))
    agent = agent_over(wire, provider.url).replace(compaction=Compaction(window=4_000))
    async with aclosing(agent):
        for n in range(12):
            text = f"Report {n}: " + "all is well here. " * 60
            await agent.invoke(text, conversation_id="t", on_event=listen)

    asked = [record for record in provider.requests if ask in str(record.json)]
    assert asked and all("tools" not in record.json for record in asked)
    assert provider.problems == []
    last = str(provider.requests[-1].messages)
    assert "<earlier-conversation>" in last and "wants each of them acknowledged" in last
