"""Models by name."""

from __future__ import annotations

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.catalog import resolve
from backscroll.providers.demo import DemoModel
from backscroll.providers.openai import OpenAIModel


def test_demo_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`demo` is the demo model, without key or network."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    assert isinstance(resolve("demo"), DemoModel)


def test_an_openai_model_comes_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`openai:NAME` uses the environment; the name may hold colons."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    model = resolve("openai:llama3.2:3b")

    assert isinstance(model, OpenAIModel)
    assert model.name == "llama3.2:3b"


def test_an_anthropic_model_comes_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`anthropic:NAME` uses the environment."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "KEY-PROV-789")

    model = resolve("anthropic:claude-sonnet-4-5")

    assert isinstance(model, AnthropicModel)
    assert model.profile.context_window == 200_000


@pytest.mark.parametrize("name", ["", "opanai:m", "openai", "demo:x"])
def test_an_unknown_name_says_what_is_expected(name: str) -> None:
    """The error lists the forms a name can have, and what was got."""
    with pytest.raises(
        AssemblyError, match="expected one of openai:NAME, anthropic:NAME, demo, got"
    ) as raised:
        resolve(name)

    assert raised.value.kind == "invalid_option"


def test_a_name_may_not_be_empty() -> None:
    """`openai:` names no model."""
    with pytest.raises(AssemblyError, match="expected a name after the colon"):
        resolve("openai:")
