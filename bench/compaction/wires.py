"""Whether a strict server of either wire takes a list of messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from backscroll.conversation.repair import repair
from backscroll.kernel.message import Message, Role
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.openai import OpenAIModel

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from provider_rules import Refused, Rules, check_openai  # the tests' own rules
from provider_rules_anthropic import check_anthropic

_PROFILE = ModelProfile(parts={"user": ("image/*",)})
_URL = "http://127.0.0.1:1/v1"
OPENAI = OpenAIModel("m", base_url=_URL, api_key="k", profile=_PROFILE)
ANTHROPIC = AnthropicModel("m", base_url=_URL, api_key="k", profile=_PROFILE)


def refusals(messages: Sequence[Message]) -> list[str]:
    """Return why strict servers refuse the list, a sentence for each wire that does."""
    request = ModelRequest(tuple(messages), ("Be brief.",))
    out: list[str] = []
    for model, check in ((OPENAI, check_openai), (ANTHROPIC, check_anthropic)):
        try:
            check(model.encode(request, False), Rules())
        except Refused as error:
            out.append(f"{model.provider}: {error}")
    return out


def broken_pairs(messages: Sequence[Message]) -> int:
    """Count results that no call before them asked for, and calls that no result answers."""
    waiting: list[str] = []
    wrong = 0
    for message in messages:
        if message.role is Role.TOOL:
            call_id = message.tool_call_id or ""
            wrong += call_id not in waiting
            waiting = [other for other in waiting if other != call_id]
        else:
            wrong += len(waiting)
            waiting = [call.id for call in message.tool_calls]
    return wrong + len(waiting)


def repaired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the list as the memory hands it to compaction."""
    return tuple(repair(list(messages), "No result.")[0])
