"""A run always gets its terminal event, whatever becomes of the tasks that make its events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agent.events import CallFinished
from backscroll.agui.encode import RunEncoder
from backscroll.kernel.errors import StoreError
from backscroll.kernel.message import Role
from backscroll.kernel.model import Text
from backscroll.runs.run_memory import RunMemory
from deadlines import scaled
from played_model import Streamed
from served import read_run, request, served
from told import stored
from working import agent_of, events

Patch = pytest.MonkeyPatch


def translator(patch: Patch) -> None:
    """Let the translator of events fail after the last chunk of the first answer."""
    real = RunEncoder._events_of

    def broken(self: RunEncoder, event: Any) -> Any:
        if isinstance(event, CallFinished):
            patch.undo()
            raise RuntimeError("boom")
        return real(self, event)

    patch.setattr(RunEncoder, "_events_of", broken)


def store(patch: Patch) -> None:
    """Let the store refuse the first answer."""
    real = RunMemory.add

    async def broken(self: RunMemory, conversation_id: str, messages: Any) -> Any:
        if any(message.role is Role.ASSISTANT for message in messages):
            patch.undo()
            raise StoreError("could not append")
        return await real(self, conversation_id, messages)

    patch.setattr(RunMemory, "add", broken)


@pytest.mark.parametrize(
    ("fault", "code"), [(translator, "internal_error"), (store, "store_error")]
)
async def test_a_fault_behind_the_last_chunk(
    valkey_url: str,
    prefix: str,
    monkeypatch: Patch,
    fault: Callable[[Patch], None],
    code: str,
) -> None:
    """protocol-05 a, c: the translator fails, the store refuses; RUN_ERROR comes within 5 s."""
    fault(monkeypatch)
    async with served(agent_of("half of it", "whole"), valkey_url, prefix) as server:
        async with server.socket() as socket:
            found = await within_5_s(socket, request("t", "r1", "go"))
            after = await within_5_s(socket, request("t", "r2", "go", "again"))

        assert_valid(await events(server.worker))
    types = [event["type"] for event in found]
    assert types.index("TEXT_MESSAGE_END") > types.index("TEXT_MESSAGE_CONTENT")
    assert (types.count("RUN_ERROR"), found[-1]["code"]) == (1, code)
    assert after[-1]["outcome"] == {"type": "success"}


async def test_a_task_that_is_cancelled(valkey_url: str, prefix: str) -> None:
    """protocol-05 b: cancelled in mid-text: RUN_ERROR within 5 s, the text is kept incomplete."""
    script = Streamed([Text("half of it "), asyncio.Event()])
    async with served(agent_of(script, "whole"), valkey_url, prefix) as server:
        async with server.socket() as socket:
            await socket.send(json.dumps(request("t", "r1", "go")))
            found = [json.loads(await socket.recv())]
            while found[-1]["type"] != "TEXT_MESSAGE_CONTENT":
                found.append(json.loads(await socket.recv()))
            (turn,) = [t for t in asyncio.all_tasks() if "Runner._invoke" in repr(t.get_coro())]
            turn.cancel()
            async with asyncio.timeout(scaled(5)):
                found += await read_run(socket)
            after = await within_5_s(socket, request("t", "r2", "go", "again"))

        assert_valid(await events(server.worker))
        kept = [m for m in await stored(server) if m["role"] == "assistant"]
    types = [event["type"] for event in found]
    assert types.index("TEXT_MESSAGE_END") > types.index("TEXT_MESSAGE_CONTENT")
    assert (types.count("RUN_ERROR"), found[-1]["code"]) == (1, "internal_error")
    assert [(m["content"], m.get("incomplete", False)) for m in kept] == [
        ("half of it ", True),
        ("whole", False),
    ]
    assert "MESSAGES_SNAPSHOT" not in types
    assert after[-1]["outcome"] == {"type": "success"}


async def within_5_s(socket: Any, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Send a request and return its events, the terminal one included."""
    await socket.send(json.dumps(body))
    async with asyncio.timeout(scaled(5)):
        return await read_run(socket)
