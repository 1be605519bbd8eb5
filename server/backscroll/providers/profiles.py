"""What is known of providers and their models, as data; later rows fill in, none overrides code.

Windows and limits are the providers' published numbers; where a name has had several, the smallest,
because too small a window costs a compaction and too large a one a refused call. A server on one's
own machine is asked for its window instead (`discovery`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ModelProfile

Changes = Mapping[str, Any]
"""Fields of a profile that differ."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """A kind of server: its hosts, what its requests look like, and what its models can do."""

    changes: Changes = field(default_factory=dict)
    models: tuple[tuple[str, Changes], ...] = ()
    hosts: tuple[str, ...] = ()
    auth: str = "bearer"
    window_at: Literal["models", "props", "ollama", "lm-studio"] = "models"


def _parts(*types: str) -> Changes:
    return {"parts": {"user": types}}


def _sizes(window: int, output: int | None = None, **more: Any) -> Changes:
    return {"context_window": window, "max_output_tokens": output, **more}


_IMAGES = _parts("image/*")
_IMAGES_PDF = _parts("image/*", "application/pdf")
_AUDIO = _parts("audio/wav", "audio/mp3", "audio/mpeg", "audio/x-wav", "audio/wave")
_JSON = {"response_format": "json_schema"}
_O200K = {"vocabulary": "o200k"}
_CL100K = {"vocabulary": "cl100k"}
_DEVELOPER = {"system_role": "developer"}

_OPENAI_MODELS: tuple[tuple[str, Changes], ...] = (
    (r"gpt-5[\w.-]*chat.*", {**_sizes(128_000, 16_384), **_IMAGES_PDF, **_O200K}),
    (
        r"gpt-5.*",
        {
            **_sizes(400_000, 128_000, max_input_tokens=272_000),
            **_IMAGES_PDF,
            **_O200K,
            **_DEVELOPER,
        },
    ),
    (r"gpt-4\.1.*", {**_sizes(1_047_576, 32_768), **_IMAGES_PDF, **_O200K}),
    (r"gpt-4o.*audio.*", {**_sizes(128_000, 16_384), **_AUDIO, **_O200K}),
    (r"(chatgpt-|gpt-)4o.*", {**_sizes(128_000, 16_384), **_IMAGES_PDF, **_O200K}),
    (r"o1-mini.*", {**_sizes(128_000, 65_536), **_O200K, "system_role": "user"}),
    (r"o1-preview.*", {**_sizes(128_000, 32_768), **_O200K, "system_role": "user"}),
    (r"o\d.*", {**_sizes(200_000, 100_000), **_IMAGES_PDF, **_O200K, **_DEVELOPER}),
    (
        r"gpt-4-(turbo|1106|0125).*",
        {**_sizes(128_000, 4_096), **_IMAGES, **_CL100K, "response_format": "json_object"},
    ),
    (r"gpt-4(-\d+)?", {**_sizes(8_192, 8_192), **_CL100K, "response_format": "none"}),
    (
        r"gpt-3\.5-turbo.*",
        {**_sizes(16_385, 4_096), **_CL100K, "response_format": "json_object"},
    ),
)

_OPENAI = {**_JSON, "max_tokens_field": "max_completion_tokens"}

_CLAUDE = {
    "parts": {"user": ("image/*", "application/pdf"), "tool": ("image/*",)},
    "context_window": 200_000,
}

_ANTHROPIC_MODELS: tuple[tuple[str, Changes], ...] = (
    (
        r"claude-(opus|sonnet)-(4-[6-9]|[5-9]).*|claude-(fable|mythos)-.*",
        {**_CLAUDE, **_JSON, "context_window": 1_000_000, "max_output_tokens": 64_000},
    ),
    (
        r"claude-(sonnet|opus|haiku)-4-[5-9].*",
        {**_CLAUDE, **_JSON, "max_output_tokens": 64_000},
    ),
    (r"claude-opus-4.*", {**_CLAUDE, "max_output_tokens": 32_000}),
    (r"claude-(sonnet-4|3-7-sonnet).*", {**_CLAUDE, "max_output_tokens": 64_000}),
    (r"claude-3-5-.*", {**_CLAUDE, "max_output_tokens": 8_192}),
    (r"claude-.*", {**_CLAUDE, "max_output_tokens": 4_096}),
)

_LOCAL_MODELS: tuple[tuple[str, Changes], ...] = (
    (r".*(llava|moondream|pixtral|minicpm-v|vision|gemma-?3|llama-?4|(^|[-_./])vl).*", _IMAGES),
)

VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor(_OPENAI, _OPENAI_MODELS, ("api.openai.com",)),
    "azure": Vendor(
        _OPENAI,
        _OPENAI_MODELS,
        (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
        auth="api-key",
    ),
    "anthropic": Vendor({}, _ANTHROPIC_MODELS, ("api.anthropic.com",), auth="x-api-key"),
    "vllm": Vendor(_JSON, _LOCAL_MODELS),
    "ollama": Vendor(_JSON, _LOCAL_MODELS, ("ollama.com",), window_at="ollama"),
    "llama.cpp": Vendor(_JSON, _LOCAL_MODELS, window_at="props"),
    "lm-studio": Vendor(_JSON, _LOCAL_MODELS, window_at="lm-studio"),
    "deepseek": Vendor(
        {"response_format": "json_object"},
        (
            (r"deepseek-reasoner.*", {**_sizes(131_072, 65_536), "replay_reasoning": "tool_calls"}),
            (r"deepseek-.*", _sizes(131_072, 8_192)),
        ),
        ("api.deepseek.com",),
    ),
    "openrouter": Vendor({**_JSON, **_IMAGES}, (), ("openrouter.ai",)),
    "groq": Vendor(
        {"max_tokens_field": "max_completion_tokens", "response_format": "json_object"},
        _LOCAL_MODELS,
        ("api.groq.com",),
    ),
    "together": Vendor(_JSON, _LOCAL_MODELS, ("api.together.xyz", "api.together.ai")),
    "mistral": Vendor(
        {**_JSON, "stream_usage": False, "tool_name_field": True, "call_id_style": "alnum9"},
        ((r"(pixtral|mistral-(small|medium|large)).*", {**_sizes(131_072), **_IMAGES}),),
        ("api.mistral.ai",),
    ),
    "generic": Vendor({}, _LOCAL_MODELS),
}


def vendor(provider: str) -> Vendor:
    """Return the data of a provider; raises `invalid_option` listing the known ones."""
    found = VENDORS.get(provider)
    if found is None:
        message = f"provider: expected one of {', '.join(VENDORS)}, got {provider!r}"
        raise AssemblyError("invalid_option", message, "provider")
    return found


def provider_at(host: str) -> str:
    """Return which provider's host this is, `generic` for any other."""
    for name, data in VENDORS.items():
        if any(host == known or host.endswith(f".{known.lstrip('.')}") for known in data.hosts):
            return name
    return "generic"


def profile_for(provider: str, model: str) -> ModelProfile:
    """Return what is known of a model: its provider's ways, then the first row its name matches."""
    data = vendor(provider)
    name = model.rsplit("/", 1)[-1].lower()
    row = next((row for pattern, row in data.models if re.fullmatch(pattern, name)), {})
    profile = dataclasses.replace(ModelProfile(), **{**data.changes, **row})
    known = profile.context_window is not None
    return dataclasses.replace(profile, window_source="catalogue") if known else profile
