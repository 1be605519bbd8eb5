"""What carrying a plan out leaves in the store."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.canon_forms import prefix_hashes
from backscroll.compaction.store import (
    Cache,
    CompactionEntry,
    InMemoryCompactionStore,
)
from backscroll.kernel.errors import LeaseLost
from compaction.edge import talk_with
from compaction.histories import a, u
from compaction.planning import talk
from compaction.test_store import SeedStore

LONG = talk(46, 60)


async def test_a_small_store_is_a_full_citizen() -> None:
    """STO2: a restart uses the cache without a call."""
    store = SeedStore()
    await talk_with(store=store).ask(LONG)
    again = talk_with(store=store)
    await again.ask([*LONG, u(999)])
    assert again.model.summaries == []
    assert again.watcher.views[0].facts["cache"]["result"] == "hit"


async def test_a_lost_swap_is_joined_with_what_came_first() -> None:
    """Swap lost: read again; ours is longer, so it is written over theirs."""
    store = Racing()
    found = talk_with(store=store)
    await found.ask(LONG)
    entry = await store.get("t")
    assert entry.cache is not None and "keep going" in entry.cache.summary
    assert found.watcher.decisions[-1]["store"]["swap"] == "joined"
    assert any(cache.summary == "theirs" for cache in entry.ring)
    assert entry.failures == 0


async def test_a_longer_summary_of_somebody_else_stays() -> None:
    """Ours is discarded; this call goes out with it all the same."""
    store = Racing(prefix_n=180)
    found = talk_with(store=store)
    await found.ask(LONG)
    entry = await store.get("t")
    assert entry.cache is not None and entry.cache.summary == "theirs"
    assert found.watcher.decisions[-1]["store"]["swap"] == "theirs"
    assert "keep going" in found.sent[0].text


async def test_a_swap_that_is_lost_again_and_again_is_given_up() -> None:
    """Three times at most; the call goes out, and says so."""
    found = talk_with(store=Racing(times=9))
    await found.ask(LONG)
    assert found.watcher.decisions[-1]["store"]["swap"] == "lost"


class Racing(InMemoryCompactionStore):
    """Somebody else writes just before us, so many times."""

    def __init__(self, prefix_n: int = 4, times: int = 1) -> None:
        super().__init__()
        self.prefix_n, self.times = prefix_n, times

    async def swap(
        self, conversation_id: str, entry: CompactionEntry, generation: int | None
    ) -> bool:
        """Let somebody else write first."""
        if self.times and entry.cache is not None:
            self.times -= 1
            hashes = hashes_of()
            theirs = Cache(self.prefix_n, hashes[self.prefix_n], "theirs", {"n": self.times})
            await super().put(conversation_id, CompactionEntry(theirs, failures=1))
        return await super().swap(conversation_id, entry, generation)


def hashes_of() -> tuple[str, ...]:
    """Return the hashes of the history."""
    return prefix_hashes(LONG)


async def test_appending_messages_changes_nothing_that_is_kept() -> None:
    """STO5: neither entry nor failures nor pins."""
    store = InMemoryCompactionStore()
    found = talk_with(store=store)
    await found.ask(LONG)
    before = await store.get("t")
    await found.ask([*LONG, u(998), a(999)])
    assert await store.get("t") == before


async def test_two_branches_cost_no_call_once_both_are_known() -> None:
    """STO7: switching back and forth."""
    found = talk_with()
    other = [*LONG[:8], u(999, "another way"), *LONG[9:]]
    for history in (LONG, other, LONG, other):
        await found.ask(history)
    assert len(found.model.summaries) == 2


async def test_a_worker_that_lost_its_run_stops() -> None:
    """STO9: nothing contains it."""

    class Fenced(InMemoryCompactionStore):
        async def swap(self, conversation_id: str, entry: Any, generation: Any) -> bool:
            raise LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await talk_with(store=Fenced()).ask(LONG)
