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
