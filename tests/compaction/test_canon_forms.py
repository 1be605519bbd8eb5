"""Canonical forms, digests, the chain and references."""

from __future__ import annotations

import hashlib
import json
import math

from backscroll.compaction.canon_forms import (
    Digests,
    canon_sent,
    canon_stored,
    is_made_up,
    message_from_sent,
    prefix_hashes,
    reference_text,
    references,
    sent_dict,
    sent_digest,
    stored_digest,
)
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import (
    Message,
    ToolCall,
    assistant,
    parse_call,
    tool_call,
    tool_result,
    user,
)
from compaction.histories import PNG, SIGNED, histories
from hypothesis import given


def test_the_sent_form_holds_what_a_model_sees() -> None:
    """Fields stand in a fixed order, only when set, and none that a model cannot see."""
    message = tool_result("c1", "read", "x", id="m1", writes={"slot": 1}).replace(origin="o")

    assert canon_sent(message) == (
        '{"role":"tool","content":"x","tool_call_id":"c1","name":"read","outcome":"ok"}'
    )


def test_calls_have_raw_text_or_args() -> None:
    """A call is written as the model wrote it, else with its arguments."""
    raw = parse_call("c1", "f", '{"a": 1}')
    message = assistant(None, [raw, tool_call("c2", "g", {"b": 2}), ToolCall("c3", "h", None, "[")])

    assert sent_dict(message)["tool_calls"] == [
        {"id": "c1", "name": "f", "raw": '{"a": 1}'},
        {"id": "c2", "name": "g", "args": {"b": 2}},
        {"id": "c3", "name": "h", "raw": "["},
    ]
    assert message_from_sent(sent_dict(message)) == message


def test_a_rewritten_message_is_sent_as_rewritten_and_stored_as_said() -> None:
    """The sent form has what a view sends; the stored form also has what was said."""
    said = user("hi", "m1")
    written = said.replace(model_content="hi, with passages", rewritten_by=("retrieval",))

    assert json.loads(canon_sent(written))["content"] == "hi, with passages"
    assert json.loads(canon_stored(written))["said"] == "hi"
    assert canon_stored(said) == canon_sent(said)
    assert canon_stored(said.replace(model_content="hi")) == canon_sent(said)


def test_digests_have_a_version_byte() -> None:
    """The digests of the two forms differ even where the forms are equal."""
    message = user("hi")
    form = canon_sent(message).encode()

    assert sent_digest(message) == hashlib.sha256(b"\x01" + form).hexdigest()
    assert stored_digest(message) == hashlib.sha256(b"\x02" + form).digest()


@given(histories())
def test_a_sent_form_reads_back(history: list[Message]) -> None:
    """Reading a sent form gives a message of the same sent form."""
    for message in history:
        value = json.loads(canon_sent(message))

        assert canon_sent(message_from_sent(value)) == canon_sent(message)


def test_the_chain_links_prefixes() -> None:
    """Each prefix has its own hash, and a change shows in all that follow."""
    history = [user("a", "m1"), assistant("b", id="m2"), user("c", "m3")]
    hashes = prefix_hashes(history)
    link = hashlib.sha256(bytes(32) + stored_digest(history[0]))

    assert hashes[:2] == (bytes(32).hex(), link.hexdigest())
    edited = prefix_hashes([history[0], assistant("B"), history[2]])
    assert [x == y for x, y in zip(hashes, edited, strict=True)] == [True, True, False, False]
    assert prefix_hashes(history[:2]) == hashes[:3]


def test_ids_and_origins_are_not_hashed() -> None:
    """What no model sees and nobody said leaves the hashes alone."""
    named = user("a", "m1").replace(origin="filter:x", writes={"a": 1})

    assert prefix_hashes([user("a")]) == prefix_hashes([named])


def test_remembered_digests_are_the_same() -> None:
    """Digests are worked out once per message object, also of one that a filter rewrote."""
    digests = Digests()
    message = user((TextPart("hi"), PNG), "m1")

    for one in (message, message.replace(model_content="hi, with passages")):
        assert digests.sent(one) == digests.sent(one) == sent_digest(one)
        assert digests.stored(one) == stored_digest(one)
        assert prefix_hashes([one], digests) == prefix_hashes([one])


def test_blocks_and_incomplete_are_part_of_it() -> None:
    """Wires look at blocks and at whether a reply broke off, so both count."""
    plain = assistant("hi").replace(reasoning="why")
    marked = plain.replace(blocks=SIGNED, incomplete=True)

    assert json.loads(canon_sent(marked))["blocks"]["source"] == "anthropic"
    assert message_from_sent(sent_dict(marked)) == marked
    assert sent_digest(plain) != sent_digest(marked)


def test_references_do_not_count_what_repair_made_up() -> None:
    """A reference is the number of a message among those that really exist."""
    history = [user("a", "m1"), tool_result("c", "f", "made up"), user("b", "m2")]

    assert references(history) == (1, None, 2)
    assert [reference_text(ref) for ref in (1, None)] == ["1", "-"]
    assert is_made_up(history[1]) and not is_made_up(history[0])


def test_values_that_are_not_json_have_a_stable_form() -> None:
    """Arguments built by hand may hold anything; planning does not fail over them."""
    message = assistant(None, [ToolCall("c", "f", {"a": math.inf, "b": TextPart("x")})])

    assert canon_sent(message) == canon_sent(message)
    assert "Infinity" in canon_sent(message)
