"""Agents for tests: a played model, a sink that keeps events, a clock that does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from backscroll.agent.agent import Agent
from backscroll.agent.events import AgentEvent, TurnEnded
from backscroll.kernel.message import Message
from backscroll.kernel.tool import Tool, tool
from played_model import PlayedModel, Script, StreamingModel

E = TypeVar("E", bound=AgentEvent)


class Events:
    """A sink that keeps everything; `until` waits for an event that fits."""

    def __init__(self) -> None:
        self.all: list[AgentEvent] = []
        self._news = asyncio.Event()

    async def __call__(self, event: AgentEvent) -> None:
        """Keep one event."""
        self.all.append(event)
        self._news.set()

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind, in order."""
        return [event for event in self.all if isinstance(event, kind)]

    def kinds(self) -> list[str]:
        """Return the names of all events, in order."""
        return [type(event).__name__ for event in self.all]

    async def until(self, fits: Callable[[AgentEvent], bool]) -> AgentEvent:
        """Wait for an event, at most ten seconds."""
        async with asyncio.timeout(10):
            while True:
                found = next((event for event in self.all if fits(event)), None)
                if found is not None:
                    return found
                self._news.clear()
                await self._news.wait()

    @property
    def result(self) -> Any:
        """The result of the last turn that ended."""
        return self.of(TurnEnded)[-1].result


class QuickClock:
    """A clock whose waits take no time; it keeps how long they would have been."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.time = 1_000.0

    def now(self) -> float:
        """Return a time that moves with the waits."""
        return self.time

    def monotonic(self) -> float:
        """Return the same."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Move time on."""
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def agent_of(*script: Script, streaming: bool = True, **fields: Any) -> Agent:
    """Return an agent whose model plays the script."""
    model = StreamingModel(script) if streaming else PlayedModel(script)
    return Agent(model=model, **{"clock": QuickClock(), **fields})


def model_of(agent: Agent) -> PlayedModel:
    """Return the model that an agent of `agent_of` plays."""
    assert isinstance(agent.model, PlayedModel)
    return agent.model


def lines(messages: Sequence[Message]) -> list[str]:
    """Return messages as short lines: role, text, and the names of calls."""
    return [
        f"{m.role}: {m.text}" + "".join(f"[{call.name}]" for call in m.tool_calls) for m in messages
    ]


def pair_of_tools(trace: list[str]) -> tuple[Tool, Tool]:
    """Return two async tools of which each waits a little and leaves a trace."""

    async def step(name: str) -> str:
        trace.append(f"{name}-start")
        await asyncio.sleep(0.01)
        trace.append(f"{name}-end")
        return name

    @tool
    async def a() -> str:
        """Do a."""
        return await step("a")

    @tool(serial=True)
    async def b() -> str:
        """Do b."""
        return await step("b")

    return a, b
