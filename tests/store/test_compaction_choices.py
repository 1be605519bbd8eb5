"""Pins and settings of a conversation in Redis."""

from __future__ import annotations

from backscroll.compaction.store import Cache, CompactionEntry
from backscroll.store.compaction_choices import RedisCompactionChoices
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import connect
from backscroll.store.keys import Keys

PIN = "m 1:é{}"


async def test_choices_and_summaries_leave_each_other_alone(valkey_url: str, prefix: str) -> None:
    """STO5: storing or clearing an entry changes no pin and no setting, and the other way round."""
    clients = connect(valkey_url)
    keys = Keys(prefix)
    choices, store = RedisCompactionChoices(clients, keys), RedisCompactionStore(clients, keys)
    await choices.pin("t", PIN)
    await choices.pin("t", "m2")
    await choices.override("t", {"enabled": False, "trigger_ratio": 0.9})
    await store.put("t", CompactionEntry(Cache(2, "h", "s"), failures=1))

    entry = await store.get("t")
    pins, overrides = await choices.pins("t"), await choices.overrides("t")
    await choices.unpin("t", "m2")
    await store.clear("t")
    left = await choices.pins("t")
    other = await choices.pins("u"), await choices.overrides("u")
    await clients.close()

    assert (entry.cache, entry.failures) == (Cache(2, "h", "s"), 1)
    assert pins == {PIN, "m2"} and left == {PIN} and other == (frozenset(), {})
    assert overrides == {"enabled": False, "trigger_ratio": 0.9}


async def test_settings_that_cannot_be_read_are_none(valkey_url: str, prefix: str) -> None:
    """STO1: a corrupt value costs the settings, never the call."""
    clients = connect(valkey_url)
    keys = Keys(prefix)
    choices = RedisCompactionChoices(clients, keys)
    found = []
    for value in (b"{", b"[1]"):
        await clients.write.hset(f"{prefix}:{{t}}:compaction", "overrides", value)
        found.append(await choices.overrides("t"))
    await clients.close()

    assert found == [{}, {}]
