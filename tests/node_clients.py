"""Playing scenarios with the real AG-UI clients in tests/clients, and reading what they report."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deadlines import scaled

CLIENTS = Path(__file__).resolve().parent / "clients"
Json = dict[str, Any]  # Any: JSON as the client printed it


@dataclass(frozen=True, slots=True)
class Cell:
    """One client on one transport: a column of the conformance table."""

    program: str
    client: str = "new"
    dialect: str = "bare"

    def __str__(self) -> str:
        """Name the cell in test ids."""
        dialect = f"-{self.dialect}" if self.program == "agui_ws" else ""
        return f"{self.program}{dialect}-{self.client}"

    @property
    def is_socket(self) -> bool:
        """Whether the client speaks WebSocket."""
        return self.program == "agui_ws"


@dataclass(frozen=True, slots=True)
class Told:
    """What a client reported at the end of its scenario."""

    steps: list[Json]
    messages: list[Json]
    state: Any
    complaints: list[str]
    wire: list[Any]

    def types(self, step: int = -1) -> list[str]:
        """Return the types of the events of one step, in order."""
        return [event["type"] for event in self.steps[step]["events"]]

    def codes(self, step: int = -1) -> list[str | None]:
        """Return the codes of the errors that reached the client in one step."""
        events = self.steps[step]["events"]
        return [event.get("code") for event in events if event["type"] == "RUN_ERROR"]


class Playing:
    """A client that plays its scenario in a process of its own."""

    def __init__(self, cell: Cell, workers: Sequence[str], thread: str, **scenario: Any) -> None:
        """Start the client; `workers` are base URLs, used one after another on lost sockets."""
        urls = [url.replace("http", "ws", 1) for url in workers]
        told = {"url": workers[0], "urls": urls, "client": cell.client, "dialect": cell.dialect}
        self._process = subprocess.Popen(
            ["node", f"{cell.program}.mjs", json.dumps({**told, "threadId": thread, **scenario})],
            cwd=CLIENTS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def told(self, within_s: float = 15) -> Told:
        """Wait for the end of the scenario and return what the client reported."""
        try:
            out, err = self._process.communicate(timeout=scaled(within_s))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise AssertionError(f"the client did not end within {within_s:g} s") from None
        assert self._process.returncode == 0, err.decode()
        told = json.loads(out)
        names = ("steps", "messages", "state", "complaints", "wire")
        return Told(**{name: told.get(name) for name in names})


def play(cell: Cell, workers: Sequence[str], thread: str, *steps: Json, **scenario: Any) -> Told:
    """Play a whole scenario and return what the client reported."""
    return Playing(cell, workers, thread, steps=list(steps), **scenario).told()


def say(message_id: str, text: str, **more: Any) -> Json:
    """Make the step in which a person says something; the client mints the run's id."""
    message = {"id": message_id, "role": "user", "content": text}
    return {"do": "run", "messages": [message], **more}


def join() -> Json:
    """Make the step that joins the thread and reads to the next terminal event."""
    return {"do": "connect"}


def comparable(messages: Sequence[Json]) -> list[Json]:
    """Return messages as people see them; the results of one batch in the order of their calls."""
    seen: list[Json] = []
    for message in messages:
        if message["role"] in ("activity", "reasoning"):
            continue
        kept = ("id", "role", "content", "toolCalls", "toolCallId")
        seen.append({name: message[name] for name in kept if message.get(name)})
    start = 0
    for end in range(len(seen) + 1):
        if end == len(seen) or seen[end]["role"] != "tool":
            seen[start:end] = sorted(seen[start:end], key=lambda m: str(m.get("toolCallId")))
            start = end + 1
    return seen
