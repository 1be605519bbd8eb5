"""Turns that wait: for approvals, for the client, for their environment."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from agent.agents import Events, agent_of, lines, model_of
from agent.shop import CONFIRM, PICK, Shop
from backscroll.agent.answers import Approve, GiveUp, Reject, Reply, Retry
from backscroll.agent.events import (
    IterationStarted,
    Reported,
    ToolFinished,
    ToolStarted,
    TurnPaused,
    TurnResumed,
)
from backscroll.agent.gate import Answer, AskFirst, Proceed, Refuse
from backscroll.agent.pause import InMemoryPauseStore
from backscroll.kernel.errors import AwaitingResume, ResumeRefused, StoreError
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Role, tool_result, user
from backscroll.kernel.request import Note
from backscroll.kernel.tool import Slot, ToolContext, ToolResult, client_tool, tool
from backscroll.kernel.turn import TurnRequest
from conversation.histories import faults
from played_model import call, calls, sent

ADD, PAY = call("add", {"a": 1, "b": 2}, "c1"), call("pay", {"amount": 10}, "c2")
MAIL = call("mail", {"to": "ann"}, "c3")


async def test_a_pause() -> None:
    """HITL1, LOOP5: nothing ran, the store ends with the calls, the items are in the result."""
    shop = Shop()
    agent = shop.agent(calls(ADD, PAY))
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert (result.status, shop.ran) == ("paused", [])
    assert lines(await agent.memory.get("t")) == ["user: hi", "assistant: [add][pay]"]
    assert result.pause is not None
    (item,) = result.pause.items
    assert (item.id, item.kind, item.tool, item.args) == ("c2", "approval", "pay", {"amount": 10})
    assert item.reason == result.pause.reason == "pay needs approval before it runs."
    assert events.of(ToolFinished) == []
    assert events.kinds()[-2:] == ["TurnPaused", "TurnEnded"]
    assert events.of(TurnPaused)[0].pause == result.pause


async def test_approved() -> None:
    """HITL2: the tool runs once, the model reads its result, the turn completes."""
    shop = Shop()
    agent = shop.agent(calls(PAY), "done")
    events = Events()
    await agent.invoke("hi", conversation_id="t")

    result = await agent.resume({"c2": Approve()}, conversation_id="t", on_event=events)

    assert (result.status, result.text, shop.ran) == ("completed", "done", ["pay 10"])
    assert lines(await agent.memory.get("t"))[2:] == ["tool: paid 10", "assistant: done"]
    assert [len(result.records), len(result.usage)] == [1, 2]
    (resumed,) = events.of(TurnResumed)
    assert resumed.answers == {"c2": Approve()}
    assert [e.index for e in events.of(IterationStarted)] == [0]


async def test_rejected() -> None:
    """HITL3: not run, and the model reads the refusal with its reason."""
    for reason, text in ((None, "this call."), ("too much", "this call: too much.")):
        shop = Shop()
        agent = shop.agent(calls(PAY), "ok")
        await agent.invoke("hi", conversation_id="t")

        await agent.resume({"c2": Reject(reason)}, conversation_id="t")

        assert shop.ran == []
        assert text in sent(model_of(agent).requests[1])[-1]


async def test_a_mixed_batch() -> None:
    """HITL4: one is free, one rejected, one approved: one request, three results in call order."""
    shop = Shop()
    agent = shop.agent(calls(ADD, PAY, MAIL), "ok")
    await agent.invoke("hi", conversation_id="t")

    await agent.resume({"c2": Reject(), "c3": Approve()}, conversation_id="t")

    assert shop.ran == ["add", "mail ann"]
    assert len(model_of(agent).requests) == 2
    results = model_of(agent).requests[1].messages[2:]
    assert [(m.tool_call_id, m.outcome) for m in results] == [
        ("c1", "ok"),
        ("c2", "refused"),
        ("c3", "ok"),
    ]


async def test_never_resumed() -> None:
    """HITL5: a new turn discards the pause, its calls are abandoned, and the turn works."""
    shop = Shop()
    agent = shop.agent(calls(PAY), "ok")
    await agent.invoke("hi", conversation_id="t")
    events = Events()

    result = await agent.invoke("never mind", conversation_id="t", on_event=events)

    stored = await agent.memory.get("t")
    assert (result.text, shop.ran) == ("ok", [])
    assert stored[2].text.startswith("Not executed: this call was never approved")
    assert [e.report.kind for e in events.of(Reported)] == ["pause_discarded"]
    assert agent.pauses is not None and await agent.pauses.load("t") is None
    with pytest.raises(ResumeRefused, match="nothing waits"):
        await agent.resume({"c2": Approve()}, conversation_id="t")


async def test_a_new_turn_may_be_refused() -> None:
    """With `on_paused="refuse"` the items are told and nothing changes."""
    agent = Shop().agent(calls(PAY))
    first = await agent.invoke("hi", conversation_id="t")

    with pytest.raises(AwaitingResume) as caught:
        await agent.invoke("more", conversation_id="t", on_paused="refuse")

    assert caught.value.pause == first.pause
    assert len(await agent.memory.get("t")) == 2
    assert (await agent.session("t").paused()) == first.pause


async def test_edited_arguments() -> None:
    """HITL6: they run if they fit; if not, the pause stays as it was."""
    shop = Shop()
    agent = shop.agent(calls(PAY), "ok")
    await agent.invoke("hi", conversation_id="t")

    with pytest.raises(ResumeRefused) as caught:
        await agent.resume({"c2": Approve({"amount": "x"})}, conversation_id="t")
    result = await agent.resume({"c2": Approve({"amount": 5})}, conversation_id="t")

    assert caught.value.code == "invalid_arguments"
    assert shop.ran == ["pay 5"]
    (record,) = result.records
    assert (record.args, record.edited_args) == ({"amount": 10}, {"amount": 5})
    assert (await agent.memory.get("t"))[1].tool_calls == (PAY,)


async def test_answers_that_do_not_fit() -> None:
    """HITL7: nothing runs, and the pause stays."""
    shop = Shop()
    agent = shop.agent(calls(PAY, MAIL), "ok")
    await agent.invoke("hi", conversation_id="t")

    for answers, code in (
        ({"c2": Approve()}, "interrupt_incomplete"),
        ({"c2": Approve(), "c3": Approve(), "c9": Approve()}, "interrupt_unknown"),
    ):
        with pytest.raises(ResumeRefused) as caught:
            await agent.resume(answers, conversation_id="t")
        assert caught.value.code == code

    assert shop.ran == []
    both = {"c2": Approve(), "c3": Approve()}
    assert (await agent.resume(both, conversation_id="t")).status == "completed"


async def test_replied() -> None:
    """HITL8: the body never runs, the text is the result."""
    shop = Shop()
    agent = shop.agent(calls(PAY), "ok")
    await agent.invoke("hi", conversation_id="t")

    await agent.resume({"c2": Reply("paid in cash")}, conversation_id="t")

    assert shop.ran == []
    assert sent(model_of(agent).requests[1])[-1] == "tool: paid in cash"


async def test_two_resumes_at_once() -> None:
    """HITL9: over fifty rounds the tool runs at most once, and the loser learns of it."""
    for n in range(50):
        shop = Shop()
        agent = shop.agent(calls(PAY), "ok")
        await agent.invoke("hi", conversation_id="t")
        answers = [Approve(), Reject()] if n % 2 else [Reject(), Approve()]

        ended = await asyncio.gather(
            *(agent.resume({"c2": answer}, conversation_id="t") for answer in answers),
            return_exceptions=True,
        )

        codes = [getattr(end, "code", "ran") for end in ended]
        assert sorted(codes) == ["not_paused", "ran"]
        assert len(shop.ran) <= 1


async def test_client_tools() -> None:
    """HITL10: the server's call is done and stored; after both replies one request has all."""
    shop = Shop()
    agent = shop.agent(calls(call("pick", id="p"), ADD, call("confirm", id="q")), "ok")
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", tools=[PICK, CONFIRM], on_event=events)
    before = await agent.memory.get("t")
    replies = {"p": Reply("monday"), "q": Reject("not now")}
    await agent.resume(replies, conversation_id="t", on_event=events)

    assert result.pause is not None
    assert [(i.id, i.kind) for i in result.pause.items] == [("p", "client"), ("q", "client")]
    assert (shop.ran, before[-1].text) == (["add"], "3")
    request = model_of(agent).requests[1]
    assert [m.text for m in request.messages if m.role is Role.TOOL] == [
        "monday",
        "3",
        "The user cancelled this step on their side: not now. It was not carried out.",
    ]
    assert faults(request.messages) == []
    assert {t.name for t in request.tools} >= {"pick", "confirm"}
    assert len(events.of(ToolFinished)) == 3


async def test_a_client_result_with_an_id_of_its_own() -> None:
    """A reply keeps the id of the message that a host has stored already."""
    agent = Shop().agent(calls(call("pick", id="p")), "ok")
    await agent.invoke("hi", conversation_id="t", tools=[PICK])
    stored = tool_result("p", "pick", "monday", id="from-client", outcome="replied")
    await agent.memory.add("t", [stored])

    await agent.resume({"p": Reply("monday", message_id="from-client")}, conversation_id="t")

    assert (await agent.memory.get("t"))[2:3] == [stored]
    assert len(await agent.memory.get("t")) == 4


async def test_environment_failures() -> None:
    """HITL11: a failed retry pauses again, one that works goes on, giving up tells the model."""
    shop = Shop()
    script = (calls(ADD, call("login", id="l")), "ok", calls(call("login", id="m")), "sorry")
    agent = shop.agent(*script, on_environment_error="pause")
    events = Events()

    first = await agent.invoke("hi", conversation_id="t", on_event=events)
    again = await agent.resume({"l": Retry()}, conversation_id="t", on_event=events)
    shop.key = "k"
    done = await agent.resume({"l": Retry()}, conversation_id="t", on_event=events)
    shop.key = None
    await agent.invoke("more", conversation_id="t")
    given_up = await agent.resume({"m": GiveUp()}, conversation_id="t")

    assert [r.status for r in (first, again, done)] == ["paused", "paused", "completed"]
    assert first.pause is not None and first.pause.items[0].kind == "environment"
    assert [e.attempt for e in events.of(ToolStarted) if e.name == "login"] == [1, 2, 3]
    assert len(events.of(ToolFinished)) == 2
    assert [r.content for r in done.records] == ["3", "in with k"]
    assert given_up.text == "sorry"
    assert sent(model_of(agent).requests[3])[-1] == "tool: error: no key"
    assert faults(model_of(agent).requests[1].messages) == []


async def test_environment_failures_are_reported_by_default() -> None:
    """Without the policy the model reads the error."""
    agent = Shop().agent(calls(call("login")), "ok")

    result = await agent.invoke("hi", conversation_id="t")

    assert result.status == "completed"
    assert sent(model_of(agent).requests[1])[-1] == "tool: error: no key"


async def test_a_restart_in_between() -> None:
    """HITL12, CTX6: another agent with the same stores goes on, with the slots as they were."""
    seen: list[Any] = []

    @tool(sensitive=True)
    async def check(ctx: ToolContext) -> str:
        """Check the context."""
        seen.append((ctx["items"], ctx["tenant"]))
        return "ok"

    @tool
    async def put(item: str) -> ToolResult:
        """Put an item."""
        return ToolResult("put", writes={"items": item})

    parts = {
        "pauses": InMemoryPauseStore(),
        "tools": [check, put],
        "slots": {"items": Slot(list, lambda old, new: [*old, new])},
    }
    first = agent_of(calls(call("put", {"item": "a"})), calls(call("check", id="c")), **parts)
    await first.invoke("hi", conversation_id="t", context={"tenant": "north"})

    second = agent_of("done", **parts, memory=first.memory)
    result = await second.resume({"c": Approve()}, conversation_id="t")

    assert seen == [(["a"], "north")]
    assert result.text == "done"
    assert result.context["items"] == ["a"]
    assert len(result.records) == 2


async def test_another_pass_after_a_resume() -> None:
    """HITL13: a filter that re-enters after a resume: one more call, at index 0."""

    async def again(request: TurnRequest, chain: Any) -> Any:
        result = await chain(request)
        if result.status != "completed":
            return result
        return await chain(request.replace(messages=(user("shorter"),), is_resume=False))

    agent = Shop().agent(calls(PAY), "long", "short", filters=[Filter.of("again", turn=again)])
    await agent.invoke("hi", conversation_id="t")
    events = Events()

    result = await agent.resume({"c2": Approve()}, conversation_id="t", on_event=events)

    assert result.text == "short"
    assert [e.index for e in events.of(IterationStarted)] == [0, 0]


async def test_iteration_filters_see_the_pause() -> None:
    """FIL8: the filter sees the paused result; the resumed batch does not pass it."""
    seen: list[str] = []

    async def probe(request: Any, chain: Any) -> Any:
        step = await chain(request)
        seen.append(getattr(step, "status", "continue"))
        return step

    agent = Shop().agent(calls(PAY), "ok", filters=[Filter.of("p", iteration=probe)])
    await agent.invoke("hi", conversation_id="t")
    await agent.resume({"c2": Approve()}, conversation_id="t")

    assert seen == ["paused", "completed"]


async def test_direct_tools_that_need_approval() -> None:
    """DIR5, HITL15: once approved, their output ends the turn without a model call."""

    @tool(sensitive=True, return_direct=True)
    async def show(what: str) -> str:
        """Show something."""
        return what

    wanted = [call("show", {"what": w}, w) for w in "ab"]
    agent = agent_of(calls(*wanted), tools=[show], pauses=InMemoryPauseStore())
    await agent.invoke("hi", conversation_id="t")

    result = await agent.resume({"a": Approve(), "b": Reply("B")}, conversation_id="t")

    assert (result.text, result.return_direct) == ("a\nB", True)
    assert len(model_of(agent).requests) == 1


async def test_a_direct_batch_split_by_a_pause() -> None:
    """HITL15: what ran before the pause and after it is the answer, in call order."""
    server = tool(return_direct=True)(_shout)
    picker = client_tool("pick", "Pick.", return_direct=True)
    wanted = [call("pick", id="p"), call("shout", {"what": "x"}, "s")]
    agent = agent_of(calls(*wanted), tools=[server, picker], pauses=InMemoryPauseStore())

    first = await agent.invoke("hi", conversation_id="t")
    result = await agent.resume({"p": Reply("monday")}, conversation_id="t")

    assert first.status == "paused"
    assert (result.text, result.return_direct) == ("monday\nX", True)


async def test_the_gate_is_asked_once_per_runnable_call() -> None:
    """LOOP10: never for unknown tools, bad arguments or client tools, and not again on resume."""
    asked: list[str] = []

    def gate(wanted: Any, info: Any, context: Any) -> Any:
        asked.append(wanted.id)
        decisions = {"c1": Proceed(), "c2": AskFirst("sure?"), "c3": Refuse("no mails")}
        return decisions.get(wanted.id, Answer("decided"))

    bad, ghost, pick = call("add", "{", "x"), call("ghost", id="g"), call("pick", id="p")
    four = call("add", {"a": 2, "b": 2}, "c4")
    agent = Shop().agent(calls(ADD, bad, PAY, ghost, MAIL, pick, four), "ok", gate=gate)

    paused = await agent.invoke("hi", conversation_id="t", tools=[PICK])
    answers = {"c2": Approve(), "p": Reply("monday")}
    result = await agent.resume(answers, conversation_id="t")

    assert asked == ["c1", "c2", "c3", "c4"]
    assert paused.pause is not None
    assert [i.id for i in paused.pause.items] == ["c2", "p"]
    assert [r.outcome for r in result.records] == [
        "ok", "error", "ok", "error", "refused", "replied", "replied",
    ]  # fmt: skip
    assert (
        result.records[4].content
        == "The user did not allow this call: no mails. It was not executed."
    )


async def test_the_budget_is_checked_before_the_gate() -> None:
    """Nobody is asked about a call that could not run; a resumed batch has used its round."""
    asked: list[str] = []

    def gate(wanted: Any, info: Any, context: Any) -> Any:
        asked.append(wanted.id)
        return AskFirst()

    agent = Shop().agent(calls(ADD), calls(ADD), gate=gate, max_iterations=1)
    await agent.invoke("hi", conversation_id="t")
    result = await agent.resume({"c1": Approve()}, conversation_id="t")

    assert asked == ["c1"]
    assert result.error is not None and result.error.code == "max_iterations_exceeded"
    assert faults(await agent.memory.get("t")) == []


async def test_an_ephemeral_conversation_waits() -> None:
    """LOOP5: it is there while it waits, and cleared when the resumed turn ends."""
    agent = Shop().agent(calls(PAY), "ok")

    paused = await agent.invoke("hi")
    name = paused.conversation_id or ""
    kept = await agent.memory.get(name)
    await agent.resume({"c2": Approve()}, conversation_id=name)

    assert len(kept) == 2
    assert await agent.memory.get(name) == []


async def test_what_a_pause_cannot_keep() -> None:
    """PS4: a socket in the context is noted by name; the resume may bring a new one."""
    agent = Shop().agent(calls(PAY), "ok")
    events = Events()
    with socket.socket() as plug:
        context = {"plug": plug, "tenant": "north"}
        await agent.invoke("hi", conversation_id="t", context=context, on_event=events)

        result = await agent.resume(
            {"c2": Approve()}, conversation_id="t", context={"plug": plug, "tenant": "south"}
        )

    (note,) = [e.report for e in events.of(Reported) if isinstance(e.report, Note)]
    assert (note.kind, note.text.endswith(": plug")) == ("pause_context", True)
    assert (result.context["plug"], result.context["tenant"]) == (plug, "north")


async def test_a_store_that_fails_to_save() -> None:
    """The pause is in the result, a note says so, and it can be resumed from there, once."""

    class Failing(InMemoryPauseStore):
        async def save(self, pause: Any) -> None:
            raise StoreError("full")

    shop = Shop()
    agent = shop.agent(calls(PAY), "ok", pauses=Failing())
    events = Events()

    paused = await agent.invoke("hi", conversation_id="t", on_event=events)
    result = await agent.resume({"c2": Approve()}, pause=paused.pause)
    with pytest.raises(ResumeRefused, match="nothing waits"):
        await agent.resume({"c2": Approve()}, pause=paused.pause)

    assert [e.report.kind for e in events.of(Reported)] == ["pause_not_stored"]
    assert (result.text, shop.ran) == ("ok", ["pay 10"])


async def test_a_filter_that_leaves_the_pause_alone() -> None:
    """Not calling the chain on a resume leaves the pause as it was."""
    blocks = True

    async def block(request: TurnRequest, chain: Any) -> Any:
        if request.is_resume and blocks:
            assert request.messages is None
            return request.answer("not now", blocked_by="block")
        return await chain(request)

    shop = Shop()
    agent = shop.agent(calls(PAY), "ok", filters=[Filter.of("block", turn=block)])
    paused = await agent.invoke("hi", conversation_id="t")

    first = await agent.resume({"c2": Approve()}, conversation_id="t")
    blocks = False
    second = await agent.resume({"c2": Approve()}, conversation_id="t")

    assert (first.text, first.pause) == ("not now", paused.pause)
    assert (second.text, shop.ran) == ("ok", ["pay 10"])


async def test_a_tool_that_is_gone() -> None:
    """An approval for a tool the agent no longer has is refused; a rejection is not."""
    store = InMemoryPauseStore()
    first = Shop().agent(calls(PAY), pauses=store)
    await first.invoke("hi", conversation_id="t")
    second = agent_of("ok", pauses=store, memory=first.memory)

    with pytest.raises(ResumeRefused) as caught:
        await second.resume({"c2": Approve()}, conversation_id="t")
    result = await second.resume({"c2": Reject()}, conversation_id="t")

    assert caught.value.code == "tool_gone"
    assert result.status == "completed"


async def test_an_expired_pause() -> None:
    """After its lifetime only rejecting is possible."""
    agent = Shop().agent(calls(PAY), "ok", pause_expires_s=60)
    paused = await agent.invoke("hi", conversation_id="t")
    assert paused.pause is not None
    assert paused.pause.expires_at == paused.pause.created_at + 60

    await agent.clock.sleep(60)
    with pytest.raises(ResumeRefused) as caught:
        await agent.resume({"c2": Approve()}, conversation_id="t")
    result = await agent.resume({"c2": Reject()}, conversation_id="t")

    assert caught.value.code == "interrupt_expired"
    assert result.status == "completed"


async def test_a_resumed_turn_that_is_cancelled() -> None:
    """LOOP9: calls that had not begun are told so; nothing dangles."""
    from backscroll.kernel.ports import CancelToken

    shop, token = Shop(), CancelToken()
    agent = shop.agent(calls(PAY, MAIL))
    await agent.invoke("hi", conversation_id="t")
    token.cancel()
    both = {"c2": Approve(), "c3": Approve()}

    result = await agent.resume(both, conversation_id="t", cancel=token)

    assert (result.status, shop.ran) == ("cancelled", [])
    assert faults(await agent.memory.get("t")) == []


def _shout(what: str) -> str:
    """Shout."""
    return what.upper()


_shout.__name__ = "shout"


async def test_messages_with_the_answers() -> None:
    """HITL2: they go behind the results, and the model answers both."""
    agent = Shop().agent(calls(PAY), "done")
    await agent.invoke("go", conversation_id="t")

    result = await agent.resume({"c2": Approve()}, conversation_id="t", messages="and hurry")

    assert lines(model_of(agent).requests[1].messages)[-2:] == ["tool: paid 10", "user: and hurry"]
    assert result.status == "completed"


async def test_messages_behind_a_direct_result() -> None:
    """DIR5: a result that would end the turn does not, where something was said besides."""

    @tool(sensitive=True, return_direct=True)
    async def quote() -> str:
        """Quote."""
        return "42"

    agent = agent_of(calls(call("quote", {}, "c1")), "done", tools=[quote])
    paused = await agent.invoke("go", conversation_id="t")
    answers = {"c1": Approve()}

    result = await agent.resume(
        answers, pause=paused.pause, conversation_id="t", messages=[user("and?", "u2")]
    )

    assert (result.text, result.return_direct) == ("done", False)
    assert lines(model_of(agent).requests[1].messages)[-2:] == ["tool: 42", "user: and?"]
