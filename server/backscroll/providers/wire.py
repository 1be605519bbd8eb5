"""What an encoder reads beside a request, and how a body is written, read back and rebuilt."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.kernel.errors import ModelError
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest
from backscroll.kernel.texts import Texts

_NOT_IN_BODIES = ("retry", "extra_headers")


@dataclass(frozen=True, slots=True)
class WireConfig:
    """The model's name, its provider, and its default options."""

    name: str
    provider: str
    options: ModelOptions = field(default_factory=ModelOptions)


Build = Callable[[ModelRequest, ModelProfile, WireConfig, bool], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Encoder:
    """One version of a wire: how it builds bodies, and what of profile and texts it reads."""

    wire: str
    build: Build
    profile: tuple[str, ...]
    texts: tuple[str, ...]

    def encode(
        self, request: ModelRequest, profile: ModelProfile, config: WireConfig, stream: bool
    ) -> bytes:
        """Return the body as it is sent; raises `unsupported_content` or `invalid_request`."""
        body = self.build(request, profile, config, stream)
        try:
            return clean_text(canonical_json(body)).encode()
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the request cannot be written as JSON: {error}"
            raise ModelError("invalid_request", message, provider=config.provider) from error

    def setup(self, profile: ModelProfile, config: WireConfig, texts: Texts) -> dict[str, Any]:
        """Return as JSON what `encode` reads beside the request; no keys, no headers."""
        read = {name: getattr(profile, name) for name in self.profile}
        options = dataclasses.asdict(config.options)
        given = {k: v for k, v in options.items() if v is not None and k not in _NOT_IN_BODIES}
        return {
            "wire": self.wire,
            "provider": config.provider,
            "name": config.name,
            "profile": {**read, "parts": {r: list(types) for r, types in profile.parts.items()}},
            "options": {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()},
            "texts": {name: getattr(texts, name) for name in self.texts},
        }

    def encode_from_setup(
        self, setup: Mapping[str, Any], request: ModelRequest, stream: bool
    ) -> bytes:
        """Return the body that the model with this setup would send, byte for byte."""
        profile, options = dict(setup["profile"]), dict(setup["options"])
        profile["parts"] = {role: tuple(types) for role, types in profile["parts"].items()}
        if "stop" in options:
            options["stop"] = tuple(options["stop"])
        if "cache" in options:
            marks = options["cache"]
            options["cache"] = Cache(marks["strategy"], marks["ttl"], tuple(marks["at"]))
        texts = dataclasses.replace(request.texts, **setup["texts"])
        config = WireConfig(setup["name"], setup["provider"], ModelOptions(**options))
        again = dataclasses.replace(request, texts=texts)
        return self.encode(again, ModelProfile(**profile), config, stream)
