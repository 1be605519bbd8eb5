"""Agents are put together once, checked then, and never change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent.agents import Events, agent_of, model_of
from backscroll.agent.agent import Agent
from backscroll.agent.answers import Approve
from backscroll.agent.executors import SequentialExecutor
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.kernel.content import file_part
from backscroll.kernel.errors import AssemblyError, ModelError, ResumeRefused, ToolError
from backscroll.kernel.message import tool_result, user
from backscroll.kernel.model import ModelOptions, Named
from backscroll.kernel.request import Note
from backscroll.kernel.tool import Slot, ToolContext, ToolResult, tool
from played_model import StreamingModel, call, calls, sent


@tool(tags={"a"})
async def look(at: str = "it") -> str:
    """Look at something."""
    return f"saw {at}"


@tool(tags={"b"})
async def touch() -> str:
    """Touch something."""
    return "soft"


async def test_instructions() -> None:
    """AG5, REQ3: a function is asked once per turn; texts go in order and are never stored."""
    asked: list[Any] = []

    async def instructions(context: Any) -> list[str]:
        asked.append(context["tenant"])
        return ["Be brief.", context["tenant"]]

    agent = agent_of(*[calls(call("look"))] * 4, "ok", tools=[look], instructions=instructions)

    await agent.invoke("hi", conversation_id="t", context={"tenant": "north"}, system="Today.")

    assert asked == ["north"]
    assert {r.system for r in model_of(agent).requests} == {("Be brief.", "north", "Today.")}
    assert all(m.role != "system" for m in await agent.memory.get("t"))


async def test_options_of_one_turn_do_not_leak() -> None:
    """AG6: model, options, tools, system and limit of one turn are gone in the next."""
    other = StreamingModel([calls(call("touch")), "from the other"])
    agent = agent_of("ok", tools=[look], options=ModelOptions(temperature=0.5))

    first = await agent.invoke(
        "hi",
        conversation_id="t",
        model=other,
        tools=[touch],
        system="Once.",
        options=ModelOptions(top_p=0.1),
        max_iterations=1,
    )
    await agent.invoke("again", conversation_id="t")

    assert first.text == "from the other"
    request, plain = other.requests[0], model_of(agent).requests[0]
    assert [t.name for t in request.tools] == ["look", "touch"]
    assert (request.options.temperature, request.options.top_p) == (0.5, 0.1)
    assert ([t.name for t in plain.tools], plain.system) == (["look"], ())
    assert (plain.options.temperature, plain.options.top_p) == (0.5, None)


async def test_tags() -> None:
    """TOOL7: tags choose what is offered; a call of what they exclude is answered as unknown.

    Tools given with the turn are offered whatever their tags.
    """

    @tool(tags={"a"})
    async def inline() -> str:
        """Come along."""
        return "here"

    agent = agent_of(calls(call("touch")), "ok", tools=[look, touch])

    result = await agent.invoke("hi", tags={"a"})
    only = agent_of("ok", "ok", tools=[look, touch])
    await only.invoke("hi", exclude_tags={"a"})
    await only.invoke("hi", tags={"none"}, exclude_tags={"a"}, tools=[inline])

    assert [t.name for t in model_of(agent).requests[0].tools] == ["look"]
    assert 'no tool named "touch"' in str(result.records[0].content)
    offered = [[t.name for t in request.tools] for request in model_of(only).requests]
    assert offered == [["touch"], ["inline"]]


async def test_inline_tools_are_checked_against_all() -> None:
    """TOOL1: an inline tool may not have the name of a declared one, even one not offered."""
    agent = agent_of(tools=[look, touch])

    with pytest.raises(AssemblyError, match="'touch'"):
        await agent.invoke("hi", tools=[touch], tags={"a"})
    with pytest.raises(AssemblyError, match="tool_choice"):
        await agent.invoke("hi", tags={"a"}, tool_choice=Named("touch"))

    assert model_of(agent).requests == []


async def test_a_sensitive_inline_tool_asks() -> None:
    """TOOL8: it pauses like a declared one, and runs once it is approved."""
    ran: list[int] = []

    @tool(sensitive=True)
    async def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    agent = agent_of(calls(call("pay", {"amount": 3})), "ok")
    paused = await agent.invoke("hi", conversation_id="t", tools=[pay])
    ran_before = list(ran)
    answers = {item.id: Approve() for item in paused.pause.items}
    result = await agent.resume(answers, conversation_id="t", pause=paused.pause, tools=[pay])

    assert (paused.status, ran_before) == ("paused", [])
    assert (result.status, ran) == ("completed", [3])


@pytest.mark.parametrize("is_serial", [True, False])
async def test_a_serial_inline_tool_makes_its_batch_serial(is_serial: bool) -> None:
    """TOOL8: no call of the batch overlaps another; without it they do."""
    trace: list[str] = []

    async def step(name: str) -> str:
        trace.append(f"{name}-start")
        await asyncio.sleep(0)
        trace.append(f"{name}-end")
        return name

    @tool
    async def a() -> str:
        """A."""
        return await step("a")

    @tool(serial=is_serial)
    async def b() -> str:
        """B."""
        return await step("b")

    agent = agent_of(calls(call("a"), call("b")), "ok", tools=[a])
    await agent.invoke("hi", tools=[b])

    assert (trace == ["a-start", "a-end", "b-start", "b-end"]) is is_serial


async def test_unsupported_input() -> None:
    """PART2: a part the model cannot take is refused before anything is stored."""
    agent = agent_of()

    with pytest.raises(ModelError):
        await agent.invoke(user((file_part(b"x", "audio/flac"),)), conversation_id="t")

    assert await agent.memory.get("t") == []


async def test_replace_shares_what_must_be_shared() -> None:
    """A changed agent has the same filters, executor and locks; what was reported stays known."""
    agent = agent_of("one", "two")
    events = Events()
    broken = tool_result("c9", "look", "?", id="t9")
    changed = agent.replace(memory=InMemoryChatMemory(), on_event=events, name="other")
    for one in (agent, changed):
        await one.memory.add("t", [broken])

    await agent.invoke("hi", conversation_id="t", on_event=events)
    await changed.invoke("hi", conversation_id="t")

    assert changed.memory is not agent.memory
    assert (changed.executor, changed.shared) == (agent.executor, agent.shared)
    assert {event.agent for event in events.all} == {"agent", "other"}
    reports = [getattr(event, "report", None) for event in events.all]
    assert len([report for report in reports if isinstance(report, Note)]) == 1
    with pytest.raises(TypeError):
        agent.replace(colour="red")


async def test_the_next_request() -> None:
    """The next request is what compaction would be handed; nothing is stored or reported."""
    agent = agent_of("ok", tools=[look], instructions=lambda context: f"For {context['tenant']}.")
    await agent.memory.add("t", [user("hi", "u1"), tool_result("c9", "look", "?", id="t9")])

    request = await agent.next_request("t", {"tenant": "north"})

    assert [m.id for m in request.messages] == ["u1"]
    assert request.system == ("For north.",)
    assert [t.name for t in request.tools] == ["look"]
    assert (request.model, request.profile) == (agent.model, model_of(agent).profile)
    assert len(await agent.memory.get("t")) == 2


async def test_the_context_of_a_turn() -> None:
    """Tools read what the caller gave and the ids of their call; slots come back in the result."""
    seen: list[Any] = []

    @tool
    async def count(ctx: ToolContext) -> ToolResult:
        """Count."""
        seen.append((ctx["tenant"], ctx.conversation_id, ctx["run_id"], ctx.call_id))
        return ToolResult("ok", writes={"n": 1})

    slots = {"n": Slot(int, lambda old, new: old + new)}
    agent = agent_of(*[calls(call("count"))] * 3, "ok", tools=[count], slots=slots)

    result = await agent.invoke("hi", conversation_id="t", run_id="r", context={"tenant": "north"})

    assert {entry[:3] for entry in seen} == {("north", "t", "r")}
    assert len({entry[3] for entry in seen}) == 3
    assert result.context["n"] == 3
    assert result.context["conversation_id"] == "t"


async def test_closing() -> None:
    """Closing lets go of the executor's threads."""
    agent = agent_of(executor=SequentialExecutor())

    await agent.aclose()

    with pytest.raises(ToolError):
        await agent.executor.call(lambda: 1)


async def test_a_second_turn_sees_the_first() -> None:
    """MF1: the history is the agent's, not the caller's, to carry on."""
    agent = agent_of("one", "two")

    await agent.invoke("hi", conversation_id="t")
    await agent.invoke("and?", conversation_id="t")

    assert sent(model_of(agent).requests[1]) == ["user: hi", "assistant: one", "user: and?"]


async def test_a_model_by_name() -> None:
    """A name is resolved once, and what is made of it is shared by changed agents and turns."""
    agent = Agent(model="demo")

    result = await agent.invoke("hi", model="demo")

    assert agent.model is agent.replace(name="other").model
    assert result.status == "completed"
    assert result.usage[0].provider == "demo"
    await agent.aclose()


async def test_resuming() -> None:
    """A pause goes on with answers that fit, once; in the caller's hands or in the store."""

    @tool(sensitive=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    agent = agent_of(calls(call("pay", id="c")), "ok", tools=[pay])
    paused = await agent.invoke("hi", conversation_id="t")

    for answers, pause, code in (
        ({"c": Approve()}, None, "not_paused"),
        ({}, paused.pause, "interrupt_incomplete"),
    ):
        with pytest.raises(ResumeRefused) as caught:
            await agent.resume(answers, conversation_id="t", pause=pause)
        assert caught.value.code == code
    result = await agent.resume({"c": Approve()}, pause=paused.pause)
    with pytest.raises(ResumeRefused):
        await agent.resume({"c": Approve()}, pause=paused.pause)
    with pytest.raises(ResumeRefused):
        await agent.resume({"c": Approve()}, conversation_id="other", pause=paused.pause)

    assert (result.text, result.conversation_id) == ("ok", "t")


async def test_a_window_of_the_history() -> None:
    """The model sees the window, healing and sessions the whole; a replaced memory keeps it."""
    inner, other = InMemoryChatMemory(), InMemoryChatMemory()
    agent = agent_of("one", "two", "three", memory=WindowedChatMemory(inner, 1))

    for text in ("a", "b"):
        await agent.invoke(text, conversation_id="t")
    changed = agent.replace(memory=other)

    assert sent(model_of(agent).requests[1]) == ["user: b"]
    assert len(await agent.session("t").history()) == 4
    assert isinstance(changed.memory, WindowedChatMemory) and changed.memory.full is other
    assert agent.replace(name="x").memory is agent.memory
    for fields in ({"compaction": Compaction()}, {"filters": [Compaction()]}):
        with pytest.raises(AssemblyError) as caught:
            agent.replace(**fields)
        assert caught.value.kind == "window_with_compaction"
