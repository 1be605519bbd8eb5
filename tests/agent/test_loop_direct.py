"""Tools that give the answer themselves, and replies whose tools may not run."""

from __future__ import annotations

from typing import Any

from agent.agents import Events, agent_of, lines, model_of
from backscroll.agent.answers import Approve
from backscroll.agent.events import IterationStarted, ToolFinished
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import user
from backscroll.kernel.tool import tool
from backscroll.kernel.turn import TurnRequest
from backscroll.kernel.usage import FinishReason
from conversation.histories import faults
from played_model import call, calls, sent


@tool(return_direct=True)
async def show(what: str) -> str:
    """Show something to the user."""
    return what


@tool
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_direct_answer() -> None:
    """DIR1: the tool's output is the answer; one call, nothing dangling, no assistant message."""
    agent = agent_of(calls(call("show", {"what": "A"})), tools=[show])
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert (result.status, result.text, result.return_direct) == ("completed", "A", True)
    assert result.finish_reason is FinishReason.STOP
    assert lines(await agent.memory.get("t")) == ["user: hi", "assistant: [show]", "tool: A"]
    assert len(events.of(ToolFinished)) == 1
    assert events.result.text == "A"


async def test_the_turn_after_a_direct_answer() -> None:
    """DIR2: the next request has that result, and nothing needs healing."""
    agent = agent_of(calls(call("show", {"what": "A"})), "ok", tools=[show])

    await agent.invoke("hi", conversation_id="t")
    await agent.invoke("and?", conversation_id="t")

    request = model_of(agent).requests[1]
    assert sent(request)[2:] == ["tool: A", "user: and?"]
    assert faults(request.messages) == []


async def test_mixed_and_several() -> None:
    """DIR3: a mixed batch goes back to the model; two direct tools are two lines."""
    mixed = agent_of(calls(call("show", {"what": "A"}), call("look")), "ok", tools=[show, look])
    both = calls(call("show", {"what": "A"}, "1"), call("show", {"what": "B"}, "2"))
    several = agent_of(both, tools=[show])

    first, second = await mixed.invoke("hi"), await several.invoke("hi")

    assert (first.text, first.return_direct) == ("ok", False)
    assert len(model_of(mixed).requests) == 2
    assert (second.text, second.return_direct) == ("A\nB", True)


async def test_errors_count_as_answers() -> None:
    """A direct tool whose arguments do not fit ends the turn with what is wrong."""
    agent = agent_of(calls(call("show", {})), tools=[show])

    result = await agent.invoke("hi")

    assert result.return_direct
    assert result.text.startswith("error: invalid arguments for show: what: is missing")


async def test_another_pass_after_a_direct_answer() -> None:
    """DIR4: the results are stored once, before what the filter adds."""

    async def again(request: TurnRequest, chain: Any) -> Any:
        await chain(request)
        return await chain(request.replace(messages=(user("shorter"),)))

    agent = agent_of(
        calls(call("show", {"what": "A"})), "ok", tools=[show], filters=[Filter.of("a", turn=again)]
    )

    await agent.invoke("hi", conversation_id="t")

    assert lines(await agent.memory.get("t"))[2:] == ["tool: A", "user: shorter", "assistant: ok"]


async def test_tools_that_may_not_run() -> None:
    """DIR6: the reply is the answer; its calls are answered as not executed."""
    for eligible in (lambda response, context: context["budget"] > 0, _never):
        agent = agent_of(calls(call("look"), text="well"), tools=[look], eligible=eligible)
        events = Events()

        result = await agent.invoke(
            "hi", conversation_id="t", context={"budget": 0}, on_event=events
        )

        stored = await agent.memory.get("t")
        assert (result.status, result.text, result.records) == ("completed", "well", ())
        assert len(model_of(agent).requests) == 1
        assert (stored[-1].text, stored[-1].outcome) == (
            "Not executed: tool use is not available right now.",
            "skipped",
        )
        assert [event.message for event in events.of(ToolFinished)] == [stored[-1]]


async def test_eligibility_is_not_asked_without_calls() -> None:
    """The question is only asked when tools are wanted, and before the budget is looked at."""
    agent = agent_of("ok", calls(call("look")), tools=[look], eligible=_never, max_iterations=0)

    first, second = await agent.invoke("hi"), await agent.invoke("hi")

    assert (first.text, second.status) == ("ok", "completed")


async def test_eligibility_that_raises() -> None:
    """An exception ends the turn with an error."""

    def broken(response: Any, context: Any) -> bool:
        raise KeyError("budget")

    agent = agent_of(calls(call("look")), tools=[look], eligible=broken)

    result = await agent.invoke("hi", conversation_id="t")

    assert result.error is not None and result.error.code == "internal_error"
    assert faults(await agent.memory.get("t")) == []


async def _never(response: Any, context: Any) -> bool:
    return False


async def test_a_loop_that_goes_on_after_a_pause() -> None:
    """The budget a resumed turn has left is what the pause says, and iterations start at 0."""

    @tool(sensitive=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    agent = agent_of(calls(call("pay", id="c")), calls(call("look")), "ok", tools=[pay, look])
    events = Events()
    paused = await agent.invoke("hi", conversation_id="t")
    await agent.resume({"c": Approve()}, pause=paused.pause, on_event=events)

    started = [(e.index, e.remaining) for e in events.of(IterationStarted)]
    assert started == [(0, 9), (1, 8)]
