"""Tools that break every rule, called by a served run: it goes on, and nobody else notices."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import Tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Reply, ScriptedProvider
from served import served
from told import results, said, shown

PROFILE = ModelProfile(context_window=100_000, window_source="configured")


class Odd(BaseException):
    """An exception that is no Exception."""


class Unwritable:
    """A value that nothing can be made of."""


async def deaf() -> str:
    """Ignore every cancellation for a while."""
    for _ in range(40):
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue
    return "too late"


async def exits() -> str:
    """Leave, as a program does."""
    raise SystemExit("enough")


def raising(error: BaseException) -> Callable[[], str]:
    """Return a body that raises."""

    def body() -> str:
        raise error

    return body


NASTY: dict[str, tuple[Callable[[], Any], str]] = {
    "blocks a thread": (lambda: threading.Event().wait(3), "timed out after 0.2 s"),
    "ignores cancellation": (deaf, "timed out after 0.2 s"),
    "raises SystemExit": (raising(SystemExit("enough")), "error: enough"),
    "awaits SystemExit": (exits, "error: enough"),
    "raises GeneratorExit": (raising(GeneratorExit()), "error: GeneratorExit"),
    "raises CancelledError": (raising(asyncio.CancelledError()), "error: CancelledError"),
    "raises its own BaseException": (raising(Odd("odd")), "error: odd"),
    "returns bytes": (lambda: b"x", "expected text or JSON values, got bytes"),
    "returns an exception": (
        lambda: ValueError("v"),
        "text or JSON values, got ValueError",
    ),
    "returns an object": (Unwritable, "error: the result cannot be written as text"),
    "returns a circle": (lambda: CIRCLE, "error: the result cannot be written as text"),
    "returns 50 MB": (lambda: "x" * 50_000_000, "x" * 100),
}
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("kind", NASTY)
async def test_a_nasty_tool_harms_nobody(
    valkey_url: str, prefix: str, provider: ScriptedProvider, kind: str
) -> None:
    """A clear result, the run goes on, and the server is healthy."""
    body, words = NASTY[kind]
    handler = _async(body) if asyncio.iscoroutinefunction(body) else lambda args, context: body()
    schema = {"type": "object", "properties": {}}
    timeout_s = 10 if "MB" in kind else 0.2
    nasty = Tool.from_schema("nasty", "Do harm.", schema, handler, timeout_s=timeout_s)
    provider.add(Reply(calls=(Call("nasty"),)), Reply("Fine."), Reply("And again."))
    options = ModelOptions(retry=False)
    model = OpenAIModel(
        "m", base_url=provider.base_url, api_key="k", profile=PROFILE, options=options
    )
    agent = Agent(name="a", model=model, tools=[nasty])
    async with served(agent, valkey_url, prefix) as server:
        events = await server.run("t", "r", said(1, "go"))
        health = await server.http.get("/readyz")
        # A thread that holds 50 MB sends them again with each turn, so that one is spared.
        later = await server.run("t2" if "MB" in kind else "t", "later", said(2, "and now?"))

    assert_valid(events)
    asked = provider.script.records  # as they are: copies of 50 MB take their time
    assert shown(later) == "And again." and not any(record.problem for record in asked)
    assert (shown(events), events[-1]["type"]) == ("Fine.", "RUN_FINISHED")
    assert health.status_code == 200
    assert words in results(events)[0] and words in asked[1].messages[-1]["content"]


def _async(body: Callable[[], Any]) -> Callable[..., Any]:
    async def handler(args: Any, context: Any) -> Any:
        return await body()

    return handler
