"""What counts against a window, and what happens where a provider still says no."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import Tool, tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Reply, ScriptedProvider, error
from served import Served, served
from told import said, shown, stored

SUMMARISER = "Write the new notes now."
NOTES = "## Done\n" + "- A report was read; it was in order, and nothing was decided.\n" * 8
OVERFLOW = error(400, "maximum context length exceeded", "context_length_exceeded")


def agent_for(
    provider: ScriptedProvider,
    window: int,
    tools: Any = (),
    options: ModelOptions | None = None,
    compaction: Compaction | None = None,
    **settings: Any,
) -> Agent:
    """Return an agent on the chat completions wire with a window of that size."""
    model = OpenAIModel(
        "m",
        base_url=provider.base_url,
        api_key="k",
        profile=ModelProfile(context_window=window, window_source="configured"),
        options=options or ModelOptions(retry=False),
    )
    compaction = compaction or Compaction()
    return Agent(name="a", model=model, tools=tools, compaction=compaction, **settings)


def report(n: int, words: int) -> str:
    """Return a message of about so many tokens."""
    return f"Report {n}: " + "all is well here and there " * (words // 6)


async def attempts(server: Served) -> list[dict[str, Any]]:
    """Return the attempts of every call of the thread, in order."""
    calls = (await server.get("/console/api/threads/t/calls"))["calls"]
    found = [await server.get(f"/console/api/threads/t/calls/{c['call']}") for c in calls]
    return [attempt for call in found for attempt in call["attempts"]]


def of_the_main_model(provider: ScriptedProvider) -> list[Any]:
    """Return the requests that are no summariser's."""
    return [r for r in provider.requests if SUMMARISER not in r.body.decode()]


def wide(n: int) -> Tool:
    """Return a tool whose schema takes about 125 tokens."""

    @tool(name=f"look_up_part_{n}")
    def look_up(number: str) -> str:
        """Look up one part of the warehouse by its number, with place, price, age and supplier."""
        return number

    text = "The number of the part as it stands on the label of the box it was delivered in. "
    schema = {
        "type": "object",
        "properties": {"number": {"type": "string", "description": text * 5}},
        "required": ["number"],
    }
    return replace(look_up, info=replace(look_up.info, schema=schema))


async def test_the_budget_counts_prompt_and_tools(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-04: with 5,000 tokens of tools a short history is compacted before its call."""
    provider.configure(window=10_000, overflow="llama.cpp")
    provider.when(SUMMARISER, Reply(NOTES))
    provider.otherwise(Reply("Noted."))
    agent = agent_for(
        provider,
        10_000,
        [wide(n) for n in range(40)],
        ModelOptions(max_output_tokens=500, retry=False),
        instructions="You help in a warehouse, politely and with short answers. " * 125,
    )
    async with served(agent, valkey_url, prefix) as server:
        for n in range(1, 4):
            await server.run("t", f"r{n}", said(n, report(n, 500)))
        before = await attempts(server)
        events = await server.run("t", "r4", said(4, report(4, 1_450)))
        after = (await attempts(server))[-1]

    assert events[-1]["type"] == "RUN_FINISHED" and {r.status for r in provider.requests} == {200}
    assert before[-1]["history"]["tokens"] < 9_500 <= after["history"]["tokens"]
    assert after["sent"]["tokens"] < 9_500 and len(provider.requests[-1].body) > 30_000
    fates = {span["fate"] for span in after["spans"]}
    assert fates & {"summarised", "dropped", "truncated"}, fates


async def test_reserved_output_is_part_of_the_sum(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-05: a provider that counts prompt plus output refuses nothing."""
    provider.configure(window=10_000, overflow="openai")
    provider.when(SUMMARISER, Reply(NOTES))
    provider.otherwise(Reply("Noted."))
    options = ModelOptions(max_output_tokens=4_000, retry=False)
    async with served(agent_for(provider, 10_000, options=options), valkey_url, prefix) as server:
        for n in range(1, 13):
            events = await server.run("t", f"r{n}", said(n, report(n, 1_200)))
            assert events[-1]["type"] == "RUN_FINISHED", events[-1]

    assert {record.status for record in provider.requests} == {200}
    sums = [len(r.body) // 4 + r.json["max_tokens"] for r in of_the_main_model(provider)]
    assert max(sums) <= 10_500 and max(len(r.body) // 4 for r in provider.requests) > 4_000


async def test_compaction_that_is_off_stays_off(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-07: an overflow comes out: no summary, no resend, the history as it was."""
    agent = agent_for(provider, 100_000, compaction=Compaction(enabled=False))
    provider.add(Reply("Noted."), OVERFLOW, Reply("Here again."))
    async with served(agent, valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, report(1, 900)))
        events = await server.run("t", "r2", said(2, report(2, 900)))
        kept = await stored(server)
        after = await server.run("t", "r3", said(3, "and now?"))

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "context_overflow")
    assert len(provider.requests) == 3 and SUMMARISER not in str(provider.requests)
    assert [m["content"] for m in kept] == [report(1, 900), "Noted.", report(2, 900)]
    assert shown(after) == "Here again."


async def test_a_forced_compaction_is_tried_once(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-08: two calls, then the error; no failure counted; a larger window helps."""
    provider.when(SUMMARISER, Reply(NOTES))
    for _ in range(5):
        provider.add(Reply("Noted."))
    provider.otherwise(OVERFLOW)
    async with served(agent_for(provider, 8_000), valkey_url, prefix) as server:
        for n in range(1, 6):
            await server.run("t", f"r{n}", said(n, report(n, 900)))
        sent = len(of_the_main_model(provider))
        events = await server.run("t", "r6", said(6, report(6, 900)))
        tried = of_the_main_model(provider)[sent:]
        card = (await server.get("/console/api/threads/t/compactions"))["card"]
    provider.otherwise(Reply("Here again."))
    async with served(agent_for(provider, 64_000), valkey_url, prefix) as server:
        after = await server.run("t", "r7", said(7, "and now?"))

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "context_overflow")
    assert len(tried) == 2 and len(tried[1].body) < len(tried[0].body)
    assert card["failures"] == 0
    assert shown(after) == "Here again."


ROWS = "".join(f"row {n}: value {n * 37 % 1000}\n" for n in range(9_000))


@tool
def dump() -> str:
    """Return everything there is."""
    return ROWS


async def test_one_huge_result_is_capped(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-17: it is shown shortened with its length, stored whole; no summary is made."""
    provider.configure(window=8_000, overflow="llama.cpp")
    provider.when(SUMMARISER, Reply(NOTES))
    provider.add(Reply("Hello."), Reply(calls=(Call("dump", {}, "c1"),)), Reply("That is much."))
    async with served(agent_for(provider, 8_000, [dump]), valkey_url, prefix) as server:
        await server.run("t", "r1", said(1, "hello"))
        events = await server.run("t", "r2", said(2, "dump it"))
        kept = await stored(server)

    assert shown(events) == "That is much." and {r.status for r in provider.requests} == {200}
    assert len(provider.requests) == len(of_the_main_model(provider)) == 3
    [result] = [m for m in provider.requests[-1].messages if m["role"] == "tool"]
    assert len(result["content"]) < 16_000 and result["content"].startswith("row 0")
    marker = r"\[… \d{5} tokens in full, #\d+; the middle is left out …\]"
    assert re.search(marker, result["content"])
    assert [m["content"] for m in kept if m["role"] == "tool"] == [ROWS]
