"""Any history a view can hold is accepted by a strict messages server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.kernel.message import Message, tool_result, user
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest
from backscroll.providers.anthropic_request import ENCODER
from backscroll.providers.anthropic_response import read_response
from backscroll.providers.failures import Source
from backscroll.providers.wire import WireConfig
from hypothesis import given, settings
from hypothesis import strategies as st
from provider_histories import TOOLS, requests
from provider_rules import Rules
from provider_rules_anthropic import check_anthropic
from provider_script_anthropic import sign

IMAGES = {"user": ("image/*",)}
CONFIG = WireConfig("m", "anthropic")


@pytest.mark.parametrize("as_text", [False, True])
@given(request=requests())
@settings(max_examples=120, deadline=None)
def test_any_history_is_accepted(as_text: bool, request: ModelRequest) -> None:
    """Property: whatever the history holds, the body keeps every rule of a strict server."""
    profile = ModelProfile(parts=IMAGES, tools_with_history=as_text)
    rules = Rules(tools_with_history=as_text)

    for stream in (False, True):
        check_anthropic(ENCODER.encode(request, profile, CONFIG, stream), rules)


@given(request=requests(), at=st.lists(st.integers(0, 20), max_size=6))
@settings(max_examples=60, deadline=None)
def test_marks_are_accepted_and_written_again(request: ModelRequest, at: list[int]) -> None:
    """Property: marks anywhere keep the rules; from a setup the same bytes come out (REC1)."""
    config = WireConfig("m", "anthropic", ModelOptions(cache=Cache("stable", "1h", tuple(at))))
    profile = ModelProfile(parts=IMAGES)
    setup = json.loads(json.dumps(ENCODER.setup(profile, config, request.texts)))

    body = ENCODER.encode(request, profile, config, True)

    check_anthropic(body, Rules())
    assert ENCODER.encode_from_setup(setup, request, True) == body


WORDS = st.text(min_size=1, max_size=20).filter(
    lambda text: text.strip() == text and "\ud800" > max(text)
)
BLOCKS = st.one_of(
    st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": sign(t)}, WORDS),
    st.builds(lambda d: {"type": "redacted_thinking", "data": d}, WORDS),
)


@given(st.lists(BLOCKS, min_size=1, max_size=3), WORDS, st.dictionaries(WORDS, WORDS, max_size=3))
@settings(max_examples=100, deadline=None)
def test_a_reply_goes_back_as_it_came(blocks: list[Any], text: str, args: Any) -> None:
    """Property: response, neutral message, store, request keep every replayable byte."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": args}
    content = [*blocks, {"type": "text", "text": text, "citations": None}, use]
    reply = read_response({"content": content}, Source("anthropic"), str).message

    stored = Message.from_dict(json.loads(json.dumps(reply.to_dict())))
    request = ModelRequest((user("q"), stored, tool_result("toolu_1", "add", "r")), tools=TOOLS)
    body = check_anthropic(ENCODER.encode(request, ModelProfile(), CONFIG, True), Rules())

    assert json.dumps(body["messages"][1]["content"]) == json.dumps(content)
