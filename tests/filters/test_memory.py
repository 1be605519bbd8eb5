"""The memory filter sends whole histories and stores whole replies."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.filters.kept import CONVERSATIONS as REMEMBERED
from backscroll.filters.memory import MemoryFilter
from backscroll.kernel.client import ChatClient
from backscroll.kernel.content import TextPart, file_part
from backscroll.kernel.errors import ModelError, StoreError
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Message, Role, assistant, tool_result, user
from backscroll.kernel.model import CallArgs, CallOpened, ModelProfile, Reasoning, Text
from backscroll.kernel.request import ChatRequest, Note, Stream, ViewPlanned
from played_model import PlayedModel, Said, Streamed, StreamingModel, call, calls, sent

PNG = file_part(b"\x89PNG", "image/png")
SEES = ModelProfile(parts={"user": ("image/*",)})
THREAD = {"conversation_id": "t"}


class Reports:
    """Keeps what filters report."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    async def started(self, _: Any) -> None: ...
    async def retried(self, _: Any) -> None: ...
    async def finished(self, _: Any) -> None: ...
    async def report(self, report: Any) -> None:
        self.all.append(report)

    def keys(self) -> list[str | None]:
        return [report.key for report in self.all if isinstance(report, Note)]

    def claims(self) -> list[tuple[str, str | None]]:
        views = (report for report in self.all if isinstance(report, ViewPlanned))
        return [(c.fate, c.message_id) for view in views for c in view.claims]


class Desk:
    """A client over one memory, with one request after another."""

    def __init__(self, model: PlayedModel, *filters: Filter) -> None:
        self.memory = InMemoryChatMemory()
        self.filter = MemoryFilter(self.memory)
        self.model, self.reports = model, Reports()
        self.client = ChatClient(model, filters=[self.filter, *filters])

    async def ask(self, *messages: Message, **fields: Any) -> Any:
        """Make one call in the conversation."""
        request = ChatRequest(messages, context=THREAD, observer=self.reports, reply_id="a")
        return await self.client.chat(request.replace(**fields))

    async def stored(self) -> list[str]:
        """Return what is stored, a short line each."""
        return [f"{m.role}: {m.content}" for m in await self.memory.get("t")]


def stream(delivered: list[Any]) -> Stream:
    """Return a stream into a list."""

    async def sink(delta: Any) -> None:
        delivered.append(delta)

    return Stream(sink)


async def test_second_turn_sees_the_first() -> None:
    """MF1: the delta is all that is passed, the whole history is what is sent."""
    desk = Desk(PlayedModel(["one", "two"]))

    await desk.ask(user("hi"), reply_id="a1")
    await desk.ask(user("and?"), reply_id="a2")

    assert sent(desk.model.requests[0]) == ["user: hi"]
    assert sent(desk.model.requests[1]) == ["user: hi", "assistant: one", "user: and?"]
    assert await desk.stored() == ["user: hi", "assistant: one", "user: and?", "assistant: two"]


async def test_stores_calls_under_the_reply_id() -> None:
    """MF2, MSG6: a reply with calls is stored whole, its content None, under the minted id."""
    desk = Desk(PlayedModel([calls(call("look", {"a": 1}))]))

    response = await desk.ask(user("hi"), reply_id="a7")

    stored = (await desk.memory.get("t"))[1]
    assert stored == response.message
    assert (stored.id, stored.content) == ("a7", None)
    assert [(c.name, c.args) for c in stored.tool_calls] == [("look", {"a": 1})]


async def test_without_a_conversation_nothing_is_kept() -> None:
    """MF3: without a conversation id the messages pass unchanged and nothing is stored."""
    desk = Desk(PlayedModel(["one"]))

    await desk.ask(user("hi"), context={})

    assert sent(desk.model.requests[0]) == ["user: hi"]
    assert await desk.stored() == []


async def test_a_failed_call_leaves_the_question() -> None:
    """MF4: the error comes out as it is, and only the user's message is stored."""
    error = ModelError("provider", "down")
    desk = Desk(PlayedModel([error]))

    with pytest.raises(ModelError) as caught:
        await desk.ask(user("hi"))

    assert caught.value is error
    assert await desk.stored() == ["user: hi"]


async def test_an_inner_filter_that_calls_twice() -> None:
    """MF5, REQ7: two calls further in store the delta once and the last reply once."""

    async def twice(request: ChatRequest, chain: Any) -> Any:
        await chain(request)
        return await chain(request)

    desk = Desk(PlayedModel(["one", "two"]), Filter.of("twice", chat=twice))

    await desk.ask(user("hi"))

    assert await desk.stored() == ["user: hi", "assistant: two"]


async def test_a_store_that_fails_at_the_end() -> None:
    """MF6: a reply that cannot be stored is an error, not an answer."""

    class Failing(InMemoryChatMemory):
        async def add(self, conversation_id: str, messages: Any) -> Any:
            if messages[0].role is Role.ASSISTANT:
                raise StoreError("no space left")
            return await super().add(conversation_id, messages)

    client = ChatClient(PlayedModel(["one"]), filters=[MemoryFilter(Failing())])

    with pytest.raises(StoreError, match="no space left"):
        await client.chat(ChatRequest((user("hi"),), context=THREAD))


async def test_keeps_the_text_of_a_broken_stream() -> None:
    """MF7: what had arrived is stored as incomplete, without the half call, which is noted."""
    broken = ModelError("incomplete_stream", "it broke off")
    pieces = [Reasoning("hm"), Text("Hel"), CallOpened("c1", "look"), CallArgs("c1", '{"a'), broken]
    desk = Desk(StreamingModel([Streamed(pieces), "again"]))

    with pytest.raises(ModelError):
        await desk.ask(user("hi"), stream=stream([]), reply_id="a1")
    await desk.ask(user("go on"), reply_id="a2")

    stored = (await desk.memory.get("t"))[1]
    assert (stored.content, stored.incomplete, stored.tool_calls) == ("Hel", True, ())
    assert (stored.id, stored.reasoning) == ("a1", "hm")
    assert sent(desk.model.requests[1]) == ["user: hi", "assistant: Hel", "user: go on"]
    (note,) = desk.reports.all
    assert (note.kind, note.data["calls"]) == ("incomplete_stream", ['look {"a'])


@pytest.mark.parametrize("kind", ["provider", "network", "timeout", "context_overflow"])
async def test_keeps_the_text_of_a_failed_stream(kind: Any) -> None:
    """MF7, ANT7: whatever ended it, what people have read stays, marked incomplete."""
    pieces = [Text("Once "), Text("upon"), ModelError(kind, "it failed")]
    desk = Desk(StreamingModel([Streamed(pieces), "again"]))

    with pytest.raises(ModelError):
        await desk.ask(user("hi"), stream=stream([]), reply_id="a1")

    stored = (await desk.memory.get("t"))[1]
    assert (stored.id, stored.content, stored.incomplete) == ("a1", "Once upon", True)


async def test_blank_partial_replies_are_not_stored() -> None:
    """A reply that broke off before anything readable leaves nothing behind."""
    broken = ModelError("incomplete_stream", "it broke off")
    desk = Desk(StreamingModel([Streamed([Text(" "), broken])]))

    with pytest.raises(ModelError):
        await desk.ask(user("hi"), stream=stream([]))

    assert await desk.stored() == ["user: hi"]


async def test_retries_write_nothing_twice() -> None:
    """MF8: 429 twice and then an answer: filters run once, one question and one answer."""
    busy = ModelError("rate_limit", "slow down", retry_after_s=0.0)
    runs: list[str] = []

    async def count(request: ChatRequest, chain: Any) -> Any:
        runs.append("run")
        return await chain(request)

    model = PlayedModel([busy, busy, "one"])
    model.options = model.options.replace(retry=True)
    desk = Desk(model, Filter.of("count", chat=count))

    await desk.ask(user("hi"))

    assert runs == ["run"]
    assert await desk.stored() == ["user: hi", "assistant: one"]


async def test_each_repair_is_noted_once() -> None:
    """REP3, REP4: claims come with every call, notes once; the store only gains the new ones."""
    desk = Desk(PlayedModel(["one", "two", "three"]))
    before = [
        tool_result("c9", "look", "?", id="t9"),
        user("hi", "u1"),
        assistant(None, [call("look", id="c1")], "a1"),
        user("well?", "u2"),
    ]
    await desk.memory.add("t", before)

    for n in range(3):
        await desk.ask(user(f"{n}"), reply_id=f"r{n}")

    assert desk.reports.keys() == ["result_orphaned:t9:c9", "result_missing:a1:c1"]
    assert desk.reports.claims() == [("dropped", "t9"), ("injected", None)] * 3
    views = [report for report in desk.reports.all if isinstance(report, ViewPlanned)]
    assert [c.what for c in views[0].claims] == ["result_orphaned", "result_missing"]
    assert (await desk.memory.get("t"))[:4] == before
    assert len(await desk.memory.get("t")) == 4 + 6
    assert sent(desk.model.requests[0])[2] == "tool: No result of this call is on record."


async def test_reports_again_when_long_forgotten() -> None:
    """What was reported is remembered for a bounded number of conversations."""
    desk = Desk(PlayedModel(["x"] * (REMEMBERED + 3)))
    for n in range(REMEMBERED + 1):
        await desk.memory.add(f"t{n}", [tool_result("c9", "look", "?", id="t9")])
        await desk.ask(user("hi"), context={"conversation_id": f"t{n}"})
    desk.reports.all.clear()

    await desk.ask(user("hi"), context={"conversation_id": "t0"}, reply_id="b")
    await desk.ask(user("hi"), context={"conversation_id": f"t{REMEMBERED}"}, reply_id="b")

    assert desk.reports.keys() == ["result_orphaned:t9:c9"]


async def test_a_bound_filter_remembers_what_was_reported() -> None:
    """The same filter on another memory reports no key a second time."""
    desk = Desk(PlayedModel(["one"]))
    await desk.memory.add("t", [tool_result("c9", "look", "?", id="t9")])
    await desk.ask(user("hi"))
    other = InMemoryChatMemory()
    await other.add("t", [tool_result("c9", "look", "?", id="t9")])

    client = ChatClient(PlayedModel(["one"]), filters=[desk.filter.bind(other)])
    await client.chat(ChatRequest((user("hi"),), context=THREAD, observer=desk.reports))

    assert desk.reports.keys() == ["result_orphaned:t9:c9"]


async def test_an_image_a_model_cannot_see() -> None:
    """PART5, PART6: a text model reads a placeholder, the store keeps the image for the next."""
    desk = Desk(PlayedModel(["one"]))
    await desk.memory.add("t", [user((TextPart("look"), PNG), "u1"), assistant("ok", id="a1")])
    seeing = PlayedModel(["two"], profile=SEES)

    await desk.ask(user("hi"), reply_id="a2")
    await desk.ask(user("and?"), model=seeing, reply_id="a3")

    gone = TextPart("[image/png not shown: this model cannot read it]")
    assert desk.model.requests[0].messages[0].content == (TextPart("look"), gone)
    assert seeing.requests[0].messages[0].content == (TextPart("look"), PNG)
    assert desk.reports.keys() == ["part:u1"]
    assert desk.reports.claims() == [("rewritten", "u1")]


async def test_taken_ids_cover_the_history() -> None:
    """MSG9: a call id the history has already is not used a second time."""
    desk = Desk(PlayedModel([calls(call("look", id="call_0")), calls(call("look", id="call_0"))]))

    first = await desk.ask(user("hi"), reply_id="a1")
    done = tool_result("call_0", "look", "x")
    second = await desk.ask(done, user("again"), reply_id="a2")

    assert first.tool_calls[0].id == "call_0"
    assert second.tool_calls[0].id != "call_0"
    assert (await desk.memory.get("t"))[-1].tool_calls == second.tool_calls


async def test_stores_what_was_delivered() -> None:
    """FIL12: people read the delivered text, the model its own, and both are stored."""

    class Upper:
        def feed(self, delta: Any) -> list[Any]:
            return [type(delta)(delta.delta.upper())]

        def finish(self) -> list[Any]:
            return []

    desk = Desk(StreamingModel(["a secret", "ok"]), Filter.of("upper", tokens=Upper))
    delivered: list[Any] = []

    response = await desk.ask(user("hi"), stream=stream(delivered), reply_id="a1")
    await desk.ask(user("and?"), stream=stream([]), reply_id="a2")

    stored = (await desk.memory.get("t"))[1]
    assert response.text == "a secret"
    assert (stored.content, stored.model_content) == ("A SECRET", "a secret")
    assert stored.rewritten_by == ("upper",)
    assert "".join(d.delta for d in delivered) == "A SECRET"
    assert sent(desk.model.requests[1])[1] == "assistant: a secret"


async def test_an_empty_reply_is_an_empty_text() -> None:
    """A reply without text and calls has the content `""`."""
    desk = Desk(PlayedModel([Said()]))

    await desk.ask(user("hi"))

    assert (await desk.memory.get("t"))[1].content == ""


async def test_a_window() -> None:
    """What a window keeps out is claimed as dropped; its call ids stay taken."""
    inner = InMemoryChatMemory()
    old = [user("q", "u0"), assistant(None, [call("look", id="c0")], "a0")]
    await inner.add("t", [*old, tool_result("c0", "look", "x", id="t0")])
    model = PlayedModel([calls(call("look", id="c0"))])
    client, reports = (
        ChatClient(model, filters=[MemoryFilter(WindowedChatMemory(inner, 1))]),
        Reports(),
    )

    request = ChatRequest((user("hi", "u1"),), context=THREAD, observer=reports)
    response = await client.chat(request)

    assert sent(model.requests[0]) == ["user: hi"]
    assert reports.claims() == [("dropped", "u0"), ("dropped", "a0"), ("dropped", "t0")]
    assert response.tool_calls[0].id != "c0"
    assert len(await inner.get("t")) == 5
