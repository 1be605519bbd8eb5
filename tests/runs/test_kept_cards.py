"""Compaction cards of ended runs: they stay with their thread, at the place where they appeared."""

from __future__ import annotations

import json
from typing import Any

from agui_checker import assert_valid
from agui_client import Client
from backscroll.agui.join import Prelude
from backscroll.runs.worker import Worker
from runs.test_joining import MOST, joiner
from runs.test_operator import compacting
from working import (
    LOCAL_OWNER,
    asked,
    begun,
    events,
    held,
    key,
    run,
    until_ended,
    until_entry,
    working,
)

KINDS = {"@ag-ui/client": {"authoritativeActivityTypes": ["backscroll.compaction"]}}


def snapshot(prelude: Prelude) -> dict[str, Any]:
    """Return the snapshot of a prelude."""
    found = (json.loads(text) for text in prelude.texts)
    return next(event for event in found if event["type"] == "MESSAGES_SNAPSHOT")


def cards(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the compaction cards among messages, each with the message before it."""
    pairs = zip(messages, messages[1:], strict=False)
    return [
        (after["id"], before["id"] if before["role"] != "activity" else "")
        for before, after in pairs
        if after["role"] == "activity"
    ]


async def watched(worker: Worker, run_id: str | None = None) -> Client:
    """Return what a client holds that saw everything live."""
    return Client().apply(*(await events(worker, "t", run_id)))


async def test_an_idle_thread_shows_its_cards(valkey_url: str, prefix: str) -> None:
    """The same ones, with the same numbers, behind the same messages as they were live."""
    async with working(compacting(rounds=30), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "tell me all")
        live = [e for e in await events(worker) if e["type"] == "ACTIVITY_SNAPSHOT"]
        prelude = await joiner(worker).of_thread(key(), MOST)
        ended = (await joiner(worker).of_run(key(), "r1", MOST)).prelude
        client = await watched(worker)

    found = snapshot(prelude)
    assert_valid(prelude.texts)
    shown = {m["id"]: m["content"] for m in found["messages"] if m["role"] == "activity"}
    assert shown == {event["messageId"]: event["content"] for event in live} and shown
    assert found["metadata"] == KINDS and snapshot(ended)["messages"] == found["messages"]
    assert Client().apply(*prelude.texts).shown() == client.shown()


async def test_a_live_run_does_not_take_the_cards_of_others_away(
    valkey_url: str, prefix: str
) -> None:
    """The snapshot of a client that joins in a later run has those of the earlier ones, too."""
    async with working(compacting(held(), rounds=30), valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "tell me all")
        before = cards(snapshot(await joiner(worker).of_thread(key(), MOST))["messages"])
        await worker.registry.submit(LOCAL_OWNER, asked("t", "r2", "tell me all", "more"))
        await until_entry(worker, "r2", "TEXT_MESSAGE_CONTENT")
        found = cards(snapshot(await joiner(worker).of_thread(key(), MOST))["messages"])
        behind = await joiner(worker).opening(
            key(), [stored.message for stored in (await worker.history.read(key())).live], 1, MOST
        )
        await worker.registry.stop(LOCAL_OWNER, "r2")
        await until_ended(worker, "r2")

    assert before and found[: len(before)] == before
    assert cards(json.loads(behind.after[1])["messages"])[: len(before)] == before


async def test_cards_of_superseded_messages_go_with_them(valkey_url: str, prefix: str) -> None:
    """Answered again, the run whose messages are gone shows nothing any more."""
    script = [*compacting(rounds=30).client.model.script, "again"]  # type: ignore[union-attr]
    agent = compacting(rounds=30)
    agent.client.model.script = script  # type: ignore[union-attr]
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "tell me all")
        await run(worker, "t", "r2", "tell me all")
        found = snapshot(await joiner(worker).of_thread(key(), MOST))["messages"]

    assert [m["role"] for m in found] == ["user", "assistant"]


async def test_a_lost_run_leaves_its_cards(valkey_url: str, prefix: str) -> None:
    """One that was running has failed."""
    agent = compacting(held(), rounds=30)
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r0", "tell me all")
        await begun(worker, "r1", "tell me all", "more")
    async with working(agent, valkey_url, prefix) as other:
        await other.clients.write.hset(other.keys.meta(key()), "lease", 1)
        await other.registry.lost.end_thread(key())
        found = snapshot(await joiner(other).of_thread(key(), MOST))["messages"]
        stated = [e for e in await events(other) if e["type"] == "ACTIVITY_SNAPSHOT"]

    assert {name for name, _ in cards(found)} == {event["messageId"] for event in stated}
