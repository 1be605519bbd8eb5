"""The routes that act on compaction."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.compaction.store import ModelFact
from backscroll.kernel.model import ModelProfile
from backscroll.store.compaction_store import RedisModelFacts
from played_model import StreamingModel
from served import Served, served, until

THREAD = "/console/api/threads/t"
LONG = " ".join(
    f"We use /srv/parts/{n}.csv for part {n}, and the weather of day {n} was as fine as ever."
    for n in range(25)
)


class Windowed(StreamingModel):
    """A model with a small window."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.profile = ModelProfile(8_000, "configured")


def agent() -> Agent:
    """Return an agent that gives long answers, and summarises without a model."""
    compaction = Compaction(ExtractiveSummariser())
    return Agent(name="a", model=Windowed([LONG] * 8), compaction=compaction)


async def talk(server: Served, turns: int = 5) -> None:
    """Have a conversation in the thread t."""
    for turn in range(1, turns + 1):
        await server.run("t", f"r{turn}", *[f"question {n}" for n in range(1, turn + 1)])


async def until_ended(server: Served) -> None:
    """Return as soon as no summary is being made."""
    await until(lambda: not server.worker.operator._compacting, "the summary is made")


async def decisions(server: Served) -> list[dict[str, Any]]:
    """Return all decisions of the thread."""
    found: list[dict[str, Any]] = (await server.get(f"{THREAD}/compactions"))["compactions"]
    return found


async def test_compact_now_then_edit_undo_and_forget(valkey_url: str, prefix: str) -> None:
    """OPR3-OPR5: every action answers with its entry, and the card shows what holds."""
    async with served(agent(), valkey_url, prefix) as server:
        await talk(server)
        begun = await server.http.post(f"{THREAD}/compact", json={"focus": "words"})
        await until_ended(server)
        card = (await server.get(f"{THREAD}/compactions"))["card"]
        sha256 = card["cache"]["sha256"]
        body = {"text": "Edited.", "sha256": sha256}
        edited = await server.http.put(f"{THREAD}/compact/summary", json=body)
        stale = await server.http.put(f"{THREAD}/compact/summary", json=body)
        after = (await server.get(f"{THREAD}/compactions"))["card"]
        undone = await server.http.post(f"{THREAD}/compact/undo", json={"to": sha256})
        forgot = await server.http.delete(f"{THREAD}/compact/cache")
        reset = await server.http.delete(f"{THREAD}/compact/failures")
        actions = [d.get("action") for d in await decisions(server)]
        shown = await server.get(f"{THREAD}/compactions/{edited.json()['compaction']}")

    assert (begun.status_code, begun.json()) == (202, {"requested": True})
    assert stale.status_code == 409 and stale.json()["error"]["code"] == "summary_changed"
    assert after["cache"]["kind"] == "edited" and after["ring"][0]["sha256"] == sha256
    assert {undone.status_code, forgot.status_code, reset.status_code} == {200}
    assert actions[-5:] == ["compact", "edit", "undo", "forget", "reset"]
    assert shown["by"] == "local" and shown["text"].startswith("Edited.")


async def test_pins_settings_and_dry_run(valkey_url: str, prefix: str) -> None:
    """OPR1, OPR2, OPR6: what was set is on the card; a dry run is a call that was not made."""
    async with served(agent(), valkey_url, prefix) as server:
        await talk(server, 2)
        pinned = await server.http.put(f"{THREAD}/pins/u1")
        body = {"enabled": False, "keep_tool_groups": 2}
        patched = await server.http.patch(f"{THREAD}/compact", json=body)
        await server.http.patch(f"{THREAD}/compact", json={"keep_tool_groups": None})
        card = (await server.get(f"{THREAD}/compactions"))["card"]
        entries = (await server.get(THREAD))["entries"]
        asked = {"window": 16_000, "settings": {"enabled": True}}
        dry = await server.http.post(f"{THREAD}/compact/dry_run", json=asked)
        grown = (await server.get(THREAD))["entries"] - entries
        unpinned = await server.http.delete(f"{THREAD}/pins/u1")

    assert {pinned.status_code, patched.status_code, unpinned.status_code} == {200}
    assert card["pins"] == ["u1"] and card["settings"] == {"enabled": False}
    assert dry.json()["attempts"][0]["budget"]["window"] == 16_000 and grown == 0


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "compact", {"focus": 3}, "invalid_input"),
        ("POST", "compact", {"focus": "x" * 2_001}, "invalid_input"),
        ("POST", "compact/dry_run", {"window": 0}, "invalid_input"),
        ("POST", "compact/dry_run", {"window": True}, "invalid_input"),
        ("POST", "compact/dry_run", {"settings": {"facts_ratio": 4}}, "invalid_input"),
        ("PATCH", "compact", {"trigger_ratio": 7}, "invalid_input"),
        ("PATCH", "compact", {"summariser": "x"}, "invalid_input"),
        ("PUT", "compact/summary", {"text": "x"}, "invalid_input"),
        ("PUT", "compact/summary", {"text": "x", "sha256": "y"}, "summary_changed"),
        ("POST", "compact/undo", {}, "not_found"),
        ("PUT", "pins/none", None, "not_found"),
        ("DELETE", "pins/u1", None, "not_found"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    valkey_url: str, prefix: str, method: str, path: str, body: Any, code: str
) -> None:
    """Every refusal has the one shape, and leaves no entry."""
    async with served(agent(), valkey_url, prefix) as server:
        await talk(server, 1)
        answer = await server.http.request(method, f"{THREAD}/{path}", json=body)
        found = await decisions(server)

    assert answer.json()["error"]["code"] == code and found == []


async def test_an_unknown_thread_is_not_found(valkey_url: str, prefix: str) -> None:
    """OPR7: as one of somebody else would be."""
    async with served(agent(), valkey_url, prefix) as server:
        path = "/console/api/threads/nobody/compact"
        answers = [
            await server.http.post(path, json={}),
            await server.http.post(f"{path}/dry_run", json={}),
            await server.http.delete(f"{path}/cache"),
        ]

    assert {answer.json()["error"]["code"] for answer in answers} == {"not_found"}


async def test_a_learned_limit_is_cleared(valkey_url: str, prefix: str) -> None:
    """Names of models may hold slashes."""
    async with served(agent(), valkey_url, prefix) as server:
        facts = RedisModelFacts(server.worker.clients, server.worker.keys)
        await facts.put("p|http://a|org/m", ModelFact(limit=9_000, limit_at=5.0))
        path = "/console/api/models/p/org%2Fm/limit"
        first, second = await server.http.delete(path), await server.http.delete(path)

    assert first.json() == {"cleared": 1} and second.status_code == 404
