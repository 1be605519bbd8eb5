"""The loop: iterations, budget, notes, cancel, errors, and what is stored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent.agents import Events, agent_of, lines, model_of
from backscroll.agent.events import (
    CallFinished,
    CallStarted,
    IterationStarted,
    Reported,
    TextDelta,
    ToolFinished,
    TurnEnded,
)
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.errors import ModelError, StoreError
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Role, assistant, user
from backscroll.kernel.model import Named, Text
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import Note
from backscroll.kernel.tool import tool
from backscroll.kernel.turn import Continue, IterationRequest, TurnRequest
from backscroll.kernel.usage import FinishReason, Usage
from conversation.histories import faults
from deadlines import scaled
from played_model import Said, Streamed, call, calls, sent


@tool
async def look(at: str = "it") -> str:
    """Look at something."""
    return f"saw {at}"


async def test_a_plain_answer() -> None:
    """LOOP1: one model call; the store has the question and the answer."""
    agent = agent_of("hello there")

    result = await agent.invoke("hi", conversation_id="t")

    assert (result.status, result.text) == ("completed", "hello there")
    assert len(model_of(agent).requests) == 1
    assert lines(await agent.memory.get("t")) == ["user: hi", "assistant: hello there"]
    assert result.new_messages == tuple(await agent.memory.get("t"))
    assert result.iterations == 1


async def test_three_rounds_of_tools() -> None:
    """LOOP2: four calls, three records, and the store holds every step."""
    agent = agent_of(*[calls(call("look", {"at": str(n)})) for n in range(3)], "ok", tools=[look])

    result = await agent.invoke("hi", conversation_id="t")

    assert len(model_of(agent).requests) == 4
    assert [record.content for record in result.records] == ["saw 0", "saw 1", "saw 2"]
    rounds = [line for n in range(3) for line in ("assistant: [look]", f"tool: saw {n}")]
    assert lines(await agent.memory.get("t")) == ["user: hi", *rounds, "assistant: ok"]
    assert result.iterations == 4


async def test_the_limit() -> None:
    """LOOP3: three batches run, the fourth call is answered as not executed, the thread goes on."""
    agent = agent_of(*[calls(call("look"))] * 4, "ok", tools=[look], max_iterations=3)
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)
    after = await agent.memory.get("t")
    again = await agent.invoke("go on", conversation_id="t")

    assert result.error is not None and result.error.code == "max_iterations_exceeded"
    assert str(result.error) == "The turn was stopped after 3 tool rounds without a final answer."
    assert len(result.records) == 3
    assert (after[-1].text, after[-1].outcome) == (
        "Not executed: the limit of 3 tool rounds was reached.",
        "skipped",
    )
    assert faults(after) == []
    assert len(events.of(ToolFinished)) == 4
    assert (again.status, len(model_of(agent).requests)) == ("completed", 4 + 1)


async def test_no_tool_rounds_at_all() -> None:
    """LOOP4: with a limit of 0 the first tool request ends the turn, and no tool runs."""
    agent = agent_of(calls(call("look")), tools=[look])

    result = await agent.invoke("hi", conversation_id="t", max_iterations=0)

    assert result.error is not None and result.error.code == "max_iterations_exceeded"
    assert result.records == ()
    assert faults(await agent.memory.get("t")) == []


@pytest.mark.parametrize("end", ["ok", ModelError("provider", "down")])
async def test_a_conversation_without_a_name_leaves_nothing(end: Any) -> None:
    """LOOP5: without a conversation id the store is empty after the turn."""
    agent = agent_of(calls(call("look")), end, tools=[look])

    result = await agent.invoke("hi")

    assert (result.conversation_id or "").startswith("conv_")
    assert sent(model_of(agent).requests[1])[-1] == "tool: saw it"
    assert await agent.memory.get(result.conversation_id or "") == []


async def test_a_cancelled_conversation_without_a_name() -> None:
    """LOOP5: the store is empty after a cancelled turn, too."""
    token = CancelToken()

    @tool
    async def stop() -> str:
        """Stop the turn."""
        token.cancel()
        return "stopped"

    agent = agent_of(calls(call("stop")), tools=[stop])

    result = await agent.invoke("hi", cancel=token)

    assert result.status == "cancelled"
    assert await agent.memory.get(result.conversation_id or "") == []


async def test_heals_what_a_crash_left() -> None:
    """LOOP6: two of three unanswered calls get a result each, before the new question."""
    agent = agent_of("ok")
    asked = assistant(None, [call("look", id=f"c{n}") for n in range(3)], "a1")
    from backscroll.kernel.message import tool_result

    await agent.memory.add("t", [user("hi", "u1"), asked, tool_result("c1", "look", "x", id="t1")])

    await agent.invoke("go on", conversation_id="t")

    stored = await agent.memory.get("t")
    healed = [(m.tool_call_id, m.outcome) for m in stored[3:5]]
    assert healed == [("c0", "cancelled"), ("c2", "cancelled")]
    assert stored[3].text.startswith("Not executed: this call was never approved")
    assert stored[5].text == "go on"
    assert faults(model_of(agent).requests[0].messages) == []


async def test_a_note_is_for_one_request() -> None:
    """LOOP7, FIL7, REQ6: a note is last in the next request only; a message is in the history."""

    async def remind(request: IterationRequest, chain: Any) -> Any:
        step = await chain(request)
        if isinstance(step, Continue) and request.index == 0:
            more = (*step.messages, user("by the way"))
            return step.replace(notes=("be brief",), messages=more)
        return step

    rounds = [calls(call("look"))] * 2
    agent = agent_of(*rounds, "ok", tools=[look], filters=[Filter.of("r", iteration=remind)])

    await agent.invoke("hi", conversation_id="t")

    first, second, third = (sent(request) for request in model_of(agent).requests)
    assert "user: be brief" not in first + third
    assert second[-2:] == ["user: by the way", "user: be brief"]
    stored = lines(await agent.memory.get("t"))
    assert stored.count("user: by the way") == 1 and "user: be brief" not in stored


async def test_cancel_during_a_stream() -> None:
    """LOOP8: the stream is closed, the partial text is stored as incomplete, no tool runs."""
    agent = agent_of(Streamed([Text("Hel"), asyncio.Event(), Text("lo")]), tools=[look])
    events, token = Events(), CancelToken()

    turn = asyncio.ensure_future(
        agent.invoke("hi", conversation_id="t", on_event=events, cancel=token)
    )
    await events.until(lambda event: isinstance(event, TextDelta))
    token.cancel("stop")
    result = await asyncio.wait_for(turn, scaled(1))

    assert result.status == "cancelled"
    assert model_of(agent).closed == 1
    stored = await agent.memory.get("t")
    assert (stored[-1].text, stored[-1].incomplete) == ("Hel", True)
    assert events.kinds()[-1] == "TurnEnded"
    assert events.of(CallFinished)[0].error is not None


async def test_cancel_during_a_batch() -> None:
    """LOOP9: what is done keeps its result, what runs is interrupted, and the thread goes on."""

    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "never"

    both = calls(call("look", id="c1"), call("wait", id="c2"))
    agent = agent_of(both, "ok", tools=[look, wait])
    events, token = Events(), CancelToken()

    turn = asyncio.ensure_future(
        agent.invoke("hi", conversation_id="t", on_event=events, cancel=token)
    )
    await events.until(lambda event: isinstance(event, ToolFinished))
    token.cancel("stop")
    result = await asyncio.wait_for(turn, scaled(3))
    again = await agent.invoke("continue", conversation_id="t")

    assert result.status == "cancelled"
    stored = await agent.memory.get("t")
    assert [(m.text, m.outcome) for m in stored[2:4]] == [
        ("saw it", "ok"),
        (
            "Interrupted: the run was stopped while wait was running. "
            "It may or may not have taken effect.",
            "cancelled",
        ),
    ]
    assert len(events.of(ToolFinished)) == 2
    assert again.text == "ok"


async def test_turns_of_one_conversation_wait_for_each_other() -> None:
    """LOOP11: two turns at once are contiguous in the store."""
    rounds = [lambda request: calls(call("look")) if _last_is_user(request) else "done"] * 4
    agent = agent_of(*rounds, tools=[look])

    await asyncio.gather(*(agent.invoke(f"q{n}", conversation_id="t") for n in range(2)))

    turn = ["assistant: [look]", "tool: saw it", "assistant: done"]
    assert lines(await agent.memory.get("t")) == ["user: q0", *turn, "user: q1", *turn]


async def test_an_error_in_the_second_iteration() -> None:
    """LOOP12, USE5: the result has what was gathered: one record and two calls' usage."""
    broken = ModelError("provider", "down")
    agent = agent_of(calls(call("look"), usage=Usage(10, 5)), broken, tools=[look])

    result = await agent.invoke("hi", conversation_id="t")

    assert result.status == "error" and result.error is broken
    assert len(result.records) == 1
    assert [use.usage for use in result.usage] == [Usage(10, 5), None]
    assert lines(await agent.memory.get("t")) == ["user: hi", "assistant: [look]", "tool: saw it"]
    with pytest.raises(ModelError):
        result.raise_for_status()


async def test_ids_in_events_and_store_are_the_same() -> None:
    """LOOP13, MSG9: over three iterations, message and call ids agree everywhere."""
    same = [calls(call("look", id="call_0"), text="hm")] * 2
    agent = agent_of(*same, "ok", tools=[look])
    events = Events()

    await agent.invoke("hi", conversation_id="t", on_event=events)

    stored = await agent.memory.get("t")
    replies = [m for m in stored if m.role is Role.ASSISTANT]
    results = [m for m in stored if m.role is Role.TOOL]
    assert [e.message_id for e in events.of(CallStarted)] == [m.id for m in replies]
    assert [e.message.id for e in events.of(ToolFinished)] == [m.id for m in results]
    assert [e.message for e in events.of(CallFinished)] == replies
    assert [e.call_id for e in events.of(ToolFinished)] == [m.tool_call_id for m in results]
    assert len({m.tool_call_id for m in results}) == 2
    assert model_of(agent).requests[2].messages == tuple(stored[:-1])


async def test_counts_iterations() -> None:
    """FIL5: over two rounds a filter sees (0, 10), (1, 9), (2, 8), and so do the events."""
    seen: list[tuple[int, int]] = []

    async def probe(request: IterationRequest, chain: Any) -> Any:
        seen.append((request.index, request.remaining))
        return await chain(request)

    rounds = [calls(call("look"))] * 2
    agent = agent_of(*rounds, "ok", tools=[look], filters=[Filter.of("p", iteration=probe)])
    events = Events()

    await agent.invoke("hi", on_event=events)

    assert seen == [(0, 10), (1, 9), (2, 8)]
    assert [(e.index, e.remaining) for e in events.of(IterationStarted)] == seen


async def test_a_second_pass_of_an_iteration() -> None:
    """FIL6: calling the chain again repeats call and tools; the first results are stored first."""

    async def twice(request: IterationRequest, chain: Any) -> Any:
        if request.index == 0:
            await chain(request)
        return await chain(request)

    rounds = [calls(call("look", {"at": str(n)})) for n in range(2)]
    agent = agent_of(*rounds, "ok", tools=[look], filters=[Filter.of("t", iteration=twice)])

    result = await agent.invoke("hi", conversation_id="t")

    assert len(result.records) == 2
    assert lines(await agent.memory.get("t")) == [
        "user: hi",
        "assistant: [look]",
        "tool: saw 0",
        "assistant: [look]",
        "tool: saw 1",
        "assistant: ok",
    ]


async def test_passes_without_end_are_ended() -> None:
    """FIL6: passes count against the budget that the loop itself keeps."""

    async def ever(request: IterationRequest, chain: Any) -> Any:
        while True:
            await chain(request.replace(remaining=99))

    rounds = [calls(call("look"))] * 3
    agent = agent_of(
        *rounds, tools=[look], max_iterations=2, filters=[Filter.of("e", iteration=ever)]
    )

    result = await agent.invoke("hi", conversation_id="t")

    assert result.error is not None and result.error.code == "max_iterations_exceeded"
    assert faults(await agent.memory.get("t")) == []


async def test_a_turn_filter_that_goes_in_again() -> None:
    """FIL9: each pass of a turn starts at index 0 with a fresh budget."""

    async def again(request: TurnRequest, chain: Any) -> Any:
        await chain(request)
        return await chain(request.replace(messages=(user("shorter"),)))

    agent = agent_of("one", "two", filters=[Filter.of("again", turn=again)])
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert [e.index for e in events.of(IterationStarted)] == [0, 0]
    assert (result.text, result.iterations) == ("two", 2)
    stored = await agent.memory.get("t")
    assert lines(stored)[2:] == ["user: shorter", "assistant: two"]
    assert all(m.id for m in stored)


async def test_a_filter_that_stops_between_rounds() -> None:
    """Answering without the chain makes no call; results that were waiting are stored."""

    async def stop(request: IterationRequest, chain: Any) -> Any:
        if request.index == 1:
            return request.answer("enough", blocked_by="stop", store=True)
        return await chain(request)

    agent = agent_of(calls(call("look")), tools=[look], filters=[Filter.of("s", iteration=stop)])

    result = await agent.invoke("hi", conversation_id="t")

    stored = await agent.memory.get("t")
    assert (result.text, result.blocked_by) == ("enough", "stop")
    assert lines(stored)[2:] == ["tool: saw it", "assistant: enough"]
    assert (stored[-1], stored[-1].origin) == (result.message, "filter:stop")


async def test_a_filter_that_answers_the_turn() -> None:
    """A turn answered without any call stores nothing, not even the question."""

    async def block(request: TurnRequest, chain: Any) -> Any:
        return request.answer("no", blocked_by="block")

    agent = agent_of(filters=[Filter.of("b", turn=block)])
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert (result.status, result.text, result.blocked_by) == ("completed", "no", "block")
    assert await agent.memory.get("t") == []
    assert events.kinds() == ["TurnStarted", "TurnEnded"]


async def test_one_filter_with_four_hooks() -> None:
    """FIL4: over three rounds and an answer: turn 1, iteration 4, chat 4, tool 3."""
    counts: dict[str, int] = {}

    def count(name: str) -> Any:
        async def hook(request: Any, chain: Any) -> Any:
            counts[name] = counts.get(name, 0) + 1
            return await chain(request)

        return hook

    names = ("turn", "iteration", "chat", "tool")
    counter = Filter.of("count", **{name: count(name) for name in names})
    agent = agent_of(*[calls(call("look"))] * 3, "ok", tools=[look], filters=[counter])

    await agent.invoke("hi")

    assert counts == {"turn": 1, "iteration": 4, "chat": 4, "tool": 3}


async def test_a_forced_tool_is_forced_once() -> None:
    """REQ5: `required` and a named tool hold for the first call of a turn only."""
    for choice in ("required", Named("look")):
        agent = agent_of(calls(call("look")), "ok", tools=[look], tool_choice=choice)

        await agent.invoke("hi")

        assert [r.tool_choice for r in model_of(agent).requests] == [choice, "auto"]


async def test_an_empty_reply_completes() -> None:
    """EV2: neither text nor calls: completed with an empty text, stored, and noted."""
    agent = agent_of(Said(finish=FinishReason.CONTENT_FILTER))
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert (result.status, result.text) == ("completed", "")
    assert result.finish_reason is FinishReason.CONTENT_FILTER
    assert events.of(TextDelta) == []
    (note,) = [e.report for e in events.of(Reported) if isinstance(e.report, Note)]
    assert note.kind == "empty_reply"


async def test_a_model_that_raises_what_it_must_not() -> None:
    """An unexpected error is internal, its text not for people, and the call is finished."""
    agent = agent_of(ValueError("secret path"))
    events = Events()

    result = await agent.invoke("hi", on_event=events)

    assert result.error is not None and result.error.code == "internal_error"
    assert "secret" not in str(result.error)
    assert len(events.of(CallFinished)) == len(events.of(CallStarted)) == 1
    assert events.kinds()[-1] == "TurnEnded"


async def test_a_store_that_fails() -> None:
    """MF6: the turn ends with `store_error`, wherever the store fails first."""

    class Broken(InMemoryChatMemory):
        async def get(self, conversation_id: str) -> Any:
            raise StoreError("gone")

    agent = agent_of("ok", memory=Broken())
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert result.error is not None and result.error.code == "store_error"
    assert events.of(TurnEnded)[0].result == result


async def test_cancelled_before_it_began() -> None:
    """A token that is cancelled already lets no call be made."""
    agent, token = agent_of(), CancelToken()
    token.cancel()

    result = await agent.invoke("hi", conversation_id="t", cancel=token)

    assert result.status == "cancelled"
    assert model_of(agent).requests == []


def _last_is_user(request: Any) -> bool:
    return bool(request.messages[-1].role is Role.USER)
