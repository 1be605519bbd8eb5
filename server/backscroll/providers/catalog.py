"""Models by name: what `openai:NAME`, `anthropic:NAME` and `demo` stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ChatModel
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.demo import DemoModel
from backscroll.providers.openai import OpenAIModel

_MAKERS: Mapping[str, Callable[[str], ChatModel]] = {
    "openai": OpenAIModel,
    "anthropic": AnthropicModel,
}

_EXPECTED = ", ".join([*(f"{name}:NAME" for name in _MAKERS), "demo"])


def resolve(name: str) -> ChatModel:
    """Return the model a name stands for; raises `invalid_option` saying what is missing."""
    if name == "demo":
        return DemoModel()
    kind, colon, model = name.partition(":")
    if kind not in _MAKERS or not colon:
        message = f"model: expected one of {_EXPECTED}, got {name!r}"
        raise AssemblyError("invalid_option", message, "model")
    if not model:
        message = f"model: expected a name after the colon, as in {kind}:NAME, got {name!r}"
        raise AssemblyError("invalid_option", message, "model")
    return _MAKERS[kind](model)
