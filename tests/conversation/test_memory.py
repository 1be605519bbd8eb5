"""The in-memory ChatMemory, and what adding messages amounts to."""

from __future__ import annotations

import pytest
from backscroll.conversation.memory import InMemoryChatMemory, plan_addition, prepare
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import Blocks, Message, Role, assistant, user
from backscroll.kernel.ports import RandomIds
from conversation.chat_memory_contract import ChatMemoryContract


class TestInMemory(ChatMemoryContract):
    """The memory of this process does what every memory does."""

    @pytest.fixture
    def memory(self) -> InMemoryChatMemory:
        """Return an empty memory."""
        return InMemoryChatMemory()


def test_an_annotation_of_a_message_in_the_same_batch() -> None:
    """A message that comes twice in one batch is added once, with its annotation."""
    loud = user("hi", "u1").replace(model_content="HI", rewritten_by=("loud",))

    change = plan_addition(lambda _: None, [user("hi", "u1"), loud])

    assert change.added == (loud,)
    assert change.annotated == ()
    assert change.stored == (loud, loud)


def test_prepare_leaves_out_what_is_empty() -> None:
    """Empty writes and blocks are no writes and no blocks."""
    message = assistant("a", id="a1").replace(writes={}, blocks=Blocks("f", (), "p"))

    assert prepare([message], RandomIds()) == (assistant("a", id="a1"),)


def test_prepare_cleans_text_inside_parts() -> None:
    """Text parts and reasoning are made valid; files pass as they are."""
    file = FilePart("image/png", data="AA==")
    message = Message(Role.ASSISTANT, (TextPart("\ud800"), file), "a1", reasoning="\udc00")

    (stored,) = prepare([message], RandomIds())

    assert stored.content == (TextPart("\ufffd"), file)
    assert stored.reasoning == "\ufffd"


async def test_a_shorter_history_takes_the_place_of_the_messages_it_was_made_from() -> None:
    """WBK3: what was appended meanwhile stays behind it, and ids go on."""
    memory = InMemoryChatMemory()
    await memory.add("t", [user("a", "1"), user("b", "2"), user("c", "3"), user("d", "4")])
    summary = assistant("a and b", id="s")

    assert await memory.replace("t", [summary, user("c", "3")], expected=3)

    assert [m.id for m in await memory.get("t")] == ["s", "3", "4"]
    await memory.add("t", [user("d", "4"), user("e", "5")])
    assert [m.id for m in await memory.get("t")] == ["s", "3", "4", "5"]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("c", "3")], 9),
        ([user("other", "1")], 2),
        ([user("c", "3")], 2),
    ],
)
async def test_a_history_that_is_not_the_one_read_is_not_replaced(
    messages: list[Message], expected: int
) -> None:
    """WBK3: too few, another text, or a message that was appended later; nothing changes."""
    memory = InMemoryChatMemory()
    before = await memory.add("t", [user("a", "1"), user("b", "2"), user("c", "3")])
    assert not await memory.replace("t", messages, expected=expected)
    assert await memory.get("t") == before
    assert not await memory.replace("nobody", [], expected=1)
