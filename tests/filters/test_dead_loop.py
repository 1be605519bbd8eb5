"""DeadLoop reminds a model that runs in circles, and blocks nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from agent.agents import agent_of, model_of
from backscroll.filters.dead_loop import DeadLoop
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.tool import tool
from played_model import call, calls, sent

REMINDER = "user: Reminder: the last 4 rounds repeated the same few tool calls"


@tool
async def look(at: str = "x", b: int = 0) -> str:
    """Look at something."""
    return f"saw {at}"


@tool
async def save(ok: bool = True) -> str:
    """Save something."""
    if not ok:
        raise ValueError("full")
    return "saved"


def look_at(*places: str) -> list[Any]:
    """Return one round per place."""
    return [calls(call("look", {"at": place})) for place in places]


async def reminded(rounds: list[Any], guard: DeadLoop, tools: Any = (look, save)) -> list[int]:
    """Return in which requests, from 1, the reminder was the last message."""
    agent = agent_of(*rounds, "ok", tools=tools, filters=[guard], max_iterations=20)
    result = await agent.invoke("hi", conversation_id="t")
    assert len(result.records) == len(rounds)
    stored = [m.text for m in await agent.memory.get("t")]
    assert not any(text.startswith("Reminder") for text in stored)
    requests = [sent(request) for request in model_of(agent).requests]
    return [n for n, lines in enumerate(requests, 1) if lines[-1].startswith("user: Reminder")]


@pytest.mark.parametrize(
    ("places", "at"),
    [
        ("AAAA", [5]),
        ("ABAB", [5]),
        ("ABCA", []),
        ("AAA", []),
        ("ABCABC", [7]),
        ("AAAAAAAA", [5, 9]),
    ],
)
async def test_circles(places: str, at: list[int]) -> None:
    """DL1, DL2, DL5, DL6: a note in the next request only, then four more rounds are needed."""
    assert await reminded(look_at(*places), DeadLoop()) == at


async def test_progress_in_results() -> None:
    """DL3: the same call with other results each time is no circle, unless only calls count."""
    counter = itertools.count()

    @tool
    async def status(job: int) -> str:
        """Return how far a job is."""
        return f"{next(counter)} %"

    rounds = [calls(call("status", {"job": 1}))] * 6

    assert await reminded(rounds, DeadLoop(), [status]) == []
    assert await reminded(rounds, DeadLoop(compare_results=False), [status]) == [5]


async def test_writes_are_progress() -> None:
    """DL4: a successful save starts the count anew, a failing one does not."""
    guard = DeadLoop(writes={"save"})
    saved, failed = calls(call("save")), calls(call("save", {"ok": False}))

    assert await reminded([*look_at("A", "A"), saved, *look_at("A", "A", "A")], guard) == []
    assert await reminded([*look_at("A", "A"), saved, *look_at(*"AAAA")], guard) == [8]
    assert await reminded([*look_at("A", "A"), failed, *look_at("A")], guard) == [5]


async def test_progress_by_a_function() -> None:
    """What the function says replaces the names."""
    guard = DeadLoop(progress=lambda records: records[0].content == "saw B")

    assert await reminded(look_at(*"AABAAA"), guard) == []


async def test_argument_order_and_conversations() -> None:
    """DL5: argument order is irrelevant, conversations are apart, a new turn starts empty."""
    guard = DeadLoop(reminder="stop after {rounds}")
    swapped = [call("look", {"at": "A", "b": 1}), call("look", {"b": 1, "at": "A"})]
    agent = agent_of(
        *[calls(swapped[n % 2]) for n in range(3)],
        "ok",
        *[calls(swapped[n % 2]) for n in range(3)],
        "ok",
        *[calls(swapped[n % 2]) for n in range(4)],
        "ok",
        tools=[look],
        filters=[guard],
    )

    await agent.invoke("hi", conversation_id="t")
    await agent.invoke("again", conversation_id="t")
    await agent.invoke("hi", conversation_id="other")

    last = [sent(request)[-1] for request in model_of(agent).requests]
    assert [n for n, line in enumerate(last) if line == "user: stop after 4"] == [12]


@pytest.mark.parametrize("wrong", [{"window": 0}, {"recent": "4"}, {"reminder": "{round}"}])
def test_wrong_options(wrong: Any) -> None:
    """Mistakes are raised when the filter is made."""
    with pytest.raises(AssemblyError):
        DeadLoop(**wrong)


async def test_a_resume_goes_on_counting() -> None:
    """A paused turn that goes on is the same turn."""
    from backscroll.agent.answers import Approve

    @tool(sensitive=True)
    async def ask() -> str:
        """Ask."""
        return "yes"

    rounds = [*look_at("A", "A"), calls(call("ask", id="q")), *look_at("A", "A")]
    agent = agent_of(*rounds, "ok", tools=[look, ask], filters=[DeadLoop()])
    paused = await agent.invoke("hi", conversation_id="t")
    await agent.resume({"q": Approve()}, pause=paused.pause)

    assert sent(model_of(agent).requests[-1])[-1].startswith(REMINDER)
