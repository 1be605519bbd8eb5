"""What the encoder reads beside a request, as JSON: with it a body can be written again later."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest
from backscroll.kernel.texts import Texts
from backscroll.providers.openai_request import WIRE, WireConfig, encode

_PROFILE = (
    "parts",
    "max_tokens_field",
    "system_role",
    "single_system",
    "alternate_roles",
    "null_content",
    "tool_name_field",
    "call_id_style",
    "stream_usage",
    "replay_reasoning",
    "response_format",
    "strict_tools",
)
_TEXTS = ("continued", "empty_message", "tool_empty")
_NOT_IN_BODIES = ("retry", "extra_headers", "cache")


def setup_of(profile: ModelProfile, config: WireConfig, texts: Texts) -> dict[str, Any]:
    """Return name and version of the wire, the profile as far as it is read, defaults and texts.

    Neither keys nor headers are part of it.
    """
    options = dataclasses.asdict(config.options)
    given = {k: v for k, v in options.items() if v is not None and k not in _NOT_IN_BODIES}
    shown = {name: getattr(profile, name) for name in _PROFILE}
    return {
        "wire": WIRE,
        "provider": config.provider,
        "name": config.name,
        "profile": {**shown, "parts": {r: list(types) for r, types in profile.parts.items()}},
        "options": {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()},
        "texts": {name: getattr(texts, name) for name in _TEXTS},
    }


def encode_from_setup(setup: Mapping[str, Any], request: ModelRequest, stream: bool) -> bytes:
    """Return the body that the model with this setup would send, byte for byte."""
    profile, options = dict(setup["profile"]), dict(setup["options"])
    profile["parts"] = {role: tuple(types) for role, types in profile["parts"].items()}
    if "stop" in options:
        options["stop"] = tuple(options["stop"])
    texts = dataclasses.replace(request.texts, **setup["texts"])
    config = WireConfig(setup["name"], setup["provider"], ModelOptions(**options))
    return encode(
        dataclasses.replace(request, texts=texts), ModelProfile(**profile), config, stream
    )
