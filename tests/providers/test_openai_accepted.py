"""Any history a view can hold is accepted by a strict server, under every profile."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.providers.openai_request import ENCODER
from backscroll.providers.profiles import VENDORS, profile_for
from backscroll.providers.wire import WireConfig
from hypothesis import given, settings
from provider_histories import requests
from provider_kinds import KINDS
from provider_rules import Rules, check_openai

IMAGES = {"user": ("image/*",)}
PROFILES: dict[str, tuple[ModelProfile, Rules]] = {
    **{name: (profile_for(name, "m"), KINDS[name].rules) for name in VENDORS if name in KINDS},
    "deepseek thinking": (
        profile_for("deepseek", "deepseek-v4-pro"),
        KINDS["deepseek thinking"].rules,
    ),
    "strict template": (
        ModelProfile(alternate_roles=True, null_content=False),
        Rules(alternate=True),
    ),
    "no system role": (
        ModelProfile(alternate_roles=True, system_role="user"),
        Rules(alternate=True),
    ),
    "reasoning demanded": (ModelProfile(replay_reasoning="tool_calls"), Rules(reasoning="demand")),
    "reasoning refused": (ModelProfile(), Rules(reasoning="refuse")),
}


@pytest.mark.parametrize("name", PROFILES)
@given(request=requests())
@settings(max_examples=60, deadline=None)
def test_any_history_is_accepted(name: str, request: ModelRequest) -> None:
    """Property: whatever the history holds, the body keeps every rule of a strict server."""
    profile, rules = PROFILES[name]
    profile = replace(profile, parts=IMAGES)

    for stream in (False, True):
        body = ENCODER.encode(request, profile, WireConfig("m", name), stream)
        check_openai(body, rules)


@given(request=requests())
@settings(max_examples=60, deadline=None)
def test_any_body_is_written_again(request: ModelRequest) -> None:
    """REC1: from setup and request the same bytes come out, whatever the history holds."""
    profile, config = ModelProfile(parts=IMAGES, replay_reasoning="always"), WireConfig("m", "p")
    setup = json.loads(json.dumps(ENCODER.setup(profile, config, request.texts)))

    again = ENCODER.encode_from_setup(setup, request, True)

    assert again == ENCODER.encode(request, profile, config, True)
