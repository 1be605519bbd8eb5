"""Requests as the strict servers of both wires judge them, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from backscroll.conversation.parts import fit
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.http_model import HttpModel
from backscroll.providers.openai import OpenAIModel
from provider_rules import Refused, Rules, check_openai
from provider_rules_anthropic import check_anthropic

PROFILE = ModelProfile(
    parts={"user": ("image/*", "application/pdf", "audio/wav"), "tool": ("image/*",)},
    replay_reasoning="always",
    response_format="json_schema",
)
OPENAI = OpenAIModel("m", base_url="http://h/v1", provider="generic", profile=PROFILE)
ANTHROPIC = AnthropicModel("m", base_url="http://h", profile=PROFILE)
MODELS: dict[str, HttpModel] = {"openai": OPENAI, "anthropic": ANTHROPIC}


def sent(wire: str, request: ModelRequest, rules: Rules | None = None) -> Any:
    """Return the body of a request as a strict server read it, parts it cannot take replaced.

    Raises Refused, as the server would refuse it.
    """
    model = MODELS[wire]
    messages, _ = fit(request.messages, model, "[{media_type} not shown]")
    check = check_anthropic if wire == "anthropic" else check_openai
    body = model.encode(replace(request, messages=tuple(messages)), True)
    return check(body, rules or Rules())


def is_accepted(wire: str, messages: Sequence[Message]) -> bool:
    """Say whether the server of a wire takes a list, whatever its signatures were made of."""
    try:
        sent(wire, ModelRequest(tuple(messages)), Rules(signed=False))
    except Refused:
        return False
    return True


def check_both(messages: Sequence[Message]) -> None:
    """Fail with the sentence of the server that refuses a list."""
    for wire in MODELS:
        sent(wire, ModelRequest(tuple(messages)))
