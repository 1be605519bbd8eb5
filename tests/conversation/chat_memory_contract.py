"""What every ChatMemory must do; a subclass provides the fixture `memory`."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from backscroll.conversation.memory import ChatMemory
from backscroll.kernel.errors import MessageConflict
from backscroll.kernel.message import (
    Blocks,
    Message,
    Role,
    ToolCall,
    assistant,
    tool_result,
    user,
)

IDS = ["a:b", "a*", "会话 1", "x" * 200, "a", " ", "{a}", "../a"]


def rich_messages() -> list[Message]:
    """Return messages that use every field a message has."""
    call = ToolCall("c1", "look", None, '{"ids":[1,2')
    blocks = Blocks("anthropic-content", ({"type": "thinking", "x": "🌍 你好  "}, 1), "anthropic")
    reply = dataclasses.replace(
        assistant(None, [call, ToolCall("c2", "look", {"b": 1, "a": [None, 2.5]})], "a1"),
        reasoning="hm",
        blocks=blocks,
    )
    result = tool_result("c1", "look", "no", id="t1", outcome="error", writes={"slot": [1]})
    note = Message(Role.USER, "Again.", "f1", origin="filter:validation")
    return [
        user("hi", "u1"),
        reply,
        result,
        assistant("Hel", id="a2").replace(incomplete=True),
        note,
    ]


class ChatMemoryContract:
    """The rules; `reopen` is for memories that outlive their object."""

    async def reopen(self, memory: ChatMemory) -> ChatMemory:
        """Return a memory that reads what the given one has stored."""
        return memory

    @pytest.mark.parametrize("conversation_id", IDS)
    async def test_conversations_are_apart(self, memory: ChatMemory, conversation_id: str) -> None:
        """MEM1: an unknown conversation is empty, and clearing one touches no other."""
        assert await memory.get(conversation_id) == []
        await memory.add(conversation_id, [user("mine", "u1")])
        await memory.add("other", [user("theirs", "u1")])

        await memory.clear(conversation_id)

        assert await memory.get(conversation_id) == []
        assert [message.content for message in await memory.get("other")] == ["theirs"]

    async def test_keeps_batches_whole(self, memory: ChatMemory) -> None:
        """MEM2: fifty appends at once lose nothing, and each stays together and in order."""
        batches = [[user(f"{n}-{k}") for k in range(3)] for n in range(50)]

        await asyncio.gather(*(memory.add("t", batch) for batch in batches))

        first, second = await memory.get("t"), await memory.get("t")
        texts = [message.text for message in first]
        assert first == second
        assert sorted(texts) == sorted(m.text for batch in batches for m in batch)
        for at in range(0, 150, 3):
            number = texts[at].split("-")[0]
            assert texts[at : at + 3] == [f"{number}-{k}" for k in range(3)]

    async def test_stores_a_message_once(self, memory: ChatMemory) -> None:
        """MEM3: the same message again is not stored again, alone or among new ones."""
        await memory.add("t", [user("hi", "u1")])

        stored = await memory.add("t", [user("hi", "u1"), user("more", "u2"), user("more", "u2")])

        assert [message.id for message in await memory.get("t")] == ["u1", "u2"]
        assert [message.id for message in stored] == ["u1", "u2", "u2"]

    async def test_refuses_another_text_under_a_known_id(self, memory: ChatMemory) -> None:
        """MEM3: other content under a stored id raises, and nothing of the batch is stored."""
        await memory.add("t", [user("hi", "u1")])

        with pytest.raises(MessageConflict, match="'u1'"):
            await memory.add("t", [user("new", "u2"), user("other", "u1"), user("newer", "u3")])

        assert [message.id for message in await memory.get("t")] == ["u1"]

    async def test_annotates_once(self, memory: ChatMemory) -> None:
        """MEM4: the first `model_content` is added to what is stored, a different one refused."""
        await memory.add("t", [user("hi", "u1"), user("next", "u2")])
        rewritten = user("hi", "u1").replace(model_content="HI", rewritten_by=("loud",))

        (stored,) = await memory.add("t", [rewritten])
        again = await memory.add("t", [rewritten, user("hi", "u1")])

        assert stored == rewritten
        assert again == [rewritten, rewritten]
        assert await memory.get("t") == [rewritten, user("next", "u2")]
        with pytest.raises(MessageConflict):
            await memory.add("t", [rewritten.replace(model_content="ho")])
        assert (await memory.get("t"))[0] == rewritten

    async def test_keeps_every_field(self, memory: ChatMemory) -> None:
        """MEM5, MSG3: ids, calls, writes, blocks, outcome, origin come back as they were given."""
        given = rich_messages()

        await memory.add("t", given)

        read = await (await self.reopen(memory)).get("t")
        assert [message.to_dict() for message in read] == [message.to_dict() for message in given]
        assert read[2].writes == {"slot": [1]}

    async def test_adding_nothing_writes_nothing(self, memory: ChatMemory) -> None:
        """MEM6: an empty batch leaves the conversation unknown."""
        assert await memory.add("t", []) == []
        assert await memory.get("t") == []

    async def test_gives_ids(self, memory: ChatMemory) -> None:
        """MSG5: messages without an id get one of their own, the same on every read."""
        first = await memory.add("t", [user("a"), user("b", "mine")])
        second = await memory.add("t", [user("a")])

        ids = [message.id for message in (*first, *second)]
        assert None not in ids
        assert len(set(ids)) == 3
        assert ids[1] == "mine"
        assert [message.id for message in await memory.get("t")] == ids

    async def test_stores_valid_text(self, memory: ChatMemory) -> None:
        """MSG10: a lone surrogate is stored as U+FFFD, and blanks stay as they are."""
        await memory.add("t", [user("\ud83c\udf0d and \ud800 "), assistant("")])

        assert [message.content for message in await memory.get("t")] == ["🌍 and \ufffd ", ""]

    async def test_returns_a_list_of_its_own(self, memory: ChatMemory) -> None:
        """Changing what was read does not change what is stored."""
        await memory.add("t", [user("hi", "u1")])

        (await memory.get("t")).clear()

        assert len(await memory.get("t")) == 1
