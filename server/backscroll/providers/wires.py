"""The encoders by name and version, for whoever rebuilds a body that was sent earlier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backscroll.kernel.model import ModelRequest
from backscroll.providers import anthropic_request, openai_request
from backscroll.providers.wire import Encoder

ENCODERS: Mapping[str, Encoder] = {
    encoder.wire: encoder for encoder in (openai_request.ENCODER, anthropic_request.ENCODER)
}


class UnknownWire(Exception):
    """No encoder of this name and version is in this program."""


def encode_from_setup(setup: Mapping[str, Any], request: ModelRequest, stream: bool) -> bytes:
    """Return the body that was sent with this setup; raises UnknownWire, naming the wire."""
    encoder = ENCODERS.get(str(setup.get("wire")))
    if encoder is None:
        known = ", ".join(ENCODERS)
        raise UnknownWire(f"expected a wire of {known}, got {setup.get('wire')!r}")
    return encoder.encode_from_setup(setup, request, stream)
