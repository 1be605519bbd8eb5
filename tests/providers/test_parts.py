"""What the wires say alike about content parts."""

from __future__ import annotations

import pytest
from backscroll.kernel.content import FilePart, TextPart, VendorPart
from backscroll.kernel.errors import ModelError
from backscroll.providers.parts import text_only, unsupported


def test_text_parts_are_concatenated() -> None:
    """Where only text can go, its parts are joined; nothing is empty text."""
    content = (TextPart("a"), TextPart(" b"))

    assert text_only(content, lambda part: None) == "a b"
    assert text_only("a", lambda part: None) == "a"
    assert text_only(None, lambda part: None) == ""


@pytest.mark.parametrize(("reason", "words"), [("no images", "no images"), (None, "expected here")])
def test_anything_else_is_refused(reason: str | None, words: str) -> None:
    """PART2: the error names index and media type."""
    image = FilePart("image/png", data="aGk=")

    with pytest.raises(ModelError, match=rf"part 1 \(image/png\) .*{words}") as raised:
        text_only((TextPart("a"), image), lambda part: reason)

    assert raised.value.kind == "unsupported_content"


def test_a_part_without_a_media_type_is_named_by_its_kind() -> None:
    """A vendor part has no media type."""
    assert "part 0 (VendorPart)" in str(unsupported(VendorPart("x", {}), 0, "no"))
