"""The acceptance cases of tools, played from a client to a strict provider and back."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
import websockets
from agui_checker import assert_valid
from backscroll.agent.agent import Agent
from backscroll.filters.dead_loop import DeadLoop
from backscroll.kernel.model import ModelOptions
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from processes import PROGRAMS, ServerProcess
from scripted_provider import Call, Recorded, Reply, ScriptedProvider
from served import Served, read_run, request, served, until
from working import until_ended

RAN: list[Any] = []


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def delete_items(ids: list[int]) -> str:
    """Delete items."""
    RAN.append(ids)
    return f"deleted {len(ids)}"


def agent_for(provider: ScriptedProvider, *tools: Any, **fields: Any) -> Agent:
    """Return an agent on the chat completions wire."""
    options = ModelOptions(retry=False)
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k", options=options)
    RAN.clear()
    return Agent(name="a", model=model, tools=tools, **fields)


def of_type(events: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    """Return the events of some types."""
    return [event for event in events if event["type"] in kinds]


async def over_socket(server: Served, run: str, *texts: Any) -> list[dict[str, Any]]:
    """Ask over a socket and return the events of the run."""
    async with server.socket() as socket:
        await socket.send(json.dumps(request("t", run, *texts)))
        return await read_run(socket)


async def stored(server: Served) -> list[dict[str, Any]]:
    """Return the stored messages of the thread."""
    found = await server.get("/console/api/threads/t/messages?fields=full")
    return [entry["message"] for entry in found["messages"]]


async def test_an_unknown_tool_is_answered_to_the_model(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """tools-01: the call gets an error that names it and the offered ones; the run goes on."""
    provider.add(Reply(calls=(Call("execute_python", {"code": "1"}, "c1"),)), Reply("sorry"))
    async with served(agent_for(provider, add), valkey_url, prefix) as server:
        events = await over_socket(server, "r1", "run it")

    assert_valid(events)
    about = of_type(events, "TOOL_CALL_START", "TOOL_CALL_END")
    assert [event["toolCallId"] for event in about] == ["c1", "c1"]
    (result,) = of_type(events, "TOOL_CALL_RESULT")
    assert result["toolCallId"] == "c1"
    assert "execute_python" in result["content"] and "add" in result["content"]
    assert provider.requests[1].messages[-1]["content"] == result["content"]
    assert events[-1]["outcome"] == {"type": "success"} and provider.problems == []


@pytest.mark.parametrize("text", ['{"ids":[1,2', "[1]", '"x"'])
async def test_broken_arguments_are_no_empty_object(
    valkey_url: str, prefix: str, provider: ScriptedProvider, text: str
) -> None:
    """tools-02: the tool does not run for them, the model reads why, the next call runs."""
    good = Call("delete_items", {"ids": [1, 2]}, "c2")
    provider.add(
        Reply(calls=(Call("delete_items", text, "c1"),)), Reply(calls=(good,)), Reply("ok")
    )
    async with served(agent_for(provider, delete_items), valkey_url, prefix) as server:
        events = await over_socket(server, "r1", "delete 1 and 2")
        row = (await stored(server))[1]
        entries = await server.get("/console/api/threads/t/entries?kind=event&fields=full")

    assert RAN == [[1, 2]] and provider.problems == []
    first, second = of_type(events, "TOOL_CALL_RESULT")
    assert "JSON" in first["content"] and second["content"] == "deleted 2"
    assert row["tool_calls"] == [{"id": "c1", "name": "delete_items", "raw": text}]
    deltas = [entry["body"] for entry in entries["entries"]]
    sent = [e["delta"] for e in of_type(deltas, "TOOL_CALL_ARGS") if e["toolCallId"] == "c1"]
    assert "".join(sent) == text


@tool
def status(id: int) -> str:
    """Say how far a job is."""
    RAN.append(id)
    return f"{len(RAN)}0 %"


@tool
def read(name: str) -> str:
    """Read a file."""
    RAN.append("read")
    return "x = 1"


@tool
def edit(name: str) -> str:
    """Edit a file."""
    RAN.append("edit")
    raise ValueError("no such line")


@tool
def test() -> str:
    """Run the tests."""
    RAN.append("test")
    return "1 failed"


def reminders(provider: ScriptedProvider) -> list[int]:
    """Return which requests hold the reminder, by their number."""
    asked = enumerate(provider.requests, 1)
    return [n for n, record in asked if "Reminder:" in json.dumps(record.messages)]


async def test_polling_with_progress_is_no_loop(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """tools-04: the same call six times, another result each time: no reminder."""
    provider.add(*[Reply(calls=(Call("status", {"id": 1}),))] * 6, Reply("60 %"))
    agent = agent_for(provider, status, filters=[DeadLoop()])
    async with served(agent, valkey_url, prefix) as server:
        events = await over_socket(server, "r1", "wait for it")

    assert RAN == [1] * 6 and reminders(provider) == []
    results = [event["content"] for event in of_type(events, "TOOL_CALL_RESULT")]
    assert results == ["10 %", "20 %", "30 %", "40 %", "50 %", "60 %"]


async def test_a_cycle_of_three_is_noticed(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """tools-04: read, edit, test four times: one request after each six rounds is reminded.

    Nothing is blocked or stored, and the window is empty after the reminder.
    """
    round_ = [Call("read", {"name": "a"}), Call("edit", {"name": "a"}), Call("test")]
    provider.add(*[Reply(calls=(one,)) for one in round_ * 4], Reply("I give up"))
    agent = agent_for(provider, read, edit, test, filters=[DeadLoop()], max_iterations=20)
    async with served(agent, valkey_url, prefix) as server:
        events = await over_socket(server, "r1", "repair it")
        kept = await stored(server)

    assert RAN == ["read", "edit", "test"] * 4 and reminders(provider) == [7, 13]
    assert provider.requests[6].messages[-1]["role"] == "user"
    assert "Reminder:" not in json.dumps([kept, events])
    assert [m["role"] for m in kept].count("user") == 1 and provider.problems == []
    assert events[-1]["type"] == "RUN_FINISHED"


@tool
async def wait() -> str:
    """Take half a minute."""
    await asyncio.sleep(30)
    return "waited"


BATCH = Reply(calls=(Call("add", {"a": 1, "b": 2}, "c1"), Call("wait", {}, "c2")))


def results_of(record: Recorded) -> dict[str, str]:
    """Return what a request says about each call."""
    return {m["tool_call_id"]: m["content"] for m in record.messages if m["role"] == "tool"}


def tool_rows(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return what the console shows of each tool."""
    return {row["ref"]: row["status"] for row in rows if row["family"] == "tool"}


async def test_a_cancelled_batch_leaves_a_thread_that_goes_on(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """tools-06: c1 has its real result, c2 says that it was interrupted, in request and rows."""
    provider.add(BATCH, Reply("going on"))
    async with served(agent_for(provider, add, wait), valkey_url, prefix) as server:
        async with server.socket() as socket:
            await socket.send(json.dumps(request("t", "r1", "work")))
            while json.loads(await socket.recv())["type"] != "TOOL_CALL_RESULT":
                pass
            await socket.send(json.dumps({"type": "abort", "runId": "r1"}))
            await read_run(socket)
        events = await over_socket(server, "r2", "work", "continue")
        rows = (await server.get("/console/api/threads/t/rows"))["rows"]

    told = results_of(provider.requests[1])
    assert told == {"c1": "3", "c2": Texts().interrupted.format(name="wait")}
    assert events[-1]["outcome"] == {"type": "success"} and provider.problems == []
    assert tool_rows(rows) == {"c1": "ok", "c2": "cancelled"}


async def test_a_killed_worker_leaves_a_thread_that_goes_on(
    valkey_url: str, prefix: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    """tools-06: after SIGKILL c1 has its real result, and of c2 the outcome is unknown."""
    provider.add(BATCH, Reply("going on"))
    begun = tmp_path / "begun"
    env = {
        "BACKSCROLL_KEY_PREFIX": prefix, "BACKSCROLL_LEASE_S": "2", "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": provider.base_url, "BEGUN": str(begun),
        "PYTHONPATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    lost = ServerProcess("slow_agent", redis_url=valkey_url, env=env)
    async with served(agent_for(provider, add, wait), valkey_url, prefix) as server:
        await asyncio.to_thread(lost.start)
        async with websockets.connect(f"{lost.ws_url}/agui") as socket:
            await socket.send(json.dumps(request("t", "r1", "work")))
            await until(begun.exists, "c2 runs")
            while json.loads(await socket.recv())["type"] != "TOOL_CALL_RESULT":
                pass
            lost.kill()
        await until_ended(server.worker, "r1")
        events = await over_socket(server, "r2", "work", "continue")
        rows = (await server.get("/console/api/threads/t/rows"))["rows"]

    told = results_of(provider.requests[1])
    assert told == {"c1": "3", "c2": Texts().outcome_unknown.format(name="wait")}
    assert events[-1]["outcome"] == {"type": "success"} and provider.problems == []
    assert tool_rows(rows) == {"c1": "ok", "c2": "error"}
