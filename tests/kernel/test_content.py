"""Content is text or parts, built without guessing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from backscroll.kernel.content import (
    FilePart,
    TextPart,
    VendorPart,
    content_from_json,
    content_to_json,
    file_part,
    text_of,
)
from backscroll.kernel.errors import InputError

PNG = base64.b64encode(b"\x89PNG").decode()


def test_files_from_every_source(tmp_path: Path) -> None:
    """A URL, a data URI, base64 text, bytes and a path give a file part."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG")

    assert file_part("https://x/y.png") == FilePart("image/*", url="https://x/y.png")
    assert file_part(f"data:image/png;base64,{PNG}") == FilePart("image/png", data=PNG)
    assert file_part(b"\x89PNG", "image/png") == FilePart("image/png", data=PNG)
    assert file_part(PNG, "image/png") == FilePart("image/png", data=PNG)
    assert file_part(tmp_path / "a.png", "image/png").filename == "a.png"


@pytest.mark.parametrize(
    "source", [b"x", PNG, "data:text/plain,hi", "data:;base64,eHg=", "data:image/png;base64,?"]
)
def test_nothing_is_guessed(source: str | bytes) -> None:
    """PART3: inline data without a media type, and other data URIs, are refused."""
    with pytest.raises(InputError) as caught:
        file_part(source)
    assert caught.value.code == "invalid_content"


def test_bad_base64_is_refused() -> None:
    """Text that is not base64 is no file."""
    with pytest.raises(InputError):
        file_part("not base64!", "image/png")


def test_text_of_joins_text_parts() -> None:
    """Text parts are joined with one space, files have no text."""
    assert text_of((TextPart("a"), FilePart("image/png", data=PNG), TextPart("b"))) == "a b"
    assert text_of("x") == "x"
    assert text_of(None) == ""


def test_parts_survive_json() -> None:
    """Every kind of part comes back equal."""
    parts = (
        TextPart("你"),
        FilePart("image/png", data=PNG, filename="a.png", detail="low"),
        FilePart("application/pdf", handle="f1", provider="openai"),
        VendorPart("x", {"k": [1, None]}),
    )

    assert content_from_json(content_to_json(parts)) == parts
    assert content_from_json(content_to_json("t")) == "t"
    assert content_from_json(content_to_json(None)) is None


@pytest.mark.parametrize(
    "value",
    [
        1,
        [1],
        [{"type": "robot"}],
        [{"type": "file", "media_type": "image/png"}],
        [{"type": "file", "media_type": "image/png", "data": "x", "url": "y"}],
        [{"type": "file", "media_type": 1, "data": "x"}],
        [{"type": "file", "media_type": "a/b", "data": "x", "odd": "y"}],
    ],
)
def test_bad_content_names_its_place(value: object) -> None:
    """What is not content is refused with a path."""
    with pytest.raises(InputError, match="content") as caught:
        content_from_json(value)
    assert caught.value.code == "invalid_message"
