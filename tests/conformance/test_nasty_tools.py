"""Tools that break every rule, called by a served run: it goes on, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import Tool, ToolResult, tool
from backscroll.providers.openai import OpenAIModel
from played_model import call, calls
from scripted_provider import Call, Reply, ScriptedProvider
from served import read_run, request, served, until
from told import results, said, shown
from working import agent_of

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


def exits(kind: type[BaseException]) -> Callable[[], Any]:
    """Return a coroutine that leaves, as a program does."""

    async def body() -> str:
        raise kind("enough")

    return body


def raising(error: BaseException) -> Callable[[], str]:
    """Return a body that raises."""

    def body() -> str:
        raise error

    return body


NASTY: dict[str, tuple[Callable[[], Any], str]] = {
    "blocks a thread": (lambda: threading.Event().wait(3), "timed out after 0.2 s"),
    "ignores cancellation": (deaf, "timed out after 0.2 s"),
    "raises SystemExit": (raising(SystemExit("enough")), "error: enough"),
    "raises KeyboardInterrupt": (raising(KeyboardInterrupt("enough")), "error: enough"),
    "awaits SystemExit": (exits(SystemExit), "error: enough"),
    "awaits KeyboardInterrupt": (exits(KeyboardInterrupt), "error: enough"),
    "awaits GeneratorExit": (exits(GeneratorExit), "error: enough"),
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


@pytest.mark.parametrize("kind", ["on_loop", "in_thread"])
async def test_a_tool_that_heeds_no_stop(valkey_url: str, prefix: str, kind: str) -> None:
    """The run ends cancelled within seconds, operators hear of the rest, the thread goes on."""
    stubborn = Stubborn()
    plain = tool(name="plain", description="Wait.")(getattr(stubborn, kind))
    agent = agent_of(calls(call("plain")), "going on", tools=[plain])
    async with served(agent, valkey_url, prefix) as server:
        try:
            async with server.socket() as socket:
                await socket.send(json.dumps(request("t", "r1", "go")))
                await until(stubborn.begun.is_set, "the tool runs")
                await socket.send(json.dumps({"type": "abort", "runId": "r1"}))
                events = await read_run(socket)
            after = await server.run("t", "r2", "go", "again")
            notes = await server.get("/console/api/threads/t/entries?kind=note&fields=full")
        finally:
            stubborn.release()

    assert events[-1]["outcome"] == {"type": "cancelled"}
    assert results(events) == [Texts().interrupted.format(name="plain")]
    assert after[-1]["outcome"] == {"type": "success"}
    assert "tool_abandoned" in [entry["body"]["kind"] for entry in notes["entries"]]


async def test_a_tool_without_memory(valkey_url: str, prefix: str) -> None:
    """The one error that ends its run; the server is well, and the next run works."""

    @tool
    def plain() -> str:
        """Need more than there is."""
        raise MemoryError

    agent = agent_of(calls(call("plain")), "going on", tools=[plain])
    async with served(agent, valkey_url, prefix) as server:
        events = await server.run("t", "r1", "go")
        after = await server.run("t", "r2", "go", "again")

    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "internal_error")
    assert after[-1]["outcome"] == {"type": "success"}


async def test_a_tool_that_writes_what_is_no_value(valkey_url: str, prefix: str) -> None:
    """What it writes into the context need not be JSON; the stored copy says what it was."""

    @tool
    def plain() -> ToolResult:
        """Write a lock."""
        return ToolResult("ok", writes={"lock": threading.Lock(), "half": "\ud83c"})

    agent = agent_of(calls(call("plain")), "going on", tools=[plain])
    async with served(agent, valkey_url, prefix) as server:
        events = await server.run("t", "r1", "go")
        kept = (await server.get("/console/api/threads/t/messages?fields=full"))["messages"]

    assert results(events) == ["ok"] and events[-1]["outcome"] == {"type": "success"}
    assert "lock" in kept[2]["message"]["writes"]["lock"]


class Stubborn:
    """Waits on the loop or in a thread, whoever asks it to stop, until released."""

    def __init__(self) -> None:
        self.begun, self.free, self.released = threading.Event(), threading.Event(), asyncio.Event()

    async def on_loop(self) -> str:
        """Swallow every cancellation."""
        self.begun.set()
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.released.wait()
        return "late"

    def in_thread(self) -> str:
        """Block a thread."""
        self.begun.set()
        self.free.wait(60)
        return "late"

    def release(self) -> None:
        """Let both end."""
        self.released.set()
        self.free.set()


def _async(body: Callable[[], Any]) -> Callable[..., Any]:
    async def handler(args: Any, context: Any) -> Any:
        return await body()

    return handler
