"""The SSE parser: any split of the bytes gives the same events."""

from __future__ import annotations

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.providers.sse import SseParser
from hypothesis import given
from hypothesis import strategies as st

ENDS = ("\n", "\r\n", "\r")


def parse(body: bytes, step: int | None = None) -> list[str]:
    """Parse a body fed in pieces of `step` bytes."""
    parser = SseParser()
    size = step or max(len(body), 1)
    pieces = [body[n : n + size] for n in range(0, len(body), size)]
    return [data for piece in pieces for data in parser.feed(piece)] + parser.finish()


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("step", [None, 1, 2, 7])
def test_line_ends_and_splits_do_not_matter(end: str, step: int | None) -> None:
    """HTTP1: LF, CRLF and CR give the same events, also byte by byte (i18n-03)."""
    body = f": hi{end}{end}id: 1{end}data: 你好世界🌍{end}{end}data: b{end}{end}".encode()

    assert parse(body, step) == ["你好世界🌍", "b"]


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))),
    st.sampled_from(ENDS),
    st.data(),
)
def test_parsing_is_independent_of_chunking(
    texts: list[str], end: str, data: st.DataObject
) -> None:
    """Property: the events do not depend on where the network cuts the body."""
    body = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    parser = SseParser()
    edges = zip([0, *cuts], [*cuts, len(body)], strict=True)

    found = [item for start, stop in edges for item in parser.feed(body[start:stop])]

    assert found + parser.finish() == [text for text in texts if text.encode().strip()]


def test_data_lines_join_with_a_line_feed() -> None:
    """Several data lines of one event join with LF, with or without a blank after the colon."""
    assert parse(b"data: a\ndata:b\ndata\n\n") == ["a\nb\n"]


def test_everything_but_data_is_ignored() -> None:
    """Comments, ids, retries, event names, unknown fields and blank data give nothing."""
    body = b": c\n\nid: 4\nretry: 10\nevent: ping\nwhat\n\ndata:\n\ndata:   \n\ndata: x\n\n"

    assert parse(body) == ["x"]


def test_a_byte_order_mark_is_skipped() -> None:
    """A BOM before the first line is not part of it."""
    assert parse("\ufeffdata: x\n\n".encode(), 1) == ["x"]


def test_a_pending_event_is_delivered_at_the_end() -> None:
    """An event without its blank line counts, with and without its line end."""
    assert parse(b"data: a\n\ndata: b\n") == ["a", "b"]
    assert parse(b"data: a\n\ndata: b") == ["a", "b"]
    assert parse(b"data: a\ndata: b") == ["a\nb"]
    assert parse(b"") == []


def test_an_event_ends_at_once() -> None:
    """A blank line delivers the event without waiting for what comes next, also after a CR."""
    parser = SseParser()

    assert parser.feed(b"data: a\r\r") == ["a"]
    assert parser.feed(b"\ndata: b\r\n\r\n") == ["b"]


def test_bytes_that_are_not_utf8_do_not_break_the_stream() -> None:
    """Foreign bytes become replacement characters; the next event is read as usual."""
    assert parse(b"data: \xff\n\ndata: x\n\n") == ["\ufffd", "x"]


@pytest.mark.parametrize("body", [b"data: " + b"x" * 99, b"data: " + b"x\ndata: " * 60])
def test_an_event_too_large_is_a_parse_error(body: bytes) -> None:
    """An event over the limit raises `parse`, in one line or in many."""
    parser = SseParser(max_event_bytes=40)

    with pytest.raises(ModelError) as raised:
        for n in range(0, len(body), 8):
            parser.feed(body[n : n + 8])

    assert raised.value.kind == "parse"


def test_the_limit_is_per_event() -> None:
    """Many small events together may be larger than the limit of one."""
    parser = SseParser(max_event_bytes=40)

    assert len(parser.feed(b"data: 0123456789\n\n" * 50)) == 50
