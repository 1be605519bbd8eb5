"""What searching for tools saves and costs, counted at a scripted provider.

Fifty tools, of which a turn needs two. First, the prompt tokens of one turn with and without the
search. Second, a conversation of eight turns at a provider that keeps a warm cache of prompts: how
many tokens it reads from the cache, and how many it has to process anew because the tools, which
stand at the beginning of a prompt, have changed.

Tokens are characters of the request divided by four. Nothing here depends on time or chance.

    python bench/tool_search.py [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from backscroll import Agent, InMemoryChatMemory, OpenAIModel, Tool, ToolSearch
from scripted_provider import Call, Reply, ScriptedProvider

THINGS = (
    "orders invoices customers tickets products shipments employees meetings documents campaigns"
).split()
ACTIONS = {
    "find": "Find {things} by any of their fields, the newest first.",
    "create": "Create {things} from the given fields and return their numbers.",
    "update": "Change fields of {things} that exist already.",
    "archive": "Move {things} that are no longer needed into the archive.",
    "export": "Write {things} into a spreadsheet and return where it is.",
}
FIELDS = {
    "number": "The number, as printed on paper.",
    "owner": "Who is responsible, as an e-mail address of somebody in the company directory.",
    "since": "The first day that counts, as YYYY-MM-DD in the time zone of the head office.",
    "until": "The last day that counts, as YYYY-MM-DD in the time zone of the head office.",
    "state": "One of the states a {thing} can be in: draft, open, waiting, closed or cancelled.",
    "note": "A remark for colleagues.",
    "limit": "How many {things} at most are dealt with in one call, between 1 and 500.",
}
CACHED_PRICE = 0.1
SMALLEST_CACHED = 1024
TURNS = 8
RESULT, ANSWER = "found and noted " * 60, "This is what came of it. " * 20


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: how often the model was asked, the tokens of all prompts, the tools that ran."""

    requests: int
    prompt_tokens: int
    tools: list[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The tokens of all prompts, those of them read from the cache, and what they cost.

    The cost is in tokens at full price; one from the cache counts a tenth.
    """

    prompt_tokens: int
    cached_tokens: int
    cost: int


def catalog() -> list[Tool]:
    """Return the fifty tools."""
    return [_tool(action, things) for things in THINGS for action in ACTIONS]


def schema_tokens() -> int:
    """Return what the tools add to a request."""
    sent = [{"type": "function", "function": asdict(tool.spec())} for tool in catalog()]
    return _tokens(json.dumps(sent))


async def one_turn(provider: ScriptedProvider, search: ToolSearch | None) -> Turn:
    """Play a turn that needs two of the tools."""
    provider.reset()
    provider.script.count = lambda request: _tokens(_prompt(request))
    provider.add(*_script(0, search is not None))
    agent = _agent(provider, search)
    result = await agent.invoke("Find order A-1042 and create an invoice for it.")
    await agent.aclose()
    names = [record.name for record in result.records if record.name != "search_tools"]
    used = sum(call.usage.input_tokens or 0 for call in result.usage if call.usage)
    return Turn(len(result.usage), used, names)


async def conversation(
    provider: ScriptedProvider, search: ToolSearch | None, keeps: bool = False
) -> Conversation:
    """Play several turns about different things; `keeps` passes discoveries on to the next."""
    provider.reset()
    agent, context = _agent(provider, search), {}
    for number in range(TURNS):
        provider.add(*_script(number, search is not None))
        question = f"Question {number}: please look after the next two."
        result = await agent.invoke(question, conversation_id="t", context=context)
        context = dict(result.context) if keeps else {}
    await agent.aclose()
    return _conversation([_prompt(record.json) for record in provider.requests])


def _conversation(prompts: Sequence[str]) -> Conversation:
    total = cached = 0
    for number, prompt in enumerate(prompts):
        shared = max((len(os.path.commonprefix([prompt, p])) for p in prompts[:number]), default=0)
        warm = shared // 4 if shared // 4 >= SMALLEST_CACHED else 0
        total, cached = total + _tokens(prompt), cached + warm
    return Conversation(total, cached, round(total - cached + CACHED_PRICE * cached))


def _prompt(request: Mapping[str, Any]) -> str:
    """Return a request as a model reads it: the tools first, then the messages."""
    return json.dumps(request.get("tools", ())) + json.dumps(request["messages"])


def _agent(provider: ScriptedProvider, search: ToolSearch | None) -> Agent:
    model = OpenAIModel("scripted", base_url=provider.base_url, api_key="none")
    return Agent(
        model=model,
        instructions="You help the people in the office.",
        tools=catalog(),
        tool_search=search,
        memory=InMemoryChatMemory(),
    )


def _script(number: int, searches: bool) -> list[Reply]:
    """Return the replies of one turn: search if it has to, call two tools, answer."""
    first, second = THINGS[number % len(THINGS)], THINGS[(number + 1) % len(THINGS)]
    queries = (f"find {first}", f"create {second}")
    asked = tuple(
        Call("search_tools", {"query": query}, f"s{number}-{at}")
        for at, query in enumerate(queries)
    )
    used = (
        Call(f"find_{first}", {"number": "A-1042"}, f"f{number}"),
        Call(f"create_{second}", {"note": "as asked"}, f"c{number}"),
    )
    replies = [Reply(calls=used), Reply(text=ANSWER)]
    return [Reply(calls=asked), *replies] if searches else replies


def _tool(action: str, things: str) -> Tool:
    words = {"things": things, "thing": things.removesuffix("s")}
    properties = {
        name: {"type": "integer" if name == "limit" else "string", "description": text}
        for name, text in ((name, text.format(**words)) for name, text in FIELDS.items())
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    description = ACTIONS[action].format(**words)
    return Tool.from_schema(f"{action}_{things}", description, schema, _run)


async def _run(args: dict[str, Any], context: object) -> str:
    return RESULT


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


async def measure() -> dict[str, Any]:
    """Return all figures."""
    with ScriptedProvider() as provider:
        plain, searched = await one_turn(provider, None), await one_turn(provider, ToolSearch())
        talks = {
            "all_tools": await conversation(provider, None),
            "search": await conversation(provider, ToolSearch()),
            "search_kept": await conversation(provider, ToolSearch(), keeps=True),
        }
    return {
        "schema_tokens": schema_tokens(),
        "all_tools": asdict(plain),
        "search": asdict(searched),
        "ratio_prompt_tokens": round(searched.prompt_tokens / plain.prompt_tokens, 3),
        "warm": {name: asdict(talk) for name, talk in talks.items()},
        "ratio_warm_cost": round(talks["search"].cost / talks["all_tools"].cost, 3),
    }


def main() -> None:
    """Print the figures, and write them as JSON if asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    report = asyncio.run(measure())
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if asked.json:
        asked.json.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
