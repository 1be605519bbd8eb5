"""What is known of providers and their models, as data; later rows fill in, none overrides code.

Windows and limits are the providers' published numbers; where a name has had several, the smallest,
because too small a window costs a compaction and too large a one a refused call. A model whose
numbers are not published has none here; a server that states them is asked (`discovery`).
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
_DATED = r"(-\d{4}-\d\d-\d\d)?"

_FIXED_SAMPLING = {"option_names": {"temperature": None, "top_p": None}}
"""Reasoning models refuse to be told how to sample."""

_ONE_BY_ONE = {"option_names": {"temperature": None, "top_p": None, "parallel_tool_calls": None}}

_GPT_5: Changes = {**_IMAGES_PDF, **_O200K, **_DEVELOPER}

_OPENAI_MODELS: tuple[tuple[str, Changes], ...] = (
    (r"gpt-5[\w.-]*chat.*", {**_sizes(128_000, 16_384), **_IMAGES_PDF, **_O200K}),
    (rf"gpt-5\.[45](-pro)?{_DATED}", {**_sizes(1_050_000, 128_000), **_GPT_5}),
    (
        rf"gpt-5(-mini|-nano|-pro|-codex)?{_DATED}",
        {
            **_sizes(400_000, 128_000, max_input_tokens=272_000),
            **_GPT_5,
            **_FIXED_SAMPLING,
        },
    ),
    (
        rf"gpt-5\.[123](-pro|-codex[\w-]*)?{_DATED}",
        {**_sizes(400_000, 128_000, max_input_tokens=272_000), **_GPT_5},
    ),
    (r"gpt-5.*", _GPT_5),
    (r"gpt-4\.1.*", {**_sizes(1_047_576, 32_768), **_IMAGES_PDF, **_O200K}),
    (r"gpt-4o.*audio.*", {**_sizes(128_000, 16_384), **_AUDIO, **_O200K}),
    (r"(chatgpt-|gpt-)4o.*", {**_sizes(128_000, 16_384), **_IMAGES_PDF, **_O200K}),
    (
        r"o1-mini.*",
        {**_sizes(128_000, 65_536), **_O200K, **_ONE_BY_ONE, "system_role": "user"},
    ),
    (
        r"o1-preview.*",
        {**_sizes(128_000, 32_768), **_O200K, **_ONE_BY_ONE, "system_role": "user"},
    ),
    (
        rf"(o1|o1-pro|o3|o3-mini|o3-pro|o4-mini){_DATED}",
        {**_sizes(200_000, 100_000), **_IMAGES_PDF, **_O200K, **_DEVELOPER, **_ONE_BY_ONE},
    ),
    (r"o\d.*", {**_IMAGES_PDF, **_O200K, **_DEVELOPER, **_ONE_BY_ONE}),
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

_OPENAI = {
    **_JSON,
    "max_tokens_field": "max_completion_tokens",
    "call_id_style": "short",
}

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

_REASONING = {"reasoning_field": "reasoning"}
_WORDS = {"tool_choice": "words"}

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
    "vllm": Vendor({**_JSON, **_REASONING}, _LOCAL_MODELS),
    "ollama": Vendor(
        {**_JSON, **_REASONING, **_WORDS}, _LOCAL_MODELS, ("ollama.com",), window_at="ollama"
    ),
    "llama.cpp": Vendor({**_JSON, **_WORDS}, _LOCAL_MODELS, window_at="props"),
    "lm-studio": Vendor(
        {**_JSON, **_WORDS, "json_object": False}, _LOCAL_MODELS, window_at="lm-studio"
    ),
    "deepseek": Vendor(
        {"response_format": "json_object", "replay_reasoning": "always", "tool_choice": "none"},
        (
            (r"deepseek-v4-(flash|pro)", _sizes(1_000_000, 384_000)),
            (r"deepseek-reasoner", _sizes(128_000, 65_536)),
            (
                r"deepseek-chat",
                {**_sizes(128_000, 8_192), "replay_reasoning": "never", "tool_choice": "all"},
            ),
        ),
        ("api.deepseek.com",),
    ),
    "openrouter": Vendor({**_JSON, **_IMAGES, **_REASONING}, (), ("openrouter.ai",)),
    "groq": Vendor(
        {
            **_REASONING,
            "max_tokens_field": "max_completion_tokens",
            "response_format": "json_object",
        },
        (
            (r"gpt-oss-.*", _JSON),
            *_LOCAL_MODELS,
        ),
        ("api.groq.com",),
    ),
    "together": Vendor(
        {**_JSON, **_REASONING}, _LOCAL_MODELS, ("api.together.xyz", "api.together.ai")
    ),
    "mistral": Vendor(
        {
            **_JSON,
            "stream_usage": False,
            "tool_name_field": True,
            "call_id_style": "alnum9",
            "reply_after_tools": True,
            "option_names": {"seed": "random_seed", "service_tier": None, "user": None},
        },
        ((r"(pixtral|mistral-(small|medium|large)).*", _IMAGES),),
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
