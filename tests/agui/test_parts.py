"""Content between our shape and AG-UI's."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui import core as ag
from backscroll.agui.parts import (
    cut_content,
    cut_text,
    from_wire,
    from_wire_json,
    is_same,
    media_kind,
    placeholder,
    plain_text,
    to_wire,
)
from backscroll.kernel.content import Content, FilePart, TextPart, VendorPart
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

WIRE: TypeAdapter[Any] = TypeAdapter(str | list[ag.ContentPart])
DATA = {"type": "data", "value": "QUJD", "mimeType": "image/png"}
PARTS = [
    {"type": "text", "text": "See:"},
    {"type": "image", "source": DATA, "metadata": {"filename": "a.png", "detail": "high"}},
    {"type": "audio", "source": {"type": "url", "value": "https://x/a.mp3"}},
    {"type": "video", "source": {"type": "url", "value": "https://x/v", "mimeType": "video/mp4"}},
    {"type": "document", "source": {"type": "url", "value": "https://x/doc"}},
    {
        "type": "document",
        "source": {
            "type": "file",
            "value": "file_1",
            "provider": "openai",
            "mimeType": "application/pdf",
        },
    },
]


def dumped(content: Content) -> Any:
    """Return content as JSON values of AG-UI."""
    return WIRE.dump_python(to_wire(content), by_alias=True)


def test_parts_come_back_as_they_were_sent() -> None:
    """Text, inline data, addresses and handles survive the way through the store."""
    assert dumped(from_wire_json(PARTS)) == PARTS


def test_text_stays_text() -> None:
    """Text is text on both sides; nothing is empty text."""
    assert from_wire("Hi \ud800") == "Hi \ufffd"
    assert dumped("Hi") == "Hi" and dumped(None) == ""


def test_other_metadata_is_not_ours() -> None:
    """What a page attached to a part is not kept, except a file's name and detail."""
    part = {"type": "image", "source": DATA, "metadata": ["x"]}

    assert from_wire_json([part]) == (FilePart("image/png", data="QUJD"),)


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", "image"),
        ("AUDIO/wav", "audio"),
        ("video/*", "video"),
        ("text/csv", "document"),
    ],
)
def test_kinds_of_media(media_type: str, kind: str) -> None:
    """The media type tells which part carries it."""
    assert media_kind(media_type) == kind


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (FilePart("image/png", data="A" * 24_000), "[image, image/png, 18 kB]"),
        (FilePart("image/png", data="A" * 4_133_334), "[image, image/png, 3.1 MB]"),
        (FilePart("image/png", data="A" * 40), "[image, image/png, 30 B]"),
        (FilePart("image/*", url="https://x"), "[image]"),
        (FilePart("application/pdf", handle="f", provider="p"), "[file, application/pdf]"),
        (VendorPart("acme", {}), "[acme part]"),
        (TextPart("Hi"), "Hi"),
    ],
)
def test_placeholders(part: Any, line: str) -> None:
    """A part that is not shown has a line with its kind, type and size."""
    assert placeholder(part) == line


def test_plain_text_joins_lines() -> None:
    """Text parts stand on lines of their own, others as placeholders."""
    content = (TextPart("a"), FilePart("image/*", url="https://x"), TextPart("b"))

    assert plain_text(content) == "a\n[image]\nb"
    assert plain_text("x") == "x" and plain_text(None) == ""


def test_a_part_of_a_vendor_is_shown_as_a_line() -> None:
    """AG-UI has no part for it."""
    assert dumped((VendorPart("acme", {}),)) == [{"type": "text", "text": "[acme part]"}]


def test_long_texts_are_cut_in_the_middle() -> None:
    """Head and tail stay, and the line between says how much is missing."""
    text = "h" * 1000 + "t" * 1000

    cut = cut_text(text, 400)

    assert cut.startswith("h" * 200) and cut.endswith("t" * 100)
    assert "\n[… 1,700 characters left out; the full result is stored …]\n" in cut
    assert cut_text("short", 400) == "short"


@given(st.text(min_size=200, max_size=400), st.integers(150, 399))
def test_a_cut_text_is_within_its_limit(text: str, limit: int) -> None:
    """A text that was cut is not cut again."""
    cut = cut_text(text, limit)

    assert len(cut) <= limit and cut_text(cut, limit) == cut


def test_parts_are_cut_one_by_one() -> None:
    """Only texts are shortened; files are left alone."""
    image = FilePart("image/*", url="https://x")
    content = cut_content((TextPart("x" * 500), image), 300)

    assert isinstance(content, tuple) and content[1] == image
    assert len(content[0].text) <= 300  # type: ignore[union-attr]
    assert cut_content(None, 300) is None and cut_content("x" * 500, 300) != "x" * 500


def test_sameness() -> None:
    """One text part is its text; a shortened copy is the same; other words are not."""
    image = FilePart("image/png", data="A" * 24_000)

    assert is_same("a", (TextPart("a"),)) and is_same(None, "")
    assert is_same((TextPart("a"), image), (TextPart("a"), TextPart(placeholder(image))))
    assert not is_same("a", "b") and not is_same((image,), (image, image))
    assert not is_same("a", (image,))


@given(st.text(min_size=300), st.integers(110, 290), st.integers(110, 290))
def test_a_cut_text_is_the_same_at_any_limit(text: str, once: int, twice: int) -> None:
    """Readers with small frames get shorter ones; another text that looks like it is not."""
    cut = cut_text(text, once)

    assert is_same(text, cut) and is_same(cut_text(text, 290), cut_text(cut_text(text, 290), twice))
    assert not is_same(text, cut + "!") and not is_same("!" + text, cut)
