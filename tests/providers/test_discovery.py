"""Asking a server for a model's window."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.model import ModelProfile
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.demo import DemoModel
from backscroll.providers.discovery import learn_window
from backscroll.providers.openai import OpenAIModel
from scripted_provider import ScriptedProvider


def listed(**fields: Any) -> dict[str, Any]:
    """Make a list of models with one that is ours."""
    return {"data": [{"id": "other", "context_length": 1}, {"id": "m", **fields}]}


async def learned(provider: ScriptedProvider, kind: str, **options: Any) -> tuple[Any, str]:
    """Return window and source that a model of this kind of server has learned."""
    model = OpenAIModel("m", base_url=provider.base_url, provider=kind, trust_env=False, **options)
    await learn_window(model)
    await model.aclose()
    return model.profile.context_window, model.profile.window_source


@pytest.mark.parametrize(
    ("kind", "path", "answer", "window", "source"),
    [
        ("vllm", "/v1/models", listed(max_model_len=4096), 4096, "/v1/models"),
        ("openrouter", "/v1/models", listed(context_length=65536), 65536, "/v1/models"),
        ("groq", "/v1/models", listed(context_window=131072), 131072, "/v1/models"),
        ("together", "/v1/models", listed(context_length=8192)["data"], 8192, "/v1/models"),
        ("generic", "/v1/models", listed(max_model_len=True), None, "unknown"),
        ("generic", "/v1/models", {"data": [3]}, None, "unknown"),
        ("llama.cpp", "/props", {"default_generation_settings": {"n_ctx": 2048}}, 2048, "/props"),
        ("llama.cpp", "/props", {"default_generation_settings": None}, None, "unknown"),
        (
            "lm-studio",
            "/api/v0/models",
            listed(max_context_length=32768, loaded_context_length=4096),
            4096,
            "/api/v0/models",
        ),
        ("lm-studio", "/api/v0/models", [], None, "unknown"),
        (
            "ollama",
            "/api/show",
            {"parameters": "stop x\nnum_ctx 8192", "model_info": {"llama.context_length": 131072}},
            8192,
            "/api/show num_ctx",
        ),
        (
            "ollama",
            "/api/show",
            {"model_info": {"llama.block_count": 4, "llama.context_length": 131072}},
            131072,
            "/api/show, the model's maximum",
        ),
        (
            "ollama",
            "/api/ps",
            {"models": [{"name": "x:latest", "context_length": 1},
                        {"name": "m:latest", "context_length": 4096}]},
            4096,
            "/api/ps",
        ),
        ("ollama", "/api/ps", {"models": None}, None, "unknown"),
        ("ollama", "/api/show", {"model_info": None}, None, "unknown"),
        ("ollama", "/api/show", [], None, "unknown"),
    ],
)  # fmt: skip
async def test_a_window_is_learned_with_its_source(
    provider: ScriptedProvider, kind: str, path: str, answer: Any, window: Any, source: str
) -> None:
    """Each kind of server is asked in its own way, and the source is recorded."""
    provider.configure(routes={path: (200, answer)})

    assert await learned(provider, kind) == (window, source)


async def test_a_known_window_is_not_asked_for(provider: ScriptedProvider) -> None:
    """What the developer or the catalog says stands."""
    provider.configure(routes={"/v1/models": (200, listed(max_model_len=4096))})
    profile = ModelProfile(context_window=7, window_source="configured")

    assert await learned(provider, "vllm", profile=profile) == (7, "configured")


@pytest.mark.parametrize("answer", [(500, "broken"), (200, "not JSON"), (401, {"error": "key"})])
async def test_a_server_that_cannot_be_asked_changes_nothing(
    provider: ScriptedProvider, answer: Any
) -> None:
    """Discovery never raises."""
    provider.configure(routes={"/v1/models": answer})

    assert await learned(provider, "vllm") == (None, "unknown")


async def test_a_model_of_the_messages_wire_is_asked_for_as_well(
    provider: ScriptedProvider,
) -> None:
    """The same servers are behind both wires; Anthropic states what a prompt may hold."""
    listed = {"data": [{"type": "model", "id": "new-model", "max_input_tokens": 500_000}]}
    provider.configure(routes={"/v1/models": (200, listed)})
    model = AnthropicModel("new-model", base_url=provider.url, api_key="k", trust_env=False)

    await learn_window(model)
    await model.aclose()

    found = (model.profile.context_window, model.profile.window_source)
    assert found == (500_000, "/v1/models")


async def test_a_server_that_is_away_is_asked_once(provider: ScriptedProvider) -> None:
    """A refusal of the first question leaves the second; a server that is down gets none."""
    show = (200, {"parameters": "num_ctx 8192"})
    provider.configure(routes={"/api/ps": (503, "loading"), "/api/show": show})
    down = await learned(provider, "ollama")
    provider.configure(routes={"/api/ps": (404, "no such route"), "/api/show": show})

    assert down == (None, "unknown")
    assert await learned(provider, "ollama") == (8192, "/api/show num_ctx")


async def test_other_models_are_left_alone() -> None:
    """A model without an endpoint stays as it is."""
    model = DemoModel()

    await learn_window(model)

    assert model.profile.context_window == 6000
