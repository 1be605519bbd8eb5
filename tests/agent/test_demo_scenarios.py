"""What the loop does can be played with the demo model alone, without network and key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent.agents import lines
from backscroll.agent.agent import Agent
from backscroll.agent.answers import Approve
from backscroll.agent.events import TextDelta
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, tool_call, user
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.tool import tool
from backscroll.providers.demo import DemoModel, DemoReply

LOOK = DemoReply(calls=(tool_call("c", "look", {}),))
NO = ModelError("auth", "no")


@tool
async def look() -> str:
    """Look."""
    return "saw it"


@tool(return_direct=True)
async def ticket() -> str:
    """Make a ticket."""
    return "4711"


@tool(sensitive=True)
async def pay() -> str:
    """Pay."""
    return "paid"


def agent_of(*script: Any, **fields: Any) -> Agent:
    """Return an agent whose demo model plays the script."""
    return Agent(model=DemoModel(script, delay_s=0), tools=[look, ticket, pay], **fields)


def asks(name: str) -> DemoReply:
    """Return a reply with one call."""
    return DemoReply(calls=(tool_call("c", name, {}),))


@pytest.mark.parametrize(
    ("script", "limit", "status", "roles"),
    [
        (["hi"], 10, "completed", "ua"),
        ([LOOK, LOOK, LOOK, "ok"], 10, "completed", "uatatata"),
        ([LOOK, LOOK], 1, "error", "uatat"),
        ([LOOK], 0, "error", "uat"),
        ([LOOK, DemoReply(error=NO)], 10, "error", "uat"),
        ([DemoReply("half an answer", break_after=1)], 10, "error", "ua"),
        ([DemoReply()], 10, "completed", "ua"),
        ([asks("nothing"), "ok"], 10, "completed", "uata"),
        ([asks("ticket")], 10, "completed", "uat"),
    ],
    ids="plain rounds limit none fails breaks empty unknown direct".split(),
)
async def test_turns_of_a_script(script: Any, limit: int, status: str, roles: str) -> None:
    """DEMO2: LOOP1 to LOOP4, LOOP12, broken and empty replies, unknown and direct tools."""
    agent = agent_of(*script, max_iterations=limit)

    result = await agent.invoke("hi", conversation_id="t")

    assert result.status == status
    history = await agent.memory.get("t")
    assert "".join(str(message.role)[0] for message in history) == roles


async def test_a_cancel_in_mid_text() -> None:
    """DEMO2, LOOP8: what was said is kept as incomplete."""
    cancel = CancelToken()

    async def stop(event: Any) -> None:
        if isinstance(event, TextDelta):
            cancel.cancel("enough")

    agent = agent_of(DemoReply("one two three", delay_s=0.01))
    result = await agent.invoke("hi", conversation_id="t", cancel=cancel, on_event=stop)

    assert result.status == "cancelled"
    assert (await agent.memory.get("t"))[-1].incomplete


async def test_a_pause_and_its_answer() -> None:
    """DEMO2, LOOP5: an ephemeral conversation is there until the resumed turn ends."""
    agent = agent_of(asks("pay"), "thanks")

    paused = await agent.invoke("hi")
    name = str(paused.conversation_id)
    held = await agent.memory.get(name)
    answers = {item.id: Approve() for item in paused.pause.items}
    result = await agent.resume(answers, conversation_id=name, pause=paused.pause)

    assert (paused.status, len(held)) == ("paused", 2)
    assert (result.text, await agent.memory.get(name)) == ("thanks", [])


async def test_healing_and_turns_in_a_row() -> None:
    """DEMO2, LOOP6, LOOP11: a dangling call is answered first; two turns at once do not mix."""
    agent = agent_of("one", "two")
    await agent.memory.add("t", [user("before"), assistant(None, [tool_call("c", "look", {})])])

    await asyncio.gather(*(agent.invoke(text, conversation_id="t") for text in "ab"))

    found = [line.split(":")[0] for line in lines(await agent.memory.get("t"))]
    assert found == ["user", "assistant", "tool", *["user", "assistant"] * 2]
