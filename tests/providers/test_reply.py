"""A reply as it is put together."""

from __future__ import annotations

from backscroll.kernel.message import ToolCall, assistant
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Finished,
    ModelResponse,
    Reasoning,
    Text,
)
from backscroll.providers.reply import Channel, as_deltas, reply_message
from hypothesis import given
from hypothesis import strategies as st


def test_a_whole_reply_becomes_deltas() -> None:
    """HTTP5: reasoning, text, calls, their ends, and the response last."""
    calls = (ToolCall("c1", "x", {"a": 1}), ToolCall("c2", "y", {}), ToolCall("c3", "z", None, "{"))
    response = ModelResponse(assistant("t", calls).replace(reasoning="r"))

    assert list(as_deltas(response)) == [
        Reasoning("r"), Text("t"),
        CallOpened("c1", "x"), CallArgs("c1", '{"a":1}'),
        CallOpened("c2", "y"),
        CallOpened("c3", "z"), CallArgs("c3", "{"),
        CallClosed("c1"), CallClosed("c2"), CallClosed("c3"),
        Finished(response),
    ]  # fmt: skip


def test_an_empty_reply_has_no_deltas() -> None:
    """Nothing but the response."""
    response = ModelResponse(assistant(""))

    assert list(as_deltas(response)) == [Finished(response)]


def test_calls_without_text_have_no_content() -> None:
    """MSG6: content is None with calls only, else text, empty or not; reasoning never empty."""
    call = (ToolCall("c1", "x"),)

    assert reply_message("", "", call).content is None
    assert reply_message("", "", ()).content == ""
    assert reply_message("a", "b\ud83c", call).reasoning == "b\ufffd"
    assert reply_message("a", "", ()).reasoning is None


@given(st.text(alphabet="ab\u4f60\U0001f30d"), st.data())
def test_pieces_join_to_the_text(text: str, data: st.DataObject) -> None:
    """MSG10: wherever a text is cut, even inside a surrogate pair, it arrives whole."""
    units = text.encode("utf-16-le", "surrogatepass")
    pieces = [
        units[n : n + 2].decode("utf-16-le", "surrogatepass") for n in range(0, len(units), 2)
    ]
    cut = data.draw(st.integers(0, len(pieces)))
    channel = Channel()

    out = [channel.take("".join(pieces[:cut])), *map(channel.take, pieces[cut:]), channel.end()]

    assert "".join(out) == channel.whole() == text


def test_half_a_pair_is_replaced_at_the_end() -> None:
    """A lone surrogate becomes U+FFFD, whatever follows it."""
    channel = Channel()

    assert [channel.take("a\ud83c"), channel.take("b"), channel.end()] == ["a", "\ufffdb", ""]
    assert [channel.take("\ud83c"), channel.end()] == ["", "\ufffd"]
