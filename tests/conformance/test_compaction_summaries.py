"""Summaries that come to nothing, in a thread as clients and operators see it."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelProfile
from backscroll.providers.openai import OpenAIModel
from conformance.compaction_talk import (
    DIGEST,
    FRAME,
    NOTES,
    PROSE,
    Scripted,
    agent_for,
    compactions,
    turn,
)
from scripted_provider import Reply, ScriptedProvider
from served import served, until

SAID = PROSE * 90
USELESS = {"empty": "", "blank": "   \n", "longer than its source": "Notes of it. " * 4_000}


async def wrote_back(thread: str, compacted: list[Message], original: list[Message]) -> None:
    """Fail, because nothing may be written back."""
    raise AssertionError("written back without a summary")


@pytest.mark.parametrize("write_back", [None, wrote_back], ids=["off", "on"])
@pytest.mark.parametrize("text", USELESS.values(), ids=USELESS.keys())
async def test_a_useless_summary_replaces_nothing(
    valkey_url: str, prefix: str, provider: ScriptedProvider, text: str, write_back: Any
) -> None:
    """SUM1, compaction-10: one failure, nothing stored, a digest this turn, the reason shown."""
    script = Scripted(provider, [Reply(text=text)])
    agent = agent_for(provider, 4_000, write_back=write_back, reserve_output=400)
    async with served(agent, valkey_url, prefix) as server:
        number = 0
        while not script.asked:
            number += 1
            last = await turn(server, number, f"{number}: {SAID}")
            assert last["type"] == "RUN_FINISHED", last
        found = await server.get("/console/api/threads/t/compactions")
        stored = (await server.get("/console/api/threads/t/messages?fields=full"))["messages"]

    assert script.asked == 1
    assert found["card"]["failures"] == 1 and "cache" not in found["card"]
    decision = found["compactions"][-1]
    stages = {stage["stage"]: stage for stage in decision["stages"]}
    assert stages["summary"]["status"] == "failed" and stages["summary"]["why"]
    assert stages["drop"]["status"] == "done" and "summary" not in decision
    assert decision["reason"] == "summariser_failed"
    assert [m["role"] for m in stored] == ["user", "assistant"] * number
    sent = str(provider.requests[-1].messages)
    assert DIGEST in sent and FRAME not in sent


async def test_the_breaker_stops_the_storm_and_can_be_reset(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """SUM10, compaction-11: asked in turns 1 to 3, by hand after 6, and by itself in turn 7."""
    script = Scripted(provider, [Reply(text="")] * 3 + [Reply(text=NOTES)])
    profile = ModelProfile(context_window=64_000, window_source="configured")
    other = OpenAIModel("s", base_url=provider.base_url, api_key="k", profile=profile)
    agent = agent_for(provider, 4_000, reserve_output=400, summariser=other)
    asked: list[int] = []
    async with served(agent, valkey_url, prefix) as server:
        number = 0
        while not script.asked or len(asked) < 6:
            number += 1
            before = script.asked
            last = await turn(server, number, f"{number}: {SAID}")
            assert last["type"] == "RUN_FINISHED", last
            asked += [script.asked - before] if script.asked else []
        page = await server.get("/console/api/threads/t/compactions")
        await server.http.post("/console/api/threads/t/compact", json={})
        await until(lambda: not server.worker.operator._compacting, "the summary is made")
        card = (await server.get("/console/api/threads/t/compactions"))["card"]
        by_hand = script.asked
        while script.asked == by_hand and number < 16:
            number += 1
            last = await turn(server, number, f"{number}: {SAID}")
            assert last["type"] == "RUN_FINISHED", last
        decisions = await compactions(server)

    assert asked == [1, 1, 1, 0, 0, 0]
    assert page["card"]["failures"] == 3 and page["card"]["paused"] is True
    assert page["compactions"][-1]["reason"] == "paused_after_failures"
    assert by_hand == 4 and card["failures"] == 0 and card["paused"] is False
    assert script.asked > 4
    assert decisions[-1]["trigger"] == "ratio" and decisions[-1]["result"] == "done"
