"""The acceptance cases of the chat completions wire, played from a page to a strict provider."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.filters.dead_loop import DeadLoop
from backscroll.filters.retrieval import Document, Retrieval
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from provider_script import usage_of
from scripted_provider import Call, Reply, ScriptedProvider
from served import served
from told import of_type, said, shown, stored

RAN: list[dict[str, Any]] = []
PROFILE = ModelProfile(context_window=100_000, window_source="configured")


@tool
async def add(a: int = 1, b: int = 2) -> int:
    """Add two numbers."""
    RAN.append({"a": a, "b": b})
    return a + b


@tool
async def read(p: str) -> str:
    """Read a file."""
    RAN.append({"p": p})
    return f"{p} is fine"


def agent_for(
    provider: ScriptedProvider, profile: ModelProfile = PROFILE, **settings: Any
) -> Agent:
    """Return an agent on the chat completions wire."""
    model = OpenAIModel(
        "m",
        base_url=provider.base_url,
        api_key="k",
        profile=profile,
        options=ModelOptions(retry=False),
    )
    RAN.clear()
    return Agent(name="a", model=model, tools=[add, read], **settings)


def fragment(index: int, args: str, id: str | None = None, name: str | None = None) -> Any:
    """Return one piece of a call, as it comes in a delta."""
    function = {"arguments": args, **({} if name is None else {"name": name})}
    head = {} if id is None else {"id": id, "type": "function"}
    return {"index": index, **head, "function": function}


def pieces(*fragments: Any, finish: str = "tool_calls") -> Reply:
    """Return a reply that streams these pieces one by one."""
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return Reply(chunks=(*({"tool_calls": [piece]} for piece in fragments), end))


async def asked_for(
    valkey_url: str, prefix: str, provider: ScriptedProvider, reply: Reply
) -> list[dict[str, Any]]:
    """Play a reply with calls, the answer to their results and one more turn; return the calls."""
    provider.add(reply, Reply("Done."), Reply("And again."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "go"))
        later = await server.run("t", "r2", said(2, "and now?"))
        kept = await stored(server)

    assert (shown(events), shown(later), provider.problems) == ("Done.", "And again.", [])
    calls = [call for message in kept for call in message.get("tool_calls", ())]
    asked = provider.requests[1].messages
    wired = [call for m in asked for call in m.get("tool_calls", ())]
    assert [m["tool_call_id"] for m in asked if m["role"] == "tool"] == [c["id"] for c in wired]
    assert [json.loads(c["function"]["arguments"]) for c in wired] == RAN
    assert [c["id"] for c in calls] == [c["id"] for c in wired]
    return wired


SPLIT = {
    "as reported": [
        fragment(0, "", "c1", "add"), fragment(0, '{"a":'), fragment(0, '1,"b":2}')
    ],
    "id repeated": [
        fragment(0, '{"a":', "c1", "add"), fragment(0, '1,"b"', "c1"), fragment(0, ":2}", "c1")
    ],
    "id empty later": [fragment(0, '{"a":1', "c1", "add"), fragment(0, ',"b":2}', "", "")],
    "id null later": [
        fragment(0, '{"a":1', "c1", "add"), {**fragment(0, ',"b":2}'), "id": None},
    ],
    "name repeated": [
        fragment(0, '{"a":1', "c1", "add"), fragment(0, ',"b":2}', None, "add"),
    ],
    "no index at all": [
        {k: v for k, v in piece.items() if k != "index"}
        for piece in (fragment(0, '{"a":1', "c1", "add"), fragment(0, ',"b":2}'))
    ],
}  # fmt: skip
"""One call in pieces, by what is unusual about them."""


@pytest.mark.parametrize("wanted", SPLIT.values(), ids=SPLIT)
async def test_fragments_of_one_call_are_one_call(
    valkey_url: str, prefix: str, provider: ScriptedProvider, wanted: Sequence[Any]
) -> None:
    """wire-openai-01: one call c1 with its arguments, run once, answered under its id."""
    calls = await asked_for(valkey_url, prefix, provider, pieces(*wanted))

    assert [call["id"] for call in calls] == ["c1"] and RAN == [{"a": 1, "b": 2}]


async def test_interleaved_calls_keep_their_fragments(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-01: pieces of two calls in turn, told apart by index alone."""
    reply = pieces(
        fragment(0, '{"p"', "c1", "read"),
        fragment(1, '{"p"', "c2", "read"),
        fragment(0, ':"a"}'),
        fragment(1, ':"b"}'),
    )
    calls = await asked_for(valkey_url, prefix, provider, reply)

    assert [call["id"] for call in calls] == ["c1", "c2"] and RAN == [{"p": "a"}, {"p": "b"}]


@pytest.mark.parametrize("ids", [("c1", "c2"), (None, None)], ids=["two ids", "no ids"])
async def test_one_index_for_every_call(
    valkey_url: str, prefix: str, provider: ScriptedProvider, ids: tuple[Any, Any]
) -> None:
    """wire-openai-03, wire-openai-02: two whole calls under index 0 are two, nothing is glued."""
    reply = pieces(
        *(fragment(0, f'{{"p":"{p}"}}', i, "read") for i, p in zip(ids, "ab", strict=True))
    )
    calls = await asked_for(valkey_url, prefix, provider, reply)

    assert len({call["id"] for call in calls}) == 2 and RAN == [{"p": "a"}, {"p": "b"}]
    assert all(call["id"] for call in calls)


async def test_chunks_without_choices(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-06: filter results first, usage last: the answer is whole, usage is recorded."""
    filtered = {"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}
    provider.add(
        Reply(
            chunks=(
                {"choices": [], "prompt_filter_results": [filtered]},
                {"content": "All"},
                {"content": " good."},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": usage_of(12, 3)},
            )
        )
    )
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "hi"))
        call = await server.get("/console/api/threads/t/calls/latest")

    assert (events[-1]["type"], shown(events)) == ("RUN_FINISHED", "All good.")
    usage = call["attempts"][-1]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (12, 3)


CUT = {
    "in the text": Reply(chunks=({"content": "It is "}, {"content": "half"}), end="eof"),
    "dropped": Reply(chunks=({"content": "It is "}, {"content": "half"}), end="drop"),
    "in the arguments": Reply(
        chunks=({"content": "It is half"}, {"tool_calls": [fragment(0, '{"a": 1', "c1", "add")]}),
        end="eof",
    ),
    "behind whole arguments": Reply(
        chunks=({"content": "It is half"}, {"tool_calls": [fragment(0, "{}", "c1", "add")]}),
        end="eof",
    ),
}
"""Streams without a finish marker, by where they end."""


@pytest.mark.parametrize("cut", CUT.values(), ids=CUT)
async def test_a_stream_without_its_end_is_an_error(
    valkey_url: str, prefix: str, provider: ScriptedProvider, cut: Reply
) -> None:
    """wire-openai-07: RUN_ERROR, no tool runs, what was open is closed, the text is marked."""
    provider.add(cut, Reply("Here again."))
    async with served(agent_for(provider), valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "go"))
        kept = await stored(server)
        after = await server.run("t", "r2", said(2, "are you there?"))

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "incomplete_stream")
    for kind, member in (("TEXT_MESSAGE", "messageId"), ("TOOL_CALL", "toolCallId")):
        opened = [event[member] for event in of_type(events, f"{kind}_START")]
        assert [event[member] for event in of_type(events, f"{kind}_END")] == opened
    assert shown(events) == "It is half" and RAN == [] and len(provider.requests) == 2
    halves = [m for m in kept if m["role"] == "assistant"]
    assert [(m["content"], m["incomplete"]) for m in halves] == [("It is half", True)], halves
    assert shown(after) == "Here again." and provider.problems == []


class Shelf:
    """A retriever that always finds the same."""

    async def retrieve(self, query: str, k: int) -> Sequence[Document]:
        """Return one document."""
        return [Document("The shop opens at nine.", "hours")]


@pytest.mark.parametrize("role", ["system", "developer", "user"])
async def test_one_system_message_at_the_front(
    valkey_url: str, prefix: str, provider: ScriptedProvider, role: Any
) -> None:
    """wire-openai-08: prompt, summary, reminder and retrieved text, in no other place."""
    profile = replace(PROFILE, context_window=5_000, system_role=role)
    agent = agent_for(
        provider,
        profile,
        instructions="You are the shop's assistant.",
        filters=[DeadLoop(window=3, recent=3, distinct=1), Retrieval(Shelf())],
        compaction=Compaction(),
        max_iterations=40,
    )
    provider.when("Write the new notes now.", Reply("## Done\n- Files were read.\n"))
    for n in range(24):
        provider.add(Reply(calls=(Call("read", {"p": "same"}, f"c{n}"),)))
    provider.add(Reply("Done " + "and done " * 500), Reply("Bye."))
    async with served(agent, valkey_url, prefix) as server:
        events = await server.run("t", "r1", said(1, "read it. " + "It is important. " * 200))
        later = await server.run("t", "r2", said(2, "and now?"))
    chats = [r for r in provider.requests if "Write the new notes now." not in r.body.decode()]

    assert events[-1]["type"] == later[-1]["type"] == "RUN_FINISHED" and provider.problems == []
    for record in chats:
        places = [n for n, m in enumerate(record.messages) if m["role"] in ("system", "developer")]
        assert places == ([] if role == "user" else [0])
        assert "the shop's assistant" in json.dumps(record.messages[0])
    sent = "".join(record.body.decode() for record in chats)
    assert "opens at nine" in sent and "<earlier-conversation>" in sent
    assert agent.texts.dead_loop.split("{")[0] in sent


CLIENT_TOOLS = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]


async def test_calls_that_come_one_by_one_are_regrouped(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """wire-openai-09: three messages with one call each, then three results, are put in order."""
    provider.otherwise(Reply("I see."))
    calls = [
        {
            "id": f"a{n}",
            "role": "assistant",
            "toolCalls": [
                {"id": f"c{n}", "type": "function", "function": {"name": "pick", "arguments": "{}"}}
            ],
        }
        for n in (1, 2, 3)
    ]
    answers = [
        {"id": f"t{n}", "role": "tool", "toolCallId": f"c{n}", "content": f"saw c{n}"}
        for n in (1, 2, 3)
    ]
    async with served(agent_for(provider), valkey_url, prefix) as server:
        listed = [said(1, "pick three"), *calls, *answers, said(2, "and now?")]
        events = await server.run("t", "r1", *listed, tools=CLIENT_TOOLS)

    assert events[-1]["type"] == "RUN_FINISHED" and provider.problems == []
    open_calls: list[str] = []
    answered = []
    for message in provider.requests[0].messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls
            open_calls.remove(message["tool_call_id"])
            answered.append((message["tool_call_id"], message["content"]))
            continue
        assert open_calls == []
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert answered == [(f"c{n}", f"saw c{n}") for n in (1, 2, 3)]
