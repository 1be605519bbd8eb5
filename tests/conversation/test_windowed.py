"""A window shows the last messages, whole groups only, and keeps all."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.conversation.repair import repair
from backscroll.conversation.windowed import WindowedChatMemory, full_memory, window
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import Message, Role, system
from conversation.chat_memory_contract import ChatMemoryContract
from conversation.histories import a, faults, random_histories, t, u
from hypothesis import given
from hypothesis import strategies as st


class TestWithoutLimit(ChatMemoryContract):
    """A window that shows all does what every memory does."""

    @pytest.fixture
    def memory(self) -> WindowedChatMemory:
        """Return an empty memory behind such a window."""
        return WindowedChatMemory(InMemoryChatMemory(), None)


def ids(messages: list[Message]) -> list[str | None]:
    """Return the ids of messages."""
    return [message.id for message in messages]


async def test_the_last_questions() -> None:
    """MEM7: window 2 over three questions shows two; the inner memory has all."""
    memory = WindowedChatMemory(InMemoryChatMemory(), 2)
    await memory.add("t", [u(1), u(2), u(3)])

    assert ids(await memory.get("t")) == ["u2", "u3"]
    assert ids(await full_memory(memory).get("t")) == ["u1", "u2", "u3"]
    assert full_memory(memory.full) is memory.full


def test_an_answer_does_not_begin() -> None:
    """MEM7: an assistant text at the head is left out."""
    assert ids(window([u(1), a(1), u(2)], 2)) == ["u2"]


def test_a_group_that_does_not_fit() -> None:
    """MEM8: a call is never shown without its result; system messages come first, uncounted."""
    rules = system("rules", "s")

    assert window([rules, a(1, "c1"), t("c1")], 1) == [rules]
    assert ids(window([u(1), rules, a(1, "c1"), t("c1")], 3)) == ["s", "u1", "a1", "t-c1"]


def test_after_each_append() -> None:
    """MEM9: every view is well-formed, has the newest question whole, and begins rightly."""
    history = [
        u(1), a(1, "c1"), t("c1"), a(2), u(2), a(3, "c2", "c3"), t("c2"), t("c3"), a(4), u(3),
    ]  # fmt: skip
    for end in range(1, len(history) + 1):
        is_open = bool(history[end - 1].tool_calls) or history[end - 1].id == "t-c2"

        view = window(history[:end], 4)

        newest = max(n for n, m in enumerate(history[:end]) if m.role is Role.USER)
        # While a batch runs, its calls have no result yet; nothing else may be wrong.
        assert faults(repair(view, "none")[0] if is_open else view) == []
        assert view[-(end - newest) :] == history[newest:end]
        assert len(view) <= max(4, end - newest)
        assert view[0].role is Role.USER or view[0].tool_calls


@given(random_histories(), st.integers(1, 6))
def test_any_history(history: list[Message], limit: int) -> None:
    """The newest question and what follows is shown, in order; nothing is made up."""
    view = window(history, limit)

    positions = [history.index(message) for message in view]
    users = [n for n, message in enumerate(history) if message.role is Role.USER]
    assert positions == sorted(positions)
    if users:
        assert set(range(users[-1], len(history))) <= set(positions)
    if not users or positions[0] < users[-1]:
        assert len(view) <= limit
    if not faults(history):
        assert faults(view) == []
    assert faults(list(repair(view, "none")[0])) == []


@pytest.mark.parametrize("wrong", [0, -1, "4", True])
def test_limits_are_checked(wrong: Any) -> None:
    """A limit is a whole number above 0, or None."""
    with pytest.raises(AssemblyError, match="max_messages"):
        WindowedChatMemory(InMemoryChatMemory(), wrong)


async def test_over_another_memory() -> None:
    """The same window can be put over another memory."""
    inner = InMemoryChatMemory()
    memory = WindowedChatMemory(InMemoryChatMemory(), 1).over(inner)
    await memory.add("t", [u(1), u(2)])

    assert ids(await memory.get("t")) == ["u2"]
    assert memory.full is inner
    await memory.clear("t")
    assert await inner.get("t") == []
