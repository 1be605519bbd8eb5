"""What was sent of a run, against what was stored of it."""

from __future__ import annotations

import pytest
from backscroll.agui.sent import Sent
from backscroll.kernel.message import Message, assistant, parse_call, tool_result, user


def sent() -> Sent:
    """Return a run that showed reasoning, a text and a call with its result."""
    out = Sent()
    for name, delta in (("m.r", "Hmm"), ("m", "Let "), ("m", "me")):
        out.text(name, delta)
    out.call("c", "m")
    out.args("c", '{"a"')
    out.args("c", ":1}")
    out.result("c")
    return out


STORED = assistant("Let me", [parse_call("c", "add", '{"a":1}')], id="m").replace(reasoning="Hmm")


def test_what_is_stored_as_sent() -> None:
    """Question, reply, reasoning, call: all as clients saw them."""
    assert sent().is_stored([user("q", "u"), STORED], reasoning=True)
    assert Sent().is_stored([assistant("  ", id="m")], reasoning=True)


@pytest.mark.parametrize(
    "stored",
    [
        STORED.replace(content="Let us"),
        STORED.replace(tool_calls=()),
        STORED.replace(reasoning=None),
        STORED.replace(id="other"),
        STORED.replace(tool_calls=(parse_call("c", "add", '{"a":2}'),)),
    ],
)
def test_what_differs(stored: Message) -> None:
    """Another text, a call that is gone, other arguments, reasoning that was not kept."""
    assert not sent().is_stored([stored], reasoning=True)
    assert not sent().is_stored([], reasoning=True)


def test_hidden_reasoning_is_not_compared() -> None:
    """Where no reasoning is shown, stored reasoning does not differ."""
    out = Sent()
    out.text("m", "Hi")

    assert out.is_stored([assistant("Hi", id="m").replace(reasoning="Hmm")], reasoning=False)


def test_results_nobody_saw() -> None:
    """Results among the stored messages that were not sent."""
    seen, unseen = tool_result("c", "add", 1, id="t1"), tool_result("d", "add", 2, id="t2")

    assert sent().missing_results([STORED, seen, unseen]) == [unseen]


def test_texts_are_known_by_id_or_by_their_words() -> None:
    """An answer that was streamed is known, even where its message is not named."""
    assert sent().has_text("m", "") and sent().has_text("", "Let me")
    assert not sent().has_text("", "Let us") and not Sent().has_text("m", "")


def test_reasoning_is_named_apart() -> None:
    """The ids of reasoning, and only those."""
    assert sent().reasoning_ids() == ["m.r"]


def test_what_was_sent_and_is_not_stored() -> None:
    """Texts with their reasoning, marked incomplete; what is stored under its id is left out."""
    sent = Sent()
    sent.text("a", "stored")
    sent.text("b.r", "I think ")
    sent.text("b", "half ")
    sent.text("b", "of it")
    sent.call("c1", "b")
    sent.text("c.r", "Hmm")

    found = sent.unstored([assistant("stored", id="a")])

    shown = [(message.id, message.content, message.reasoning) for message in found]
    assert shown == [("b", "half of it", "I think "), ("c", None, "Hmm")]
    assert all(message.incomplete and message.tool_calls == () for message in found)
