"""Content parts on the messages wire."""

from __future__ import annotations

import pytest
from backscroll.kernel.content import FilePart, Part, TextPart, VendorPart
from backscroll.kernel.errors import ModelError
from backscroll.kernel.model import ModelProfile
from backscroll.providers.anthropic_parts import PartRules

ALL = ("image/*", "audio/*", "application/*")
RULES = PartRules(ModelProfile(parts={"user": ALL, "tool": ALL}), "anthropic")
PNG = FilePart("image/png", data="aGk=")
URL = FilePart("image/*", url="https://h/a.png", detail="low")
PDF = FilePart("application/pdf", data="aGk=", filename="a.pdf")


def test_text_and_images_go_in_order() -> None:
    """PART1: text, an image by URL and an inline one become the blocks of the table, in order."""
    assert RULES.blocks((TextPart("see"), URL, PNG, TextPart(" ")), "user") == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
        },
    ]


def test_documents_and_handles_have_their_forms() -> None:
    """PART1: PDF inline with its title, PDF by URL, and a file of this provider."""
    by_url = FilePart("application/pdf", url="https://h/a.pdf")
    handle = FilePart("image/png", handle="file_1", provider="anthropic")

    assert RULES.blocks((PDF, by_url, handle), "user") == [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
            "title": "a.pdf",
        },
        {"type": "document", "source": {"type": "url", "url": "https://h/a.pdf"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ]


def test_another_name_of_jpeg_is_the_real_one() -> None:
    """What people call `image/jpg` is sent by its registered name."""
    found = RULES.blocks((FilePart("image/jpg", data="aGk="),), "user")

    assert found[0]["source"]["media_type"] == "image/jpeg"


def test_a_tool_may_answer_with_images() -> None:
    """Tool messages take text and images."""
    assert [block["type"] for block in RULES.blocks((TextPart("a"), PNG), "tool")] == [
        "text",
        "image",
    ]


def test_a_part_of_this_wire_passes_unchanged() -> None:
    """PART4: a vendor part reaches its own wire equal to the input."""
    own = VendorPart("anthropic", {"type": "search_result", "extra": [1]})

    found = RULES.blocks((TextPart("a"), own, TextPart("b")), "user")

    assert found == [{"type": "text", "text": "a"}, own.data, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("part", "role", "reason"),
    [
        (FilePart("audio/wav", data="aGk="), "user", "images and PDF"),
        (FilePart("text/plain", data="aGk="), "user", "images and PDF"),
        (FilePart("image/*", data="aGk="), "user", "needs its exact media type"),
        (FilePart("image/svg+xml", data="aGk="), "user", "images are one of image/jpeg"),
        (FilePart("image/png", handle="f", provider="openai"), "user", "belongs to 'openai'"),
        (PDF, "tool", "text and images only"),
        (PNG, "assistant", "assistant messages take text only"),
        (PNG, "system", "system messages take text only"),
        (VendorPart("anthropic", {}), "system", "system messages take text only"),
        (VendorPart("openai", {}), "user", "'openai' cannot go over the anthropic wire"),
    ],
)
def test_what_the_wire_cannot_carry_is_refused(part: Part, role: str, reason: str) -> None:
    """PART2, PART4: a refusal names index and reason, and is not retryable."""
    with pytest.raises(ModelError, match=rf"part 1 .*{reason}") as raised:
        RULES.blocks((TextPart("a"), part), role)

    assert (raised.value.kind, raised.value.retryable) == ("unsupported_content", False)


def test_the_profile_narrows_the_table() -> None:
    """PART5: a text-only model refuses what the wire could carry."""
    rules = PartRules(ModelProfile(), "anthropic")

    assert rules.refuses(PNG, "user") is not None
    assert rules.text((TextPart("a"), TextPart("b")), "system") == "ab"
