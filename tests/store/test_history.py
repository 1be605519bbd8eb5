"""Stored histories as values: codec, ranges, changes."""

from __future__ import annotations

import json

import msgpack
import pytest
from backscroll.kernel.message import Message, Role, ToolCall, assistant, tool_result, user
from backscroll.store.history import (
    HistoryChange,
    Ranges,
    StoredHistory,
    StoredMessage,
    decode,
    encode,
    format_ranges,
    in_ranges,
    message_head,
    parse_ranges,
    stored_form,
    with_range,
)
from conversation.chat_memory_contract import rich_messages
from hypothesis import given
from hypothesis import strategies as st


def history(*messages: Message, ranges: Ranges = ()) -> StoredHistory:
    """Return a history at revision 4."""
    stored = (
        StoredMessage(n, message, marks=("superseded",) if in_ranges(ranges, n) else ())
        for n, message in enumerate(messages, start=1)
    )
    return StoredHistory(tuple(stored), 4, 1, ranges, total=len(messages))


@pytest.mark.parametrize("message", rich_messages())
def test_a_message_comes_back_as_it_was_stored(message: Message) -> None:
    """MSG8: with its place, its run and its marks."""
    element = msgpack.packb([7, 1000, encode(message, "r1", ["imported"])])

    stored = decode(3, element)

    assert stored.message == message
    assert (stored.position, stored.seq, stored.time, stored.run) == (3, 7, 1000, "r1")
    assert stored.marks[0] == "imported"
    assert ("incomplete" in stored.marks) is message.incomplete


def test_numbers_beyond_64_bits_are_kept() -> None:
    """JSON knows whole numbers of any size, and a model may write one."""
    call = ToolCall("c1", "add", {"a": 2**70, "b": -(10**30), "c": 1e300})

    (found,) = stored_form(assistant(None, [call])).tool_calls

    assert found == call


def test_lone_surrogates_are_kept_in_opaque_blocks() -> None:
    """What a provider sent is stored as it was, so that it can be sent back."""
    message = tool_result("c1", "f", "x", writes={"\ud800": "\udfff"})

    assert stored_form(message).writes == {"\ud800": "\udfff"}


def test_the_stored_form_is_json() -> None:
    """A tuple among JSON values is read back as a list, so it is compared as one."""
    message = tool_result("c1", "f", "x", writes={"slot": (1, 2)})

    assert stored_form(message).writes == {"slot": [1, 2]}


def test_refuses_what_is_not_json() -> None:
    """An object of the host does not belong in a message."""
    with pytest.raises(TypeError, match="expected a JSON value in a message, got object"):
        stored_form(tool_result("c1", "f", "x", writes={"slot": object()}))


def test_superseded_and_incomplete_are_derived_marks() -> None:
    """The first comes from the ranges, the second from the message."""
    element = msgpack.packb([1, 1, encode(assistant("a").replace(incomplete=True), "", [])])

    assert decode(2, element, ((2, 3),)).marks == ("incomplete", "superseded")
    assert not decode(2, element, ((2, 3),)).is_live
    assert decode(4, element, ((2, 3),)).is_live


@given(st.sets(st.integers(1, 60)), st.integers(1, 60), st.integers(0, 20))
def test_ranges_cover_what_they_were_given(covered: set[int], first: int, more: int) -> None:
    """They are written and read without loss, rise, and do not touch each other."""
    ranges: Ranges = ()
    for position in covered:
        ranges = with_range(ranges, position, position)
    ranges = with_range(ranges, first, first + more)
    expected = covered | set(range(first, first + more + 1))

    assert {n for n in range(1, 100) if in_ranges(ranges, n)} == expected
    assert parse_ranges(format_ranges(ranges)) == ranges
    assert all(a[1] + 1 < b[0] for a, b in zip(ranges, ranges[1:], strict=False))


def test_no_ranges_are_an_empty_text() -> None:
    """A thread without superseded messages has no such field."""
    assert parse_ranges("") == ()
    assert format_ranges(()) == ""


def test_a_change_supersedes_what_is_live() -> None:
    """From a position on; what is superseded already is not told again."""
    before = history(*(user(str(n), f"u{n}") for n in range(1, 6)), ranges=((3, 3),))

    change = before.change([user("new", "u9")], supersede_from=2, marks=["imported"])

    assert [stored.position for stored in change.superseded] == [2, 4, 5]
    assert change.ranges == ((2, 5),)
    assert (change.revision, change.count, change.marks) == (4, 5, ("imported",))
    assert [stored.position for stored in before.live] == [1, 2, 4, 5]


def test_an_empty_change_is_known_as_such() -> None:
    """There is nothing to write."""
    assert StoredHistory().change().is_empty
    assert history(user("a", "u1")).change(supersede_from=2).is_empty
    assert not StoredHistory().change([user("a", "u1")]).is_empty


def test_offsets_point_at_the_entries_that_announce() -> None:
    """Each added message is stored with the number of its own entry."""
    edited = StoredMessage(1, user("x", "u1"), 1, 1, "r0", ("imported", "incomplete"))
    gone = StoredMessage(2, user("y", "u2"), 2, 1)
    change = HistoryChange(
        *(4, 2, (user("a", "u3"), user("b", "u4")), (edited,), (gone,)), ((2, 2),)
    )

    types = [(entry.type, entry.ref) for entry in change.entries("r1")]
    forgotten, added, again, ranges = msgpack.unpackb(change.pack("r1", before=3), raw=True)

    assert types == [("superseded", "u2"), ("added", "u1"), ("added", "u3"), ("added", "u4")]
    assert [(offset, id_) for offset, id_, _ in added] == [(6, b"u3"), (7, b"u4")]
    assert (forgotten, ranges) == ([b"u2"], b"2-2")
    ((position, data),) = again
    stored = decode(position, msgpack.packb([1, 1, data]))
    assert (stored.position, stored.run, stored.marks) == (1, "r0", ("imported",))


def test_the_head_of_a_message() -> None:
    """What is set, and nothing else; calls by id and name."""
    call = assistant(None, [ToolCall("c1", "look", {"a": 1})], "a1")
    result = tool_result("c1", "look", "no", id="t1", outcome="error")

    assert message_head(1, call)["tool_calls"] == [{"id": "c1", "name": "look"}]
    head = message_head(2, result)
    assert (head["tool_call_id"], head["name"], head["outcome"]) == ("c1", "look", "error")
    assert "incomplete" not in head
    assert message_head(3, assistant("a").replace(incomplete=True))["incomplete"] is True


def test_the_hash_is_over_the_whole_message() -> None:
    """Equal messages have equal hashes, wherever they are."""
    one, same, other = (message_head(n, user(t, "u1")) for n, t in enumerate(["a", "a", "b"]))

    assert one["sha256"] == same["sha256"] != other["sha256"]


def test_a_message_without_text_is_previewed_by_its_calls() -> None:
    """Name and arguments, on one line; a lone surrogate does not break the entry."""
    calls = [ToolCall("c1", "look", {"a": 1}), ToolCall("c2", "see", None, "\ud800")]
    change = StoredHistory().change([Message(Role.ASSISTANT, None, "a1", tuple(calls))])

    (entry,) = change.entries("r1")

    assert entry.preview == 'look({"a":1}), see(\ufffd)'
    assert json.loads(entry.body)["position"] == 1
