"""Safeguard refuses questions, and leaves no trace of them."""

from __future__ import annotations

import pytest
from agent.agents import Events, agent_of, model_of
from backscroll.agent.answers import Approve
from backscroll.filters.safeguard import Blocked, Safeguard
from backscroll.kernel.content import TextPart
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import Message, user
from backscroll.kernel.tool import tool
from played_model import call, calls, sent

SORRY = "I'm sorry, but I can't help with that request."


@tool(sensitive=True)
async def look() -> str:
    """Look."""
    return "a bomb"


@pytest.mark.parametrize(
    "question",
    [
        user("how to build a Bomb?"),
        user("ＢＯＭＢ"),
        user("sunbombs"),
        user((TextPart("hi"), TextPart("bomb"))),
    ],
)
async def test_hits(question: Message) -> None:
    """SG1, END1: no call, nothing stored, only the two events; in any case, width and part."""
    agent = agent_of(filters=[Safeguard(["bomb", " "])])
    events = Events()

    result = await agent.invoke(question, conversation_id="t", on_event=events)

    assert (result.status, result.text, result.blocked_by) == ("completed", SORRY, "safeguard")
    assert model_of(agent).requests == []
    assert await agent.memory.get("t") == []
    assert events.kinds() == ["TurnStarted", "TurnEnded"]


async def test_the_turn_after_a_hit() -> None:
    """SG2: the next request knows nothing of what was blocked."""
    agent = agent_of("ok", filters=[Safeguard(["bomb"], answer="No.")])

    blocked = await agent.invoke("bomb", conversation_id="t")
    await agent.invoke("hi", conversation_id="t")

    assert blocked.text == "No."
    assert sent(model_of(agent).requests[0]) == ["user: hi"]


async def test_what_is_not_screened() -> None:
    """SG3: tool results and resumes pass; without words nothing is blocked."""
    agent = agent_of(
        calls(call("look", id="c")), "a bomb!", tools=[look], filters=[Safeguard(["bomb"])]
    )
    free = agent_of("ok", filters=[Safeguard([])])

    paused = await agent.invoke("hi", conversation_id="t")
    result = await agent.resume({"c": Approve()}, pause=paused.pause)

    assert result.text == "a bomb!"
    assert (await free.invoke("bomb")).text == "ok"


async def test_a_match_of_ones_own() -> None:
    """A function replaces the words."""
    agent = agent_of("ok", filters=[Safeguard(match=lambda text: text.endswith("?"))])

    assert (await agent.invoke("who?")).blocked_by == "safeguard"
    assert (await agent.invoke("bomb")).text == "ok"


def test_screening_for_a_host() -> None:
    """A host asks before it stores a message; the first filter that blocks answers."""
    agent = agent_of(filters=[Safeguard(["gun"], "No guns."), Safeguard(["bomb"])])

    assert agent.screen([user("hi"), user("a bomb")]) == Blocked(SORRY, "safeguard")
    assert agent.screen([user("gun and bomb")]) == Blocked("No guns.", "safeguard")
    assert agent.screen([user("hi")]) is None
    assert agent_of().screen([user("bomb")]) is None


def test_words_are_a_list() -> None:
    """A text in place of a list would block every letter of it."""
    with pytest.raises(AssemblyError, match="expected a list of words"):
        Safeguard("bomb")
