"""Content parts on the chat completions wire."""

from __future__ import annotations

import pytest
from backscroll.kernel.content import FilePart, Part, TextPart, VendorPart
from backscroll.kernel.errors import ModelError
from backscroll.kernel.model import ModelProfile
from backscroll.providers.openai_parts import PartRules

ALL = ("image/*", "audio/*", "video/*", "application/*")
RULES = PartRules(ModelProfile(parts={"user": ALL}), "openai")
PNG = FilePart("image/png", data="aGk=")
URL = FilePart("image/*", url="https://h/a.png", detail="low")


def test_text_and_images_go_in_order() -> None:
    """PART1: text, an image by URL and an inline one become the parts of the table, in order."""
    found = RULES.parts((TextPart("see"), URL, PNG), "user")

    assert found == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]


def test_documents_sound_and_handles_have_their_forms() -> None:
    """PART1: PDF, wav, mp3 and a file handle are sent as the table says."""
    pdf = FilePart("application/pdf", data="aGk=", filename="a.pdf")
    unnamed = FilePart("application/pdf", data="aGk=")
    wav, mp3 = FilePart("audio/x-wav", data="aGk="), FilePart("audio/mpeg", data="aGk=")
    handle = FilePart("application/pdf", handle="file-1", provider="openai")

    found = RULES.parts((pdf, unnamed, wav, mp3, handle), "user")

    uri = "data:application/pdf;base64,aGk="
    assert found == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": uri}},
        {"type": "file", "file": {"filename": "part-2.pdf", "file_data": uri}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]


def test_a_part_of_this_wire_passes_unchanged() -> None:
    """PART4: a vendor part reaches its own wire equal to the input."""
    own = VendorPart("openai", {"type": "refusal", "refusal": "no", "extra": [1]})

    assert RULES.parts((TextPart("a"), own), "assistant")[1] == own.data


@pytest.mark.parametrize(
    ("part", "role", "reason"),
    [
        (FilePart("audio/flac", data="aGk="), "user", "images, PDF, wav and mp3"),
        (FilePart("video/mp4", data="aGk="), "user", "images, PDF, wav and mp3"),
        (FilePart("text/plain", data="aGk="), "user", "images, PDF, wav and mp3"),
        (FilePart("application/pdf", url="https://h/a.pdf"), "user", "inline, not by URL"),
        (FilePart("audio/wav", url="https://h/a.wav"), "user", "inline, not by URL"),
        (FilePart("image/png", handle="f", provider="anthropic"), "user", "belongs to 'anthropic'"),
        (PNG, "tool", "tool messages take text only"),
        (PNG, "system", "system messages take text only"),
        (PNG, "assistant", "assistant messages take text only"),
        (VendorPart("anthropic", {}), "user", "'anthropic' cannot go over the openai wire"),
        (VendorPart("openai", {}), "tool", "tool messages take text only"),
    ],
)
def test_what_the_wire_cannot_carry_is_refused(part: Part, role: str, reason: str) -> None:
    """PART2, PART4: a refusal names index, media type and reason, and is not retryable."""
    assert reason in str(RULES.refuses(part, role))

    with pytest.raises(ModelError, match="part 1") as raised:
        RULES.parts((TextPart("a"), part), role)

    assert (raised.value.kind, raised.value.retryable) == ("unsupported_content", False)
    if isinstance(part, FilePart):
        assert part.media_type in str(raised.value)


def test_the_profile_narrows_the_table() -> None:
    """PART5: a text-only model refuses an image that the wire could carry."""
    rules = PartRules(ModelProfile(), "openai")

    assert rules.refuses(PNG, "user") == "image/png is not taken in user messages by this model"
    assert rules.refuses(TextPart("a"), "tool") is None


def test_text_content_is_joined() -> None:
    """Where text is expected, text parts are concatenated and anything else is refused."""
    assert RULES.text((TextPart("a"), TextPart("b")), "tool") == "ab"
    assert RULES.text(None, "tool") == ""

    with pytest.raises(ModelError, match="part 0"):
        RULES.text((VendorPart("openai", {}),), "assistant")
