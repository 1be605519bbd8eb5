"""A turn from its first event to its last."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from agent.agents import Events, agent_of, lines, model_of
from backscroll.agent.answers import Approve
from backscroll.agent.events import TurnStarted
from backscroll.agent.pause import InMemoryPauseStore
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.errors import (
    AwaitingResume,
    InputError,
    LeaseLost,
    ModelError,
    ResumeProblem,
    ResumeRefused,
    StoreError,
)
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import assistant, tool_result, user
from backscroll.kernel.tool import tool
from backscroll.kernel.turn import TurnRequest
from played_model import call, calls


class Breaking(InMemoryChatMemory):
    """A memory whose named operation raises."""

    def __init__(self, operation: str, error: Exception) -> None:
        super().__init__()
        self.operation, self.error = operation, error

    async def get(self, conversation_id: str) -> Any:
        """Read, or fail."""
        if self.operation == "get":
            raise self.error
        return await super().get(conversation_id)

    async def clear(self, conversation_id: str) -> None:
        """Clear, or fail."""
        if self.operation == "clear":
            raise self.error
        await super().clear(conversation_id)


async def test_answers_the_history_as_it_stands() -> None:
    """An empty input answers a history that ends with a question or a result."""
    asks = assistant(None, [call("look", id="c1")], "a0")
    for before, asked in (
        ([user("q", "u0"), assistant("a", id="a0"), user("hi", "u1")], ("u1",)),
        ([user("q", "u0"), asks, tool_result("c1", "look", "saw", id="t1")], ()),
    ):
        agent = agent_of("ok")
        events = Events()
        await agent.memory.add("t", before)

        result = await agent.invoke((), conversation_id="t", on_event=events)

        assert result.text == "ok"
        assert events.of(TurnStarted)[0].message_ids == asked
        assert len(model_of(agent).requests) == 1


@pytest.mark.parametrize("history", [[], [user("q", "u0"), assistant("a", id="a0")]])
async def test_nothing_to_answer(history: Any) -> None:
    """Without input there must be something to answer; nothing is stored or reported."""
    agent, events = agent_of(), Events()
    await agent.memory.add("t", history)

    with pytest.raises(InputError) as caught:
        await agent.invoke((), conversation_id="t", on_event=events)

    assert caught.value.code == "empty_input"
    assert events.all == []
    with pytest.raises(InputError):
        await agent.invoke(())


async def test_a_host_may_store_the_question_first() -> None:
    """A question that is stored already is not stored again when it is passed, too."""
    agent = agent_of("one")
    question = user("hi", "u1")
    await agent.memory.add("t", [question])

    await agent.invoke([question], conversation_id="t")

    assert lines(await agent.memory.get("t")) == ["user: hi", "assistant: one"]


async def test_questions_a_host_stored_are_the_entry() -> None:
    """Turn filters see the stored questions that nobody answered yet, and may rewrite them."""

    async def loud(request: TurnRequest, chain: Any) -> Any:
        assert request.messages is not None
        louder = tuple(
            m.replace(model_content=m.text.upper(), rewritten_by=("loud",))
            for m in request.messages
        )
        return await chain(request.replace(messages=louder))

    agent = agent_of("ok", filters=[Filter.of("loud", turn=loud)])
    await agent.memory.add("t", [user("q"), assistant("a"), user("one"), user("two")])

    await agent.invoke((), conversation_id="t")

    sent = [m.for_model() for m in model_of(agent).requests[0].messages]
    assert sent == ["q", "a", "ONE", "TWO"]
    assert [m.content for m in await agent.memory.get("t")] == ["q", "a", "one", "two", "ok"]


async def test_heals_even_when_a_filter_blocks() -> None:
    """LOOP6: open calls are answered at the start, also if the turn is then blocked."""

    async def block(request: TurnRequest, chain: Any) -> Any:
        return request.answer("no", blocked_by="block")

    agent = agent_of(filters=[Filter.of("b", turn=block)])
    await agent.memory.add("t", [user("q", "u0"), assistant(None, [call("look", id="c1")], "a0")])

    await agent.invoke("hi", conversation_id="t")

    stored = await agent.memory.get("t")
    assert [(m.tool_call_id, m.outcome) for m in stored[2:]] == [("c1", "cancelled")]
    assert stored[2].id


async def test_a_store_that_cannot_be_read() -> None:
    """The turn ends as an error, with its end as the only event."""
    agent = agent_of(memory=Breaking("get", StoreError("gone")))
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert result.error is not None and result.error.code == "store_error"
    assert events.kinds() == ["TurnEnded"]


@pytest.mark.parametrize("operation", ["get", "clear"])
async def test_a_lost_lease_is_never_contained(operation: str) -> None:
    """Wherever the lease is found lost, it comes out and no more events are sent."""
    agent = agent_of("ok", memory=Breaking(operation, LeaseLost("t", 1, 2)))
    events = Events()
    name = "t" if operation == "get" else None

    with pytest.raises(LeaseLost):
        await agent.invoke("hi", conversation_id=name, on_event=events)

    assert "TurnEnded" not in events.kinds()


async def test_a_lost_lease_in_the_loop() -> None:
    """A model call during which the lease is lost ends the turn at once."""
    agent = agent_of(LeaseLost("t", 1, 2))

    with pytest.raises(LeaseLost):
        await agent.invoke("hi", conversation_id="t")


async def test_an_ephemeral_conversation_that_cannot_be_cleared(caplog: Any) -> None:
    """The outcome stands."""
    agent = agent_of("ok", memory=Breaking("clear", StoreError("gone")))

    with caplog.at_level(logging.CRITICAL):
        result = await agent.invoke("hi")

    assert result.status == "completed"


async def test_instructions_that_fail(caplog: Any) -> None:
    """A function of instructions that raises ends the turn as an error."""

    def instructions(context: Any) -> str:
        raise KeyError("tenant")

    with caplog.at_level(logging.CRITICAL):
        result = await agent_of(instructions=instructions).invoke("hi")

    assert result.error is not None and result.error.code == "internal_error"


async def test_errors_of_filters_become_results() -> None:
    """An error of the tree out of a turn filter is the result's error, as it is."""
    error = ModelError("auth", "no key")

    async def fail(request: TurnRequest, chain: Any) -> Any:
        raise error

    result = await agent_of(filters=[Filter.of("f", turn=fail)]).invoke("hi")

    assert (result.status, result.error) == ("error", error)


@pytest.mark.parametrize("hook", ["turn", "iteration", "chat", "tool"])
async def test_a_filter_that_returns_nothing_is_named(hook: str, caplog: Any) -> None:
    """A hook that forgets to return what the chain gave ends in a failure that says so."""

    async def forgets(request: Any, chain: Any) -> Any:
        await chain(request)

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    hooks: Any = {hook: forgets}
    agent = agent_of(calls(call("look")), "ok", tools=[look], filters=[Filter.of("f", **hooks)])

    result = await agent.invoke("hi", conversation_id="t")

    told = result.records[0].content if hook == "tool" else caplog.text
    assert result.status == ("completed" if hook == "tool" else "error")
    assert "forgets: expected " in told and "got NoneType" in told


async def test_our_own_task_is_cancelled() -> None:
    """A cancel of the surrounding task propagates, and nothing more is stored or sent."""
    from played_model import Streamed

    agent = agent_of(Streamed([asyncio.Event()]))
    events = Events()
    task = asyncio.ensure_future(agent.invoke("hi", conversation_id="t", on_event=events))
    await events.until(lambda event: type(event).__name__ == "CallStarted")

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert events.kinds()[-1] == "CallStarted"
    assert lines(await agent.memory.get("t")) == ["user: hi"]


@tool(sensitive=True)
async def pay() -> str:
    """Pay."""
    return "paid"


class Pauses(InMemoryPauseStore):
    """A store whose named operation raises."""

    def __init__(self, **errors: Exception) -> None:
        super().__init__()
        self.errors = errors

    async def save(self, pause: Any) -> None:
        """Save, or fail."""
        if "save" in self.errors:
            raise self.errors["save"]
        await super().save(pause)

    async def load(self, conversation_id: str) -> Any:
        """Load, or fail."""
        if "load" in self.errors:
            raise self.errors["load"]
        return await super().load(conversation_id)


UNREADABLE = ResumeRefused([ResumeProblem("pause_unreadable", "it is newer")])


async def test_a_turn_waits_and_goes_on() -> None:
    """The pause is told before the end, and its resume begins with an event of its own."""
    agent, events = (
        agent_of(calls(call("pay", id="c")), "ok", tools=[pay], pauses=Pauses()),
        Events(),
    )

    first = await agent.invoke("hi", conversation_id="t", on_event=events)
    second = await agent.resume({"c": Approve()}, conversation_id="t", on_event=events)

    kinds = events.kinds()
    assert (first.status, second.status) == ("paused", "completed")
    assert kinds[kinds.index("TurnPaused") :][:3] == ["TurnPaused", "TurnEnded", "TurnResumed"]


async def test_a_pause_is_discarded_by_a_new_turn() -> None:
    """What it waited for is noted as discarded; with `refuse` the turn does not begin."""
    agent, events = (
        agent_of(calls(call("pay", id="c")), "ok", tools=[pay], pauses=Pauses()),
        Events(),
    )
    await agent.invoke("hi", conversation_id="t")

    with pytest.raises(AwaitingResume):
        await agent.invoke("more", conversation_id="t", on_paused="refuse")
    await agent.invoke("more", conversation_id="t", on_event=events)

    assert events.kinds()[0] == "Reported"
    assert await agent.session("t").paused() is None


async def test_a_pause_that_cannot_be_read() -> None:
    """It is discarded like any other, and never taken for none."""
    agent = agent_of("ok", pauses=Pauses(load=UNREADABLE))
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)
    with pytest.raises(ResumeRefused) as caught:
        await agent.resume({}, conversation_id="t")

    assert (result.status, events.kinds()[0]) == ("completed", "Reported")
    assert caught.value.code == "pause_unreadable"


@pytest.mark.parametrize("error", [StoreError("full"), LeaseLost("t", 1, 2)])
async def test_a_pause_that_cannot_be_kept(error: Exception, caplog: Any) -> None:
    """The result has it and a note says so; a lost lease comes out."""
    agent, events = agent_of(calls(call("pay")), tools=[pay], pauses=Pauses(save=error)), Events()

    with caplog.at_level(logging.CRITICAL):
        if isinstance(error, LeaseLost):
            with pytest.raises(LeaseLost):
                await agent.invoke("hi", conversation_id="t", on_event=events)
            return
        result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert result.pause is not None
    assert "Reported" in events.kinds()


async def test_a_resume_nobody_carried_out() -> None:
    """A filter that does not call the chain leaves the pause as it was."""

    async def block(request: TurnRequest, chain: Any) -> Any:
        return request.answer("later") if request.is_resume else await chain(request)

    agent = agent_of(
        calls(call("pay", id="c")),
        tools=[pay],
        pauses=Pauses(),
        filters=[Filter.of("b", turn=block)],
    )
    first = await agent.invoke("hi", conversation_id="t")

    result = await agent.resume({"c": Approve()}, conversation_id="t")

    assert result.pause == first.pause == await agent.session("t").paused()
