"""The encoders by name and version, for whoever rebuilds a body that was sent earlier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from backscroll.kernel.model import ModelRequest
from backscroll.providers import openai_request, openai_setup

Encoder = Callable[[Mapping[str, Any], ModelRequest, bool], bytes]

ENCODERS: Mapping[str, Encoder] = {openai_request.WIRE: openai_setup.encode_from_setup}


class UnknownWire(Exception):
    """No encoder of this name and version is in this program."""


def encode_from_setup(setup: Mapping[str, Any], request: ModelRequest, stream: bool) -> bytes:
    """Return the body that was sent with this setup; raises UnknownWire, naming the wire."""
    encoder = ENCODERS.get(str(setup.get("wire")))
    if encoder is None:
        known = ", ".join(ENCODERS)
        raise UnknownWire(f"expected a wire of {known}, got {setup.get('wire')!r}")
    return encoder(setup, request, stream)
