"""Which parts a model can be sent, and what a view says in their place."""

from __future__ import annotations

import pytest
from backscroll.conversation.parts import fit, refusal
from backscroll.kernel.content import FilePart, Part, TextPart, VendorPart
from backscroll.kernel.message import user
from backscroll.kernel.model import ModelProfile
from backscroll.providers.openai import OpenAIModel
from played_model import PlayedModel

MODEL = PlayedModel([], profile=ModelProfile(parts={"user": ("image/*", "application/pdf")}))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (TextPart("x"), None),
        (FilePart("image/png", data="AA=="), None),
        (FilePart("audio/wav", data="AA=="), "audio/wav is not taken in user messages"),
        (FilePart("image/png", handle="f1", provider="played"), None),
        (FilePart("image/png", handle="f1", provider="other"), "it belongs to 'other'"),
        (VendorPart("played", {}), None),
        (VendorPart("other", {}), "it belongs to 'other', and this model is of 'played'"),
    ],
)
def test_refusal(part: Part, reason: str | None) -> None:
    """Text passes, files as the profile says, handles and vendor parts to their own vendor."""
    found = refusal(part, "user", MODEL)

    assert (found is None) if reason is None else (found or "").startswith(reason)


def test_fit_replaces_what_cannot_be_sent() -> None:
    """PART5: only messages with such a part differ, and they keep everything else."""
    sound, note = FilePart("audio/wav", data="AA=="), VendorPart("other", {})
    messages = [user("x", "u1"), user((TextPart("hear"), sound, note), "u2")]

    view, changed = fit(messages, MODEL, "[{media_type} hidden]")

    assert changed == (1,)
    assert view[0] is messages[0]
    assert view[1] == user(
        (TextPart("hear"), TextPart("[audio/wav hidden]"), TextPart("[part hidden]")), "u2"
    )


def test_fit_leaves_a_view_alone() -> None:
    """Nothing to change gives the list itself."""
    messages = [user("x"), user((TextPart("y"), FilePart("image/png", data="AA==")))]

    assert fit(messages, MODEL, "-") == (messages, ())
    assert fit(messages, MODEL, "-")[0] is messages


def test_fit_changes_what_the_model_reads() -> None:
    """A message whose content a filter rewrote keeps what people see."""
    sound = FilePart("audio/wav", data="AA==")
    message = user((sound,), "u1").replace(model_content=(sound,), rewritten_by=("f",))

    ((fitted,), _) = fit([message], MODEL, "-")

    assert fitted.content == (sound,)
    assert fitted.model_content == (TextPart("-"),)


def test_a_model_that_knows_its_wire_is_asked() -> None:
    """PART2: what the wire refuses is refused, whatever the profile says."""
    profile = ModelProfile(parts={"user": ("image/*", "audio/*")})
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1", api_key="k", profile=profile)
    flac = FilePart("audio/flac", data="AA==")

    assert refusal(flac, "user", model) == "images, PDF, wav and mp3 are what this wire takes"
    assert refusal(FilePart("image/png", data="AA=="), "user", model) is None
    assert refusal(TextPart("x"), "tool", model) is None
