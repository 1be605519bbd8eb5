"""One agent over both wires: the same history, and threads that change over in the middle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from backscroll.agent.agent import Agent
from backscroll.agent.events import Reported
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import (
    Message,
    Role,
    ToolCall,
    assistant,
    tool_call,
    tool_result,
    user,
)
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.kernel.request import Note
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.usage import Usage
from backscroll.providers.demo import DemoModel, DemoReply
from processes import PROGRAMS, ServerProcess
from programs.vendor_agent import agent_over, model_over
from provider_script_anthropic import block_events, sign
from scripted_provider import Call, Recorded, Reply, ScriptedProvider, usage_of
from served import request, served, sse_events

WIRES = ("openai", "anthropic")
QUESTIONS = (
    'Please think, then use add {"a": 1, "b": 2} and use broken {}',
    "记住：订单 A-1042 很重要 🌍",
    "Count to 5",
)
SCRIPT = (
    DemoReply("I look. ", "深く考える 🌍 ", (tool_call("x", "add", {"b": 2, "a": 1}),)),
    DemoReply("", "", (tool_call("x", "add", {"a": 3, "b": 4}), tool_call("y", "broken"))),
    DemoReply("Done: 3, and 7."),
    DemoReply("Yes?", "hm"),
    DemoReply("", "", (ToolCall("z", "add", None, '{"a": '),)),
    DemoReply("It broke off."),
)


def neutral(record: Recorded) -> ModelRequest:
    """Return what a request of either wire asks, as a model of ours would be asked."""
    body = record.json
    tools = [tool.get("function", tool) for tool in body.get("tools", ())]
    specs = tuple(
        ToolSpec(t["name"], t["description"], t.get("parameters") or t["input_schema"])
        for t in tools
    )
    read = _from_blocks if record.is_anthropic else _from_chat
    return ModelRequest(tuple(m for message in body["messages"] for m in read(message)), (), specs)


def _from_chat(message: dict[str, Any]) -> Iterator[Message]:
    if message["role"] != "system":
        yield Message.from_dict(message)


def _from_blocks(message: dict[str, Any]) -> Iterator[Message]:
    blocks = message["content"]
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if message["role"] == "assistant":
        uses = [b for b in blocks if b["type"] == "tool_use"]
        made = [tool_call(b["id"], b["name"], b["input"]) for b in uses]
        yield assistant("".join(texts) or None, made)
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield tool_result(block["tool_use_id"], "", block["content"])
    yield from map(user, texts)


def played_by(demo: DemoModel, provider: ScriptedProvider) -> None:
    """Let a demo model answer what the provider is asked."""
    pool = ThreadPoolExecutor(1)

    def answer(record: Recorded) -> Reply:
        response = pool.submit(asyncio.run, demo.generate(neutral(record))).result(10)
        calls = tuple(Call(c.name, c.args_text, c.id) for c in response.tool_calls)
        return Reply(text=response.text, reasoning=response.reasoning or "", calls=calls)

    provider.script.answer = answer


def plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages without what belongs to one wire; ids become the order they came in."""
    order: dict[str, str] = {}
    out = [message.replace(blocks=None, id=None).to_dict() for message in messages]
    for message in out:
        for place in (message, *message.get("tool_calls", ())):
            for key in {"id", "tool_call_id"} & place.keys():
                place[key] = order.setdefault(place[key], f"id{len(order)}")
    return out


async def history_over(wire: str, questions: Sequence[str], script: Any) -> list[dict[str, Any]]:
    """Return the stored history of a conversation with the demo model behind a wire."""

    async def listen(event: Any) -> None:
        """Have the replies streamed."""

    with ScriptedProvider() as provider:
        played_by(DemoModel(script, delay_s=0), provider)
        async with aclosing(agent_over(wire, provider.url)) as agent:
            for question in questions:
                result = await agent.invoke(question, conversation_id="t", on_event=listen)
                assert result.status == "completed", result
            stored = await agent.memory.get("t")
        assert provider.problems == []
        assert {r.is_anthropic for r in provider.requests} == {wire == "anthropic"}
    return plain(stored)


@pytest.mark.parametrize("script", [None, SCRIPT], ids=["rules", "script"])
async def test_the_same_turn_over_both_wires(script: Any) -> None:
    """END3: calls side by side, a failure, reasoning, cut arguments: one stored history."""
    over_openai, over_anthropic = [await history_over(wire, QUESTIONS, script) for wire in WIRES]

    assert over_openai == over_anthropic
    outcomes = [m.get("outcome") for m in over_openai if m["role"] == Role.TOOL]
    assert {"ok", "error"} <= set(outcomes)
    assert any(message.get("reasoning") for message in over_openai)


PAY = Call("pay", {"to": "ann", "amount": 10}, "call_pay")
ADD = Call("add", {"a": 1, "b": 2}, "functions.add:0")
THOUGHT = "深く 🌍 é  "


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("first", "second"), [WIRES, WIRES[::-1]])
async def test_a_thread_changes_over_pauses_and_is_resumed_elsewhere(
    first: str, second: str, valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """END4: one wire, then the other, a pause there, resumed by a new process, then back again."""
    provider.configure(reasoning="demand")
    async with served(agent_over(first, provider.url), valkey_url, prefix) as server:
        provider.add(Reply("I add.", THOUGHT, (ADD, Call("broken"))), Reply("It is 3.", "hm"))
        await server.run("t", "r1", {"id": "u1", "role": "user", "content": "add"})
    async with served(agent_over(second, provider.url), valkey_url, prefix) as server:
        provider.add(Reply("I pay.", THOUGHT, (PAY, ADD)))
        paused = await server.run("t", "r2", {"id": "u2", "role": "user", "content": "pay"})
    (question,) = paused[-1]["outcome"]["interrupts"]
    provider.add(Reply("Paid."), Reply("Bye."))

    answer = {"interruptId": question["id"], "status": "resolved", "payload": {"approved": True}}
    env = {"BACKSCROLL_KEY_PREFIX": prefix, "PROVIDER_URL": provider.url, "WIRE": second}
    done = await asyncio.to_thread(resumed, valkey_url, env, answer)
    async with served(agent_over(first, provider.url), valkey_url, prefix) as server:
        back = await server.run("t", "r4", {"id": "u4", "role": "user", "content": "bye"})
        path = "/console/api/threads/t/calls/{}/request"
        rebuilt = [await server.get(path.format(n)) for n in range(1, 6)]

    results = [e for e in done if e["type"] == "TOOL_CALL_RESULT"]
    assert all(found["matches"] and found["sent_matches"] for found in rebuilt)
    assert {result["content"] for result in results} == {"paid 10 to ann", "3"}
    assert back[-1]["type"] == "RUN_FINISHED" and provider.problems == []
    assert [r.is_anthropic for r in provider.requests] == [
        wire == "anthropic" for wire in (first, first, second, second, first)
    ]
    last_reply = next(
        m for m in reversed(provider.requests[3].messages) if m["role"] == "assistant"
    )
    if second == "anthropic":
        thought = {"type": "thinking", "thinking": THOUGHT, "signature": sign(THOUGHT)}
        assert last_reply["content"][0] == thought and "thinking" in provider.requests[3].json
    else:
        assert last_reply["reasoning_content"] == THOUGHT
    last = json.dumps(provider.requests[-1].json, ensure_ascii=False)
    assert all(text in last for text in ("I add.", "It is 3.", "I pay.", "paid 10 to ann", "Paid."))


def resumed(redis_url: str, env: dict[str, str], answer: Any) -> list[dict[str, Any]]:
    """Return the events of a run that a process of its own resumes with an answer."""
    env = {**env, "PYTHONPATH": str(PROGRAMS)}
    with ServerProcess("vendor_agent", redis_url=redis_url, env=env) as server:
        body = request("t", "r3", resume=[answer])
        done = httpx.post(f"{server.url}/agui", json=body, trust_env=False, timeout=20)
    return sse_events(done.text)


PNG = FilePart("image/png", data="aGk=")
REPORTED = {
    "openai": (
        {"content": "Half "},
        {"choices": [], "usage": usage_of(20, 7)},
        {"error": {"message": "busy", "type": "server_error"}},
    ),
    "anthropic": (
        {"type": "message_start", "message": {"usage": {"input_tokens": 20, "output_tokens": 7}}},
        *block_events(0, {"type": "text", "text": "Half "}),
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    ),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_usage_counts_whatever_the_call_came_to(
    wire: str, provider: ScriptedProvider
) -> None:
    """USE5: 10/5 and then 20/7 from a call that failed after its report: both are in the turn."""
    first = Reply(calls=(ADD,), usage=usage_of(10, 5))
    provider.add(first, Reply(chunks=REPORTED[wire], end="eof"))

    async def listen(event: Any) -> None:
        """Have the replies streamed."""

    async with aclosing(agent_over(wire, provider.url)) as agent:
        result = await agent.invoke("add", conversation_id="t", on_event=listen)

    assert result.status == "error"
    assert [use.usage for use in result.usage] == [Usage(10, 5), Usage(20, 7)]


@pytest.mark.parametrize("wire", WIRES)
async def test_what_a_wire_cannot_carry_is_refused_before_anything_is_stored(wire: str) -> None:
    """PART2: flac on neither wire, wav not on the messages wire; trying again does not help."""
    async with aclosing(agent_over(wire, "http://127.0.0.1:9")) as agent:
        for kind in ("audio/flac", "audio/wav")[: 1 + (wire == "anthropic")]:
            with pytest.raises(ModelError) as raised:
                await agent.invoke(user((FilePart(kind, data="aGk="),)), conversation_id="t")
            assert (raised.value.kind, raised.value.retryable) == ("unsupported_content", False)
        assert await agent.memory.get("t") == []


async def test_an_image_comes_back_with_a_model_that_sees(provider: ScriptedProvider) -> None:
    """PART1, PART5, PART6: sent over both wires, not shown to a text model, sent again later."""
    provider.otherwise(Reply("I see."))
    sees = ModelProfile(parts={"user": ("image/*",)})
    shown = [TextPart("Look:"), PNG, FilePart("image/*", url="https://h/a.png")]
    memory = InMemoryChatMemory()
    reports: list[Any] = []

    async def listen(event: Any) -> None:
        reports.append(event)

    for n, (wire, profile) in enumerate(
        [("anthropic", sees), ("openai", ModelProfile()), ("openai", sees), ("anthropic", sees)]
    ):
        model = model_over(wire, provider.url)
        model.profile = profile
        async with aclosing(Agent(model=model, memory=memory)) as agent:
            said = user(tuple(shown)) if n == 0 else f"And {n}?"
            result = await agent.invoke(said, conversation_id="t", on_event=listen)
        assert (result.status, result.text) == ("completed", "I see.")

    sent = [record.messages[0]["content"] for record in provider.requests]
    url = "https://h/a.png"
    assert [block["type"] for block in sent[0]] == ["text", "image", "image"]
    assert sent[0][2]["source"] == {"type": "url", "url": url} and sent[3] == sent[0]
    assert "image/png not shown" in str(sent[1]) and "aGk=" not in str(sent[1])
    assert [part["type"] for part in sent[2]] == ["text", "image_url", "image_url"]
    assert sent[2][2]["image_url"]["url"] == url and provider.problems == []
    assert (await memory.get("t"))[0].content == tuple(shown)
    told = [event.report for event in reports if isinstance(event, Reported)]
    assert [note.kind for note in told if isinstance(note, Note)] == ["part_not_shown"]
