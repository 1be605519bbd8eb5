"""The acceptance cases of the messages wire, played from a page to a strict provider and back."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, Retry
from backscroll.kernel.tool import tool
from backscroll.providers.anthropic import AnthropicModel
from programs.vendor_agent import agent_over
from provider_script_anthropic import anthropic_error, block_events, end_events, sign
from scripted_provider import Call, Hold, Reply, ScriptedProvider
from served import request, served
from told import of_type, refused_run, said, seed, shown, stored, told

RAN: list[str] = []
WIRES = pytest.mark.parametrize("wire", ["openai", "anthropic"])
START = {
    "type": "message_start",
    "message": {"id": "m1", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}},
}
END = end_events("end_turn", {"output_tokens": 3})
TOOL_END = end_events("tool_use", {"output_tokens": 3})


@tool
def add(a: int = 1, b: int = 2) -> int:
    """Add two numbers."""
    RAN.append("add")
    return a + b


def agent_for(
    provider: ScriptedProvider,
    window: int = 100_000,
    count_exactly: bool = False,
    count_timeout: float = 5,
    **options: Any,
) -> Agent:
    """Return an agent on the messages wire."""
    profile = ModelProfile(context_window=window, window_source="configured")
    model = AnthropicModel(
        "m", base_url=provider.url, api_key="k", profile=profile, options=ModelOptions(**options)
    )
    RAN.clear()
    compaction = Compaction(None, count_exactly=count_exactly, count_timeout=count_timeout)
    return Agent(name="a", model=model, tools=[add], compaction=compaction)


async def test_results_of_a_batch_go_into_one_user_message(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-anthropic-01, ANT2: three results in another order, one failed, a text behind them."""
    names = ("c1", "c2", "c3")
    calls = tuple(Call("pick", {}, name) for name in names)
    provider.add(Reply(calls=calls), Reply("Thanks."))
    tools = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]
    results = [
        {"id": f"t-{name}", "role": "tool", "toolCallId": name, "content": f"saw {name}"}
        for name in ("c3", "c1", "c2")
    ]
    results[2]["error"] = "it broke"

    async with served(agent_for(provider), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "pick three"), tools=tools)
        events = await server.run("t", "r2", *results, said(2, "and hurry"), tools=tools)

    assert events[-1]["type"] == "RUN_FINISHED" and provider.problems == []
    first, second, third = provider.requests[1].messages
    assert [block["id"] for block in second["content"]] == list(names)
    kinds = [(b["type"], b.get("tool_use_id")) for b in third["content"]]
    assert kinds == [*(("tool_result", name) for name in names), ("text", None)]
    assert third["content"][-1]["text"] == "and hurry"
    assert [b.get("is_error", False) for b in third["content"]] == [False, True, False, False]
    assert first["role"] == third["role"] == "user"


async def test_signed_thinking_survives_another_worker(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-anthropic-02, ANT4: thoughts, also redacted, go back as they came; none is shown."""
    thought = "深く考える 🌍 \u00e9 e\u0301  \n"
    signature = sign(thought)
    start = {"type": "thinking", "thinking": "", "signature": ""}
    pieces = [{"type": "thinking_delta", "thinking": piece} for piece in thought]
    hidden = {"type": "redacted_thinking", "data": "SECRETDATA=="}
    use = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
    part = {"type": "input_json_delta", "partial_json": '{"b":2,"a":1}'}
    signed = {"type": "signature_delta", "signature": signature}
    events = (
        *block_events(0, start, *pieces, signed), *block_events(1, hidden),
        *block_events(2, use, part),
    )  # fmt: skip
    provider.add(Reply(chunks=(START, *events, *TOOL_END)), Reply("Three."), Reply("Bye."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        first = await server.run("t", "r1", said(1, "add"))
    async with served(agent_for(provider), valkey_url, prefix) as other:
        second = await other.run("t", "r2", said(2, "go on"))

    assert provider.problems == [] and second[-1]["type"] == "RUN_FINISHED"
    expected = [
        {"type": "thinking", "thinking": thought, "signature": signature},
        hidden,
        {**use, "input": {"b": 2, "a": 1}},
    ]
    for record in provider.requests[1:]:
        assert json.dumps(record.messages[1]["content"]) == json.dumps(expected)
    reasoning = of_type(first, "REASONING_MESSAGE_CONTENT")
    assert "".join(event["delta"] for event in reasoning) == thought
    public = json.dumps([first, second])
    assert signature not in public and "SECRETDATA" not in public


async def test_what_the_servers_own_tools_left_goes_back_too(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """ANT4: searches of the provider, their results, and citations are no calls of ours."""
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    asked = {"type": "input_json_delta", "partial_json": '{"query":"天气 "}'}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"x": "é  "}]}
    cited = {"type": "citations_delta", "citation": {"url": "https://h", "cited_text": " a"}}
    text = {"type": "text_delta", "text": "Sunny."}
    events = (
        *block_events(0, search, asked), *block_events(1, found),
        *block_events(2, {"type": "text", "text": "", "citations": []}, text, cited),
    )  # fmt: skip
    provider.add(Reply(chunks=(START, *events, *END)), Reply("Bye."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        first = await server.run("t", "r1", said(1, "weather?"))
        await server.run("t", "r2", said(2, "thanks"))

    assert shown(first) == "Sunny." and of_type(first, "TOOL_CALL_START") == []
    assert provider.problems == [] and provider.requests[1].messages[1]["content"] == [
        {**search, "input": {"query": "天气 "}},
        found,
        {"type": "text", "text": "Sunny.", "citations": [cited["citation"]]},
    ]


async def test_a_history_of_blanks_is_accepted(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-anthropic-03, ANT5: nothing blank goes out, roles alternate, the store is unchanged."""
    blanks = [
        assistant("", id="b1"),
        assistant(" \n", id="b2"),
        user("   ", "b3"),
        assistant("", (tool_call("k1", "add"),), "b4"),
        tool_result("k1", "add", "", id="b5"),
    ]
    provider.otherwise(Reply("Yes."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "hi"))
        await seed(valkey_url, prefix, blanks)
        events = await server.run("t", "r2", said(2, "and now?"))
        again = await server.run("t", "r3", said(3, "once more"))
        kept = await stored(server)

    assert events[-1]["type"] == again[-1]["type"] == "RUN_FINISHED" and provider.problems == []
    roles = [message["role"] for message in provider.requests[-1].messages]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
    assert [m["content"] for m in kept if m["id"].startswith("b")] == ["", " \n", "   ", "", ""]


CUT = {
    "in the arguments": [
        {"type": "input_json_delta", "partial_json": piece} for piece in ('{"a":', " 1")
    ],
    "before them": [],
}


@pytest.mark.parametrize("deltas", CUT.values(), ids=CUT)
async def test_a_stream_cut_in_a_call_is_an_error(
    valkey_url: str, prefix: str, provider: ScriptedProvider, deltas: list[Any]
) -> None:
    """wire-anthropic-04, ANT6: RUN_ERROR, no tool runs, what was open is closed, life goes on."""
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
    provider.add(Reply(chunks=(START, *block_events(0, use, *deltas)[:-1])), Reply("Here again."))
    async with served(agent_for(provider, retry=False), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "add"))
        after = await server.run("t", "r2", said(2, "are you there?"))

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "incomplete_stream")
    ended = [event["toolCallId"] for event in of_type(events, "TOOL_CALL_END")]
    assert ended == [event["toolCallId"] for event in of_type(events, "TOOL_CALL_START")] != []
    assert RAN == [] and shown(after) == "Here again." and provider.problems == []


def call(name: str, *ids: str) -> Message:
    """Return an assistant message with calls."""
    return assistant(None, [tool_call(i, "add") for i in ids], name)


def result(call_id: str, name: str) -> Message:
    """Return a result."""
    return tool_result(call_id, "add", f"saw {call_id}", id=name)


SEEDS = {
    "a call without result": [user("s1", "s1"), call("s2", "k1"), user("s3", "s3")],
    "a result without call": [user("s1", "s1"), result("k9", "s2"), user("s3", "s3")],
    "a result before its call": [user("s1", "s1"), result("k1", "s2"), call("s3", "k1")],
    "two results": [call("s1", "k1"), result("k1", "s2"), result("k1", "s3"), user("s4", "s4")],
    "one of two": [call("s1", "k1", "k2"), result("k2", "s2"), user("s3", "s3")],
}
"""Histories as they should not be, by what is wrong with them."""


@WIRES
@pytest.mark.parametrize("wrong", SEEDS)
async def test_repair_works_in_both_directions(
    valkey_url: str, prefix: str, provider: ScriptedProvider, wire: str, wrong: str
) -> None:
    """wire-anthropic-05: the request is valid on both wires, no user text is lost, told once."""
    provider.otherwise(Reply("Fine."))
    async with served(agent_over(wire, provider.url), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "hello"))
        await seed(valkey_url, prefix, SEEDS[wrong])
        for n in (2, 3):
            events = await server.run("t", f"r{n}", said(n, f"question {n}"))
            assert events[-1]["type"] == "RUN_FINISHED", events[-1]
        repairs = [note for note in await told(server) if note.get("kind") == "repair"]

    assert provider.problems == []
    last = json.dumps(provider.requests[-1].messages)
    texts = ["hello", *(m.text for m in SEEDS[wrong] if m.role == "user"), "question 2"]
    assert all(json.dumps(text) in last for text in texts)
    assert len(repairs) == 1, repairs


async def test_no_empty_delta_is_shown(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """protocol-06: one content event with "Hi"; a reply with a call alone opens no text."""
    texts = [{"type": "text_delta", "text": text} for text in ("", "Hi", "")]
    empty = block_events(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": ""})
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
    provider.add(
        Reply(chunks=(START, *block_events(0, {"type": "text", "text": ""}, *texts), *END)),
        Reply(chunks=(START, *empty, *block_events(1, use), *TOOL_END)),
        Reply("Done."),
    )
    async with served(agent_for(provider), valkey_url, prefix) as server:
        first = await server.run("t", "r1", said(1, "hi"))
        second = await server.run("t", "r2", said(2, "add"))

    text = [e["type"] for e in first if e["type"].startswith("TEXT_MESSAGE")]
    assert text == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert shown(first) == "Hi" and provider.problems == []
    kinds = [event["type"] for event in second]
    assert kinds.index("TOOL_CALL_RESULT") < kinds.index("TEXT_MESSAGE_START")
    assert all(event.get("delta", "x") for event in second)


@pytest.mark.parametrize("value", [{"a": 1, "b": 2}, {}], ids=["whole", "none"])
async def test_arguments_that_come_with_their_call(
    valkey_url: str, prefix: str, provider: ScriptedProvider, value: Any
) -> None:
    """protocol-12, wire-openai-04: a call with its input at once, and one without any, both run."""
    use = {"type": "tool_use", "id": "c1", "name": "add", "input": value}
    provider.add(Reply(chunks=(START, *block_events(0, use), *TOOL_END)), Reply("Three."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "add"))

    args = "".join(event["delta"] for event in of_type(events, "TOOL_CALL_ARGS"))
    assert json.loads(args) == value
    assert [e["content"] for e in of_type(events, "TOOL_CALL_RESULT")] == ["3"]
    assert provider.requests[1].messages[1]["content"] == [use]


WORLD = "你好世界🌍"


@WIRES
async def test_characters_stay_whole(
    valkey_url: str, prefix: str, provider: ScriptedProvider, wire: str
) -> None:
    """i18n-03: byte by byte, with CRLF and comments, in text and arguments: shown, kept, sent."""
    cut = {"split": 1, "crlf": True, "comments": True, "bom": True}
    args = json.dumps({"x": WORLD}, ensure_ascii=False)
    provider.add(Reply(WORLD, **cut), Reply(calls=(Call("add", args),), **cut), Reply("."))
    async with served(agent_over(wire, provider.url), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, WORLD))
        await server.run("t", "r2", said(2, "go on"))
        kept = await stored(server)

    assert shown(events) == WORLD and [m["content"] for m in kept[:2]] == [WORLD, WORLD]
    assert all("\ufffd" not in record.body.decode() for record in provider.requests)
    last = provider.requests[-1].body.decode()
    assert last.count(WORLD) == 3 and "\\ud83c" not in last and provider.problems == []


@pytest.mark.parametrize("at", [1, 2, 5])
async def test_an_escape_that_is_cut_stays_one_character(
    valkey_url: str, prefix: str, provider: ScriptedProvider, at: int
) -> None:
    """i18n-03: the two halves of a pair as escapes, in two pieces of the body or two deltas."""
    halves = [{"type": "text_delta", "text": text} for text in ("a\ud83c", "\udf0db")]
    texts = block_events(0, {"type": "text", "text": ""}, *halves)
    lines = [f"data: {json.dumps(event)}\n\n" for event in (START, *texts, *END)]
    provider.add(Reply(chunks=tuple(lines), split=at))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "hi"))
        kept = await stored(server)

    assert shown(events) == kept[-1]["content"] == "a🌍b"


CODED = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "zu lang"}
OVERFLOWS = {
    "code": Reply(status=400, body={"type": "error", "error": CODED}),
    "413": Reply(status=413, body=""),
    "in the stream": Reply(chunks=(START, {"type": "error", "error": CODED})),
    "its own words": anthropic_error(400, "prompt is too long: 9000 tokens > 4000 maximum"),
    "too large": anthropic_error(413, "Request exceeds the maximum size", "request_too_large"),
}


@pytest.mark.parametrize("refusal", OVERFLOWS.values(), ids=OVERFLOWS)
async def test_an_overflow_is_recognised_by_its_code(
    valkey_url: str, prefix: str, provider: ScriptedProvider, refusal: Reply
) -> None:
    """compaction-06: a forced compaction, exactly one resend, success."""
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await refused_run(server, provider, refusal)
        calls = (await server.get("/console/api/threads/t/compactions"))["compactions"]

    assert events[-1]["type"] == "RUN_FINISHED" and shown(events) == "Now it fits."
    assert len(provider.requests) == 7 and provider.problems == []
    assert [c["trigger"] for c in calls] == ["overflow"]
    assert len(provider.requests[6].body) < len(provider.requests[5].body)


async def test_prompt_and_maximum_together_are_too_much(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """OVF: the same messages are sent once more, with a lower maximum."""
    provider.configure(window=5_000)
    provider.otherwise(Reply("Yes."))
    async with served(agent_for(provider, max_output_tokens=4_500), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "all is well here. " * 200))

    first, second = provider.requests
    assert (first.status, second.status) == (400, 200) and events[-1]["type"] == "RUN_FINISHED"
    assert second.messages == first.messages and provider.problems == []
    assert second.json["max_tokens"] < first.json["max_tokens"] == 4_500


async def test_another_error_that_mentions_the_context_is_none(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-06: a wrong key is a wrong key: no compaction, no resend."""
    wrong = {"type": "authentication_error", "code": "invalid_api_key", "message": "no context"}
    refusal = Reply(status=400, body={"type": "error", "error": wrong})
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await refused_run(server, provider, refusal)
        calls = (await server.get("/console/api/threads/t/compactions"))["compactions"]

    assert events[-1]["type"] == "RUN_ERROR" and events[-1]["code"] != "context_overflow"
    assert len(provider.requests) == 6 and calls == []


async def test_no_request_asks_for_more_than_the_window(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """BUD2: the maximum that goes out unasked is lowered to what the window leaves."""
    provider.configure(window=10_000)
    provider.otherwise(Reply("So-it-is. " + "And_" * 300))
    async with served(agent_for(provider, 10_000), valkey_url, prefix) as server:
        for n in range(1, 14):
            await server.run("t", f"r{n}", said(n, f"Report {n}: " + "all is well here. " * 120))

    assert {record.status for record in provider.requests} == {200}
    asked = [record.json["max_tokens"] for record in provider.requests]
    assert asked[0] == 4_096 and min(asked) < 4_096


async def test_stop_closes_the_connection(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-10: a cancelled run lets go of the provider within a second, on this wire too."""
    text = block_events(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi"})
    provider.add(Reply(chunks=(START, *text[:2], Hold())))
    async with served(agent_for(provider), valkey_url, prefix) as server, server.socket() as socket:
        await socket.send(json.dumps(request("t", "r1", said(1, "hi"))))
        await provider.await_held()
        await server.http.post("/console/api/threads/t/cancel", json={})
        record = await provider.await_closed(0, within_s=1)

    assert record.finished_at is None


@pytest.mark.parametrize("counts", [True, False])
async def test_an_exact_count_prevents_a_refusal(
    valkey_url: str, prefix: str, provider: ScriptedProvider, counts: bool
) -> None:
    """A provider that counts far more than the estimate refuses nothing it was asked to count."""
    provider.configure(window=6_000, chars_per_token=2.2)
    provider.otherwise(Reply("Yes."))
    agent = agent_for(provider, 6_000, count_exactly=counts, max_output_tokens=500)
    seeds = [user(f"Report {n}: " + "all is well here. " * 60, f"s{n}") for n in range(12)]
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "hi"))
        await seed(valkey_url, prefix, seeds)
        events = await server.run("t", "r2", said(2, "and now?"))
        path = "/console/api/threads/t/entries?kind=call&fields=full"
        entries = (await server.get(path))["entries"]

    refused = [record.status for record in provider.requests if record.status != 200]
    assert refused == ([] if counts else [400]) and events[-1]["type"] == "RUN_FINISHED"
    assert len(provider.counts) == int(counts) and provider.problems == []
    estimate = [e["body"]["estimate"] for e in entries if "estimate" in e["body"]][-1]
    assert ("counted" in estimate) is counts and (not counts or estimate["ratio"] > 1.5)


UNCOUNTED = {
    "too slow": {"hold_counts": True},
    "not offered": {"routes": {"/v1/messages/count_tokens": (404, {"error": {"message": "no"}})}},
    "wrong key": {
        "routes": {"/v1/messages/count_tokens": (401, {"error": {"message": "KEY-9-8"}})}
    },
}


@pytest.mark.parametrize("settings", UNCOUNTED.values(), ids=UNCOUNTED)
async def test_a_count_that_does_not_come_costs_a_note(
    valkey_url: str, prefix: str, provider: ScriptedProvider, settings: dict[str, Any]
) -> None:
    """The run goes on with the estimate, the wait is over in time, nobody is asked twice."""
    provider.configure(**settings)
    provider.otherwise(Reply("Yes."))
    agent = agent_for(provider, 4_000, count_exactly=True, count_timeout=0.2)
    text = said(1, "all is well here. " * 500)
    async with served(agent, valkey_url, prefix) as server:
        events = await server.run("t", "r1", text)
        notes = [note for note in await told(server) if note.get("kind") == "count_unavailable"]

    assert events[-1]["type"] == "RUN_FINISHED" and provider.problems == []
    assert len(notes) == 1 and "KEY-9-8" not in json.dumps(notes)
    assert all(record.closed_at is not None for record in provider.counts)


BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
PING = ({"type": "ping"}, {"type": "vertex_event", "x": 1})
HALF = block_events(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Half "})
BEFORE_TEXT = {
    "an error": Reply(chunks=(START, *PING, BUSY)),
    "503": anthropic_error(503, "down", "api_error"),
    "nothing at all": Reply(chunks=(), end="eof"),
}


@pytest.mark.parametrize("first", BEFORE_TEXT.values(), ids=BEFORE_TEXT)
async def test_what_fails_before_any_text_is_tried_again(
    valkey_url: str, prefix: str, provider: ScriptedProvider, first: Reply
) -> None:
    """ANT7, MOD2: pings and unknown events are nothing; an early error costs a second request."""
    retry = Retry(max_retries=1, base_s=0)
    provider.add(first, Reply("Whole."))
    async with served(agent_for(provider, retry=retry), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "hi"))

    assert shown(events) == "Whole." and len(provider.requests) == 2


async def test_what_fails_after_text_is_final(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """ANT7: an error after text is mapped, what was shown stays, and nothing is sent again."""
    provider.add(Reply(chunks=(START, *PING, *HALF, BUSY)), Reply("Here."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "hi"))
        after = await server.run("t", "r2", said(2, "still there?"))

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "provider")
    assert shown(events) == "Half " and len(of_type(events, "TEXT_MESSAGE_END")) == 1
    assert shown(after) == "Here." and len(provider.requests) == 2 and provider.problems == []


async def test_marks_stand_where_compaction_says_that_nothing_changes(
    provider: ScriptedProvider,
) -> None:
    """ANT12: system, tools, the summary and the last shortened message; what they end stays."""
    cache = Cache("stable", "1h")
    agent = agent_for(provider, 6_000, cache=cache, max_output_tokens=500)
    compaction = Compaction(ExtractiveSummariser())
    agent = agent.replace(instructions="Be brief.", tools=[add, read], compaction=compaction)
    provider.script.answer = lambda record: (
        Reply(calls=(Call("read", {"name": f"f{record.number}"}, f"c{record.number}"),))
        if record.number % 4
        else Reply("So-it-is.")
    )
    for n in range(1, 12):
        await agent.invoke(f"Report {n}: " + "all is well here. " * 60, conversation_id="t")
    await agent.aclose()

    marked = [(record.messages, marks_of(record.json)) for record in provider.requests]
    assert provider.problems == [] and all(found[:2] == ["system", "tools"] for _, found in marked)
    stable = [(messages, found[2:]) for messages, found in marked if found[2:]]
    places = {n for _, at in stable for n in at}
    assert 0 in places and len(places) > 2
    for summary in (messages[0]["content"][0] for messages, at in stable if 0 in at):
        assert "<earlier-conversation>" in summary["text"] and "cache_control" in summary
    same = [(one, two, at[-1]) for (one, at), (two, then) in pairwise(stable) if at == then]
    assert len(same) > 5
    assert all(without_marks(one)[: n + 1] == without_marks(two)[: n + 1] for one, two, n in same)


def without_marks(messages: Any) -> Any:
    """Return messages as a provider's cache compares them."""
    text = json.dumps(messages).replace(', "cache_control": {"type": "ephemeral", "ttl": "1h"}', "")
    return json.loads(text)


@tool
def read(name: str) -> str:
    """Read a file."""
    return "".join(f"{n}: def {name}_{n}(): return {n * 37}\n" for n in range(25))


def marks_of(body: Any) -> list[Any]:
    """Return the marked places of a body: `system`, `tools`, and indexes of messages."""
    found: list[Any] = ["system"] * ("cache_control" in body["system"][-1])
    found += ["tools"] * ("cache_control" in body["tools"][-1])
    for n, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [n] * any("cache_control" in block for block in blocks)
    return found
