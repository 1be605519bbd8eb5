"""Cases of the chat completions wire that span turns, workers and the end of a connection."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Hold, Reply, ScriptedProvider, error
from served import Served, request, served
from told import of_type, refused_run, results, said, shown, stored

PROFILE = ModelProfile(context_window=8_000, window_source="configured")
STARTED = asyncio.Event()


@tool
def now() -> str:
    """Tell the time."""
    return "noon"


@tool
def x(n: int = 0) -> int:
    """Double a number."""
    return 2 * n


@tool
async def wait() -> str:
    """Wait for a very long time."""
    STARTED.set()
    await asyncio.sleep(600)
    return "late"


def agent_for(provider: ScriptedProvider, **profile: Any) -> Agent:
    """Return an agent on the chat completions wire."""
    model = OpenAIModel(
        "m",
        base_url=provider.base_url,
        api_key="k",
        profile=replace(PROFILE, **profile),
        options=ModelOptions(retry=False),
    )
    return Agent(name="a", model=model, tools=[now, x, wait], compaction=Compaction(None))


def piece(index: int, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    """Return a call as a delta holds it."""
    return {"index": index, "function": {"name": name, "arguments": arguments}, **more}


def calling(*pieces: dict[str, Any]) -> Reply:
    """Return a reply whose only delta holds these calls."""
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return Reply(chunks=({"tool_calls": list(pieces)}, end))


async def test_calls_without_ids_have_their_own_over_the_thread(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-02: two turns with two calls each: four ids, one in events, store and request."""
    both = calling(piece(0, "x", '{"n":1}'), piece(1, "now", "{}"))
    provider.add(both, Reply("One."), both, Reply("Two."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = [await server.run("t", f"r{n}", said(n, f"go {n}")) for n in (1, 2)]
        kept = await stored(server)

    told = [e["toolCallId"] for run in events for e in of_type(run, "TOOL_CALL_START")]
    assert len(set(told)) == 4 and all(told)
    assert [call["id"] for message in kept for call in message.get("tool_calls", ())] == told
    sent = provider.requests[-1].messages
    assert [call["id"] for message in sent for call in message.get("tool_calls", ())] == told
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == told
    assert [shown(run) for run in events] == ["One.", "Two."] and provider.problems == []


WHOLE = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": None}}


@pytest.mark.parametrize("arguments", ["", None, "  ", {}], ids=["empty", "null", "blank", "{}"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_without_arguments_runs(
    valkey_url: str, prefix: str, provider: ScriptedProvider, arguments: Any, stream: bool
) -> None:
    """wire-openai-04: the tool runs with {}, "{}" goes back, no event has an empty delta."""
    function = {"name": "now", "arguments": arguments}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**WHOLE, "function": function}],
    }
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    reply = calling(piece(0, "now", arguments, id="c1")) if stream else Reply(body=whole)
    provider.add(reply, Reply("At noon."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r", said(1, "when?"))
        kept = await stored(server)

    assert results(events) == ["noon"] and shown(events) == "At noon."
    assert all(event["delta"] for event in of_type(events, "TOOL_CALL_ARGS"))
    (call,) = provider.requests[1].messages[-2]["tool_calls"]
    assert call["function"] == {"name": "now", "arguments": "{}"}
    assert next(m for m in kept if m.get("tool_calls"))["tool_calls"][0]["args"] == {}
    assert provider.problems == []


async def test_reasoning_goes_back_from_another_worker(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-05, OAI10: R1 unchanged in its message, in the turn, after reload, elsewhere."""
    provider.configure(kind="deepseek", reasoning="demand")
    thought = "R1: é \n 你好 "
    provider.add(
        Reply(reasoning=thought, calls=(Call("now", {}, "c1"),)), Reply("At noon."), Reply("Bye.")
    )
    agents = [agent_for(provider, replay_reasoning="tool_calls") for _ in range(2)]
    async with served(agents[0], valkey_url, prefix) as one:
        events = await one.run("t", "r1", said(1, "when?"))
    async with served(agents[1], valkey_url, prefix) as other:
        later = await other.run("t", "r2", said(2, "thanks"))

    for record in provider.requests[1:]:
        spoken = [m for m in record.messages if m.get("tool_calls")]
        assert [m["reasoning_content"] for m in spoken] == [thought]
    assert (shown(events), shown(later)) == ("At noon.", "Bye.") and provider.problems == []


async def test_a_reply_that_broke_off_does_not_lock_the_thread(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-05: half a reply in a turn with calls, on a server that demands the reasoning."""
    provider.configure(kind="deepseek thinking")
    half = {"reasoning_content": "half a th"}
    provider.add(
        Reply(reasoning="R1", calls=(Call("now", {}, "c1"),)),
        Reply(chunks=(half, {"content": "It is"}), end="eof"),
        Reply("Noon."),
    )
    agent = agent_for(provider, replay_reasoning="always", tool_choice="none")
    async with served(agent, valkey_url, prefix) as server:
        broken = await server.run("t", "r1", said(1, "when?"))
        events = await server.run("t", "r2", said(2, "again?"))

    assert broken[-1]["code"] == "incomplete_stream" and shown(events) == "Noon."
    spoken = [m for m in provider.requests[-1].messages if m["role"] == "assistant"]
    assert [m["reasoning_content"] for m in spoken] == ["R1", ""] and provider.problems == []


async def started(server: Served, socket: Any) -> None:
    """Begin a run over a socket."""
    await socket.send(json.dumps(request("t", "r1", said(1, "go"))))


async def test_a_connection_that_died_idle_is_no_retry(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """HTTP2: the second call finds its connection closed, goes out again at once, counts once."""
    provider.otherwise(Reply("Hello."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "hi"))
        provider.configure(drop_reused=1)
        events = await server.run("t", "r2", said(2, "and?"))
        call = await server.get("/console/api/threads/t/calls/latest")

    assert (events[-1]["type"], shown(events)) == ("RUN_FINISHED", "Hello.")
    assert len(provider.requests) == 3 and len(call["attempts"]) == 1
    assert provider.requests[1].body == provider.requests[2].body


DISCOVERED = [
    ("vllm", "/v1/models", {"data": [{"id": "m", "max_model_len": 4096}]}, 4096),
    ("llama.cpp", "/props", {"default_generation_settings": {"n_ctx": 2048}}, 2048),
    ("ollama", "/api/ps", {"models": [{"name": "m:latest", "context_length": 8192}]}, 8192),
]


@pytest.mark.parametrize(("kind", "path", "body", "window"), DISCOVERED)
async def test_a_window_that_the_server_states_is_planned_with(
    valkey_url: str, prefix: str, provider: ScriptedProvider, kind: str, path: str, body: Any,
    window: int,
) -> None:  # fmt: skip
    """The record of a call shows the window that was asked for at start, and where it came from."""
    provider.configure(kind=kind, routes={path: (200, body)})
    provider.add(Reply("Hello."))
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k", provider=kind)
    agent = Agent(name="a", model=model, compaction=Compaction(None))
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r", said(1, "hi"))
        call = await server.get("/console/api/threads/t/calls/latest")

    budget = call["attempts"][-1]["budget"]
    assert (budget["window"], budget["window_source"]) == (window, path)


HELD = {
    "before the first byte": Reply("a", hold_after=0),
    "between chunks": Reply(chunks=({"content": "a"}, Hold(), {"content": "b"})),
    "inside a chunk": Reply(chunks=({"content": "a"}, 'data: {"choi', Hold())),
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
async def test_stop_lets_go_of_the_provider(
    valkey_url: str, prefix: str, provider: ScriptedProvider, held: Reply
) -> None:
    """wire-openai-10, HTTP3: a run that is stopped closes the model's socket within a second."""
    provider.add(held)
    async with served(agent_for(provider), valkey_url, prefix) as server, server.socket() as socket:
        await started(server, socket)
        await provider.await_held()
        await server.http.post("/console/api/threads/t/cancel", json={})
        record = await provider.await_closed(0, within_s=1)

    assert record.finished_at is None


async def test_stop_during_a_tool_asks_the_provider_no_more(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-10: a run stopped while its tool works ends, and no further request is made."""
    STARTED.clear()
    provider.add(Reply(calls=(Call("wait", {}, "c1"),)))
    async with served(agent_for(provider), valkey_url, prefix) as server, server.socket() as socket:
        await started(server, socket)
        async with asyncio.timeout(10):
            await STARTED.wait()
        await server.http.post("/console/api/threads/t/cancel", json={})
        async with asyncio.timeout(10):
            while json.loads(await socket.recv())["type"] not in ("RUN_ERROR", "RUN_FINISHED"):
                pass

    assert len(provider.requests) == 1


async def test_a_client_that_leaves_stops_nothing(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-10: the last client disconnects: the run goes on, and its answer is stored."""
    provider.add(Reply(chunks=({"content": "to the"}, Hold(), {"content": " end"})))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        async with server.socket() as socket:
            await started(server, socket)
            await provider.await_held()
        assert provider.requests[0].closed_at is None
        provider.release()
        async with asyncio.timeout(10):
            while [m["content"] for m in await stored(server)][1:] != ["to the end"]:
                pass


CODED = error(400, "zu lang", "context_length_exceeded")
OVERFLOWS = {
    "code": CODED,
    "413": Reply(status=413, body=""),
    "in the stream": Reply(chunks=(CODED.body,)),
    "in a whole answer": Reply(body=CODED.body),
}


@pytest.mark.parametrize("refusal", OVERFLOWS.values(), ids=OVERFLOWS)
async def test_an_overflow_is_recognised_by_its_code(
    valkey_url: str, prefix: str, provider: ScriptedProvider, refusal: Reply
) -> None:
    """compaction-06: a forced compaction, exactly one resend that is smaller, success."""
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await refused_run(server, provider, refusal)
        calls = (await server.get("/console/api/threads/t/compactions"))["compactions"]

    assert events[-1]["type"] == "RUN_FINISHED" and shown(events) == "Now it fits."
    assert len(provider.requests) == 7 and provider.problems == []
    assert [c["trigger"] for c in calls] == ["overflow"]
    assert len(provider.requests[6].body) < len(provider.requests[5].body)


async def test_a_wrong_key_that_speaks_of_the_context_is_no_overflow(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-06: no compaction, no resend, a plain error."""
    refusal = error(400, "this key does not match the context", "invalid_api_key")
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await refused_run(server, provider, refusal)
        calls = (await server.get("/console/api/threads/t/compactions"))["compactions"]

    assert events[-1]["type"] == "RUN_ERROR" and events[-1]["code"] != "context_overflow"
    assert len(provider.requests) == 6 and calls == []


@pytest.mark.parametrize("with_call", [False, True])
async def test_no_empty_delta_is_shown(
    valkey_url: str, prefix: str, provider: ScriptedProvider, with_call: bool
) -> None:
    """protocol-06, protocol-12: one content event with "Hi"; a call alone opens no text."""
    empty = {"content": ""}
    call = {"tool_calls": [piece(0, "x", '{"n":1}', id="c1")]}
    said_it: dict[str, Any] = call if with_call else {"content": "Hi"}
    reason = "tool_calls" if with_call else "stop"
    last = {"choices": [{"index": 0, "delta": empty, "finish_reason": reason}]}
    provider.add(Reply(chunks=({"role": "assistant"}, empty, said_it, empty, last)), Reply("2"))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "hi"))

    kinds = [e["type"] for e in events if e["type"].startswith(("TEXT_MESSAGE", "TOOL_CALL"))]
    text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    tools = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert kinds == (tools + text if with_call else text)
    assert shown(events) == ("2" if with_call else "Hi")
    if with_call:
        assert of_type(events, "TOOL_CALL_ARGS")[0]["delta"] == '{"n":1}'
        assert results(events) == ["2"]


@pytest.mark.parametrize("split", [1, 2, 5, None])
async def test_an_escape_that_is_cut_stays_one_character(
    valkey_url: str, prefix: str, provider: ScriptedProvider, split: int | None
) -> None:
    """i18n-03: the halves of a pair in two deltas, or in two pieces of the body."""
    halves = ('{"choices":[{"delta":{"content":"a\\ud83c"}}]}',
              '{"choices":[{"delta":{"content":"\\udf0db"},"finish_reason":"stop"}]}')  # fmt: skip
    lines = tuple(f"data: {half}\r\n\r\n" for half in halves)
    provider.add(Reply(chunks=(": hello\r\n", *lines), split=split))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "hi"))
        kept = await stored(server)

    assert shown(events) == kept[-1]["content"] == "a🌍b"
