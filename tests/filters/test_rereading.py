"""ReReading rewrites questions for the model only."""

from __future__ import annotations

import pytest
from agent.agents import agent_of, model_of
from backscroll.filters.rereading import ReReading
from backscroll.kernel.content import TextPart
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import assistant, user
from backscroll.kernel.tool import tool
from played_model import call, calls, sent

TWICE = "user: hi\nRead the question again: hi"


@tool
async def look() -> str:
    """Look."""
    return "seen"


async def test_rewrites_once_per_turn() -> None:
    """RR1: over three rounds and in later turns the same text; the store shows what was said."""
    rounds = [calls(call("look"))] * 3
    agent = agent_of(*rounds, "ok", "ok", tools=[look], filters=[ReReading()])

    await agent.invoke("hi", conversation_id="t")
    await agent.invoke("bye", conversation_id="t")

    requests = model_of(agent).requests
    assert {sent(request)[0] for request in requests} == {TWICE}
    (first, *_) = await agent.memory.get("t")
    assert (first.content, first.model_content) == ("hi", TWICE[6:])
    assert first.rewritten_by == ("rereading",)


async def test_what_is_left_alone() -> None:
    """RR4: parts, blank questions, other roles, and what was rewritten before."""
    before = user("done", "u9").replace(model_content="x", rewritten_by=("rereading",))
    messages = [user((TextPart("hi"),)), user(" "), assistant("hi"), before]
    agent = agent_of("ok", filters=[ReReading()])

    await agent.invoke(messages, conversation_id="t")

    stored = await agent.memory.get("t")
    assert [m.rewritten_by for m in stored] == [(), (), (), ("rereading",), ()]
    assert stored[3] == before


async def test_a_template() -> None:
    """The template may be replaced; one with an unknown placeholder is refused."""
    agent = agent_of("ok", filters=[ReReading("{question}!")])

    await agent.invoke("hi {x}")

    assert sent(model_of(agent).requests[0]) == ["user: hi {x}!"]
    with pytest.raises(AssemblyError):
        ReReading("{q}")
