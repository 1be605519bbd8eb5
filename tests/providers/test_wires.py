"""Encoders by name and version."""

from __future__ import annotations

import pytest
from backscroll.kernel.message import user
from backscroll.kernel.model import ModelRequest
from backscroll.providers.openai import OpenAIModel
from backscroll.providers.wires import UnknownWire, encode_from_setup

REQUEST = ModelRequest((user("hi"),))


def test_a_models_setup_leads_to_its_encoder() -> None:
    """MOD5: what a model says of itself writes the bytes that it would send."""
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1")

    assert encode_from_setup(model.setup(), REQUEST, True) == model.encode(REQUEST, True)


@pytest.mark.parametrize("wire", ["openai-chat/9", None])
def test_an_unknown_wire_is_named(wire: str | None) -> None:
    """A version this program does not have is an error of its own, naming it."""
    with pytest.raises(UnknownWire, match=f"expected a wire of .*openai-chat/1.*, got {wire!r}"):
        encode_from_setup({"wire": wire}, REQUEST, False)
