"""The hook after a fresh summary, and the ready-made one that stores a shorter history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from backscroll.compaction.store import InMemoryCompactionStore
from backscroll.compaction.write_back import write_back_to
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import Message, Role, user
from compaction.edge import NOTES, overflow, talk_with
from compaction.histories import u
from compaction.planning import talk, until

LONG = talk(46, 60)


class Hook:
    """Keeps what it is called with, and answers or raises."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[tuple[str, list[Message], list[Message]]] = []
        self.answer = answer

    def __call__(
        self, conversation_id: str, compacted: list[Message], original: list[Message]
    ) -> Any:
        """Note the call."""
        self.calls.append((conversation_id, compacted, original))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_it_is_called_once_for_a_fresh_summary() -> None:
    """WBK1: with both lists; not on a hit, nor where nothing was summarised."""
    hook = Hook()
    found = talk_with(write_back=hook)
    await found.ask(talk(3))
    assert hook.calls == []
    await found.ask(LONG)
    await found.ask([*LONG, u(999)])
    ((conversation_id, compacted, original),) = hook.calls
    assert (conversation_id, original) == ("t", LONG)
    assert compacted[0].origin == "filter:compaction" and compacted[0].id is not None
    assert compacted[1:] == LONG[-len(compacted) + 1 :]
    assert found.watcher.decisions[0]["write_back"] == {"result": "done"}
    assert "write_back" not in found.watcher.decisions[-1] or len(found.watcher.decisions) == 1


async def test_it_is_not_called_where_no_summary_was_stored() -> None:
    """WBK1: neither on a drop, nor on a forced view without a summary."""
    hook = Hook()
    await talk_with(write_back=hook, summariser=None).ask(LONG)
    await talk_with(overflow(), "x", write_back=hook, summariser=None).ask(talk(16, 150))
    await talk_with(write_back=hook, notes=[""]).ask(LONG)
    assert hook.calls == []


async def test_a_hook_that_raises_is_reported_and_the_call_goes_on() -> None:
    """WBK2: the summary is used all the same."""
    store = InMemoryCompactionStore()
    found = talk_with(write_back=Hook(ValueError("disk full")), store=store)
    assert (await found.ask(LONG)).text == "fine"
    (decision,) = found.watcher.decisions
    assert decision["write_back"] == {"result": "failed"}
    assert decision["warnings"][-1] == {
        "reason": "write_back_failed",
        "why": "ValueError: disk full",
    }
    assert (await store.get("t")).cache is not None


async def test_what_nobody_contains_comes_out_of_a_hook() -> None:
    """A process out of memory is not a failed hook."""
    with pytest.raises(MemoryError):
        await talk_with(write_back=Hook(MemoryError())).ask(LONG)


async def stored_talk(memory: InMemoryChatMemory, **options: Any) -> Any:
    """Return a conversation whose history is in a memory."""
    await memory.add("t", LONG)
    return talk_with(write_back=write_back_to(memory), **options)


async def test_the_ready_made_one_stores_the_shorter_history() -> None:
    """WBK4: ids of what stays, no user message that nobody sent, and the cache is forgotten."""
    memory, store = InMemoryChatMemory(), InMemoryCompactionStore()
    found = await stored_talk(memory, store=store)
    await found.ask(await memory.get("t"))
    after = await memory.get("t")
    assert len(after) < len(LONG)
    assert after[0].role is Role.ASSISTANT and "keep going" in after[0].text
    assert after[1:] == LONG[-len(after) + 1 :]
    assert (await store.get("t")).cache is None

    found.next_run()
    await found.ask([*after, u(999)])
    assert found.sent[0].role is Role.USER and "keep going" in found.sent[0].text
    assert len(found.model.summaries) == 1


async def test_messages_appended_meanwhile_stay_behind() -> None:
    """WBK3: five of another worker, during the summary, in order."""
    memory, gate = InMemoryChatMemory(), asyncio.Event()
    begun = asyncio.Event()

    async def slowly(request: Any) -> str:
        begun.set()
        await gate.wait()
        return NOTES

    found = await stored_talk(memory, notes=[slowly])
    asking = asyncio.create_task(found.ask(LONG))
    await until(begun.is_set)
    more = [u(1_000 + n, f"more {n}") for n in range(5)]
    await memory.add("t", more)
    gate.set()
    await asking
    assert (await memory.get("t"))[-5:] == more
    assert len(await memory.get("t")) < len(LONG)


async def test_a_history_that_changed_is_left_alone() -> None:
    """WBK3: refused and reported, nothing lost."""
    memory = InMemoryChatMemory()
    found = await stored_talk(memory)
    other = [u(1, "something else"), *LONG[1:]]
    await found.ask(other)
    assert await memory.get("t") == LONG
    assert found.watcher.decisions[-1]["write_back"] == {"result": "refused"}
    assert found.watcher.decisions[-1]["warnings"][-1]["reason"] == "write_back_refused"


def test_a_memory_that_cannot_replace_is_refused_at_assembly() -> None:
    """Naming what is missing."""
    with pytest.raises(AssemblyError) as caught:
        write_back_to(object())  # type: ignore[arg-type]  # the mistake
    assert caught.value.kind == "invalid_option"


async def test_what_repair_made_up_is_not_stored() -> None:
    """Only what has an id is part of either list."""
    hook = Hook()
    made_up = user("made up")
    await talk_with(write_back=hook).ask([*LONG[:3], made_up, *LONG[3:]])
    _, compacted, original = hook.calls[0]
    assert made_up not in original and all(m.id for m in compacted)
