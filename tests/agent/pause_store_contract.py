"""What every PauseStore must do; a subclass provides the fixture `pauses`."""

from __future__ import annotations

import asyncio
import socket

from agent.agents import Events
from agent.shop import Shop
from backscroll.agent.answers import Approve
from backscroll.agent.events import Reported
from backscroll.agent.pause import PauseStore
from backscroll.kernel.errors import ToolFailure
from backscroll.kernel.message import ToolCall
from backscroll.kernel.request import Note, ToolResponse
from backscroll.kernel.tool import ToolSpec
from backscroll.kernel.turn import Pause, PauseItem, ToolRecord
from backscroll.kernel.usage import CallUsage, Usage
from played_model import call, calls


def full_pause(conversation_id: str = "会话 1", id: str = "pause_1") -> Pause:
    """Return a pause that uses every field."""
    failure = ToolFailure("environment", "钥匙不见了")
    record = ToolRecord("c1", "add", {"a": 1}, "3", "ok", None, 1, 0.5, {"a": 2})
    return Pause(
        id,
        conversation_id,
        (
            PauseItem("c2", "approval", "pay", {"to": "安"}, "why", ("approve", "reject")),
            PauseItem("c3", "environment", "login", {}, "key", ("retry", "give_up")),
        ),
        1_700_000_000.5,
        1_700_000_100.0,
        (ToolCall("c1", "add", {"a": 1}), ToolCall("c2", "pay", None, '{"to"')),
        "msg_1",
        7,
        (record,),
        (CallUsage("p", "m", Usage(1, 2)), CallUsage("p", "m", None)),
        {"c4": ToolResponse("no", error=failure, outcome="error")},
        (ToolRecord("c3", "login", None, "error", "error", failure),),
        {"tenant": "north", "slot": ["a", {"b": None}]},
        (ToolSpec("pick", "Pick.", {"type": "object"}),),
        True,
    )


class PauseStoreContract:
    """The rules."""

    async def test_save_load_take(self, pauses: PauseStore) -> None:
        """PS1, PS3: what was saved is loaded as it was, is taken once, and is gone."""
        pause = full_pause()
        await pauses.save(pause)

        loaded = await pauses.load(pause.conversation_id)
        taken = await pauses.take(pause.conversation_id, pause.id)

        assert loaded == taken == pause
        assert await pauses.load(pause.conversation_id) is None
        assert await pauses.take(pause.conversation_id, pause.id) is None

    async def test_one_taker_gets_it(self, pauses: PauseStore) -> None:
        """PS2: of fifty takers at once exactly one gets the pause."""
        await pauses.save(full_pause("t"))

        taken = await asyncio.gather(*(pauses.take("t", "pause_1") for _ in range(50)))

        assert len([pause for pause in taken if pause is not None]) == 1

    async def test_another_id_takes_nothing(self, pauses: PauseStore) -> None:
        """PS2: a take under another id gets nothing and removes nothing."""
        await pauses.save(full_pause("t"))

        assert await pauses.take("t", "pause_2") is None
        assert await pauses.take("other", "pause_1") is None
        assert await pauses.load("t") == full_pause("t")

    async def test_a_context_that_cannot_be_kept(self, pauses: PauseStore) -> None:
        """PS4: a socket is left out and named; another agent on the store goes on without it."""
        shop, events = Shop(), Events()
        asking = shop.agent(calls(call("pay", {"amount": 10}, "c2")), pauses=pauses)
        with socket.socket() as plug:
            context = {"plug": plug, "tenant": "north"}
            await asking.invoke("hi", conversation_id="t", context=context, on_event=events)
        stored = await pauses.load("t")

        other = shop.agent("ok", pauses=pauses, memory=asking.memory)
        result = await other.resume({"c2": Approve()}, conversation_id="t")

        (note,) = [e.report for e in events.of(Reported) if isinstance(e.report, Note)]
        assert (note.kind, note.text.endswith(": plug")) == ("pause_context", True)
        assert stored is not None and stored.context["tenant"] == "north"
        assert "plug" not in stored.context and "plug" not in result.context
        assert (result.status, shop.ran) == ("completed", ["pay 10"])

    async def test_one_pause_per_conversation(self, pauses: PauseStore) -> None:
        """Saving overwrites; clearing touches no other conversation."""
        await pauses.save(full_pause("t"))
        await pauses.save(full_pause("t", "pause_2"))
        await pauses.save(full_pause("u"))

        assert await pauses.load("t") == full_pause("t", "pause_2")
        await pauses.clear("t")
        await pauses.clear("t")
        assert await pauses.load("t") is None
        assert await pauses.load("u") == full_pause("u")
