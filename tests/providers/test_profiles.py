"""What is known of providers and models."""

from __future__ import annotations

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ModelProfile
from backscroll.providers.profiles import VENDORS, profile_for, provider_at, vendor


@pytest.mark.parametrize("provider", VENDORS)
def test_every_provider_has_a_profile_for_an_unknown_model(provider: str) -> None:
    """An unknown model gets its provider's ways and no invented window."""
    profile = profile_for(provider, "some-new-model")

    assert isinstance(profile, ModelProfile)
    assert (profile.context_window, profile.window_source) == (None, "unknown")


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("gpt-4o-mini", 128_000, 16_384),
        ("gpt-4.1", 1_047_576, 32_768),
        ("gpt-4", 8_192, 8_192),
        ("gpt-4-turbo", 128_000, 4_096),
        ("gpt-3.5-turbo", 16_385, 4_096),
        ("o3-mini", 200_000, 100_000),
        ("gpt-5-mini", 400_000, 128_000),
        ("gpt-5-2025-08-07", 400_000, 128_000),
        ("gpt-5.2-codex", 400_000, 128_000),
        ("gpt-5.4", 1_050_000, 128_000),
        ("gpt-5.4-pro-2026-03-05", 1_050_000, 128_000),
        ("gpt-5-chat-latest", 128_000, 16_384),
        ("o1-mini", 128_000, 65_536),
        ("o1-preview-2024-09-12", 128_000, 32_768),
        ("o1", 200_000, 100_000),
    ],
)
def test_known_models_have_their_published_sizes(model: str, window: int, output: int) -> None:
    """The catalog states window and output, and that it is the catalog that says so."""
    profile = profile_for("openai", model)

    assert (profile.context_window, profile.max_output_tokens) == (window, output)
    assert profile.window_source == "catalogue"


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("claude-opus-4-6", 1_000_000, 64_000),
        ("claude-sonnet-5", 1_000_000, 64_000),
        ("claude-sonnet-4-5-20250929", 200_000, 64_000),
        ("claude-haiku-4-5", 200_000, 64_000),
        ("claude-sonnet-4-20250514", 200_000, 64_000),
        ("claude-opus-4-1-20250805", 200_000, 32_000),
        ("claude-3-5-haiku-latest", 200_000, 8_192),
        ("claude-3-opus-20240229", 200_000, 4_096),
    ],
)
def test_windows_of_the_messages_wire(model: str, window: int, output: int) -> None:
    """A million tokens from the generations that have them on, 200,000 before."""
    profile = profile_for("anthropic", model)

    assert (profile.context_window, profile.max_output_tokens) == (window, output)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("generic", "m"),
        ("openai", "gpt-5.4-mini"),
        ("openai", "gpt-7"),
        ("openai", "o9"),
        ("mistral", "mistral-large-latest"),
        ("deepseek", "deepseek-v5"),
    ],
)
def test_an_unknown_window_says_so(provider: str, model: str) -> None:
    """A model whose numbers were not published when this was written has none."""
    profile = profile_for(provider, model)

    assert (profile.context_window, profile.window_source) == (None, "unknown")
    assert (profile.max_input_tokens, profile.max_output_tokens) == (None, None)


def test_new_models_of_a_family_have_its_ways() -> None:
    """What a family is like is known before its numbers are."""
    assert profile_for("openai", "gpt-5.9").system_role == "developer"
    assert profile_for("openai", "o9").option_names["temperature"] is None
    assert profile_for("mistral", "mistral-large-latest").accepts("image/png", "user") is None


def test_differences_between_providers_are_data() -> None:
    """OAI11: each provider's ways are fields of its profile."""
    mistral, openai = profile_for("mistral", "codestral"), profile_for("openai", "o3")

    assert (mistral.call_id_style, mistral.tool_name_field) == ("alnum9", True)
    assert not mistral.stream_usage
    assert (openai.max_tokens_field, openai.system_role) == ("max_completion_tokens", "developer")
    assert profile_for("deepseek", "deepseek-reasoner").replay_reasoning == "always"
    assert profile_for("deepseek", "deepseek-chat").replay_reasoning == "never"


def test_image_models_are_known_by_name() -> None:
    """A name that says vision takes images; another takes text."""
    sees = profile_for("ollama", "library/llava:13b")

    assert sees.accepts("image/png", "user") is None
    assert profile_for("ollama", "llama3.2").accepts("image/png", "user") is not None
    assert profile_for("openai", "gpt-4o").accepts("application/pdf", "user") is None


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"),
        ("mine.openai.azure.com", "azure"),
        ("api.groq.com", "groq"),
        ("openrouter.ai", "openrouter"),
        ("notopenrouter.ai", "generic"),
        ("127.0.0.1", "generic"),
    ],
)
def test_a_provider_is_known_by_its_host(host: str, provider: str) -> None:
    """A provider's own host names it; anything else is generic."""
    assert provider_at(host) == provider


def test_an_unknown_provider_is_refused() -> None:
    """The error lists the known ones."""
    with pytest.raises(AssemblyError, match=r"expected one of openai, azure.*got 'opanai'"):
        vendor("opanai")
