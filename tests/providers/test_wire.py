"""Writing bodies, and writing them again from what was recorded."""

from __future__ import annotations

import json

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, system, tool_call, tool_result, user
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest, Retry
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.providers import anthropic_request, openai_request
from backscroll.providers.wire import Encoder, WireConfig

ENCODERS = (openai_request.ENCODER, anthropic_request.ENCODER)
REQUEST = ModelRequest(
    (
        user(""),
        assistant(None, (tool_call("call_1", "t"),)).replace(reasoning="r"),
        tool_result("call_1", "t", ""),
        system("late"),
    ),
    ("first",),
    (ToolSpec("t", "d", {"type": "object", "properties": {}, "additionalProperties": False}),),
    options=ModelOptions(temperature=0.5),
)
PROFILE = ModelProfile(
    context_window=9,
    max_output_tokens=77,
    parts={"user": ("image/*",)},
    call_id_style="alnum9",
    replay_reasoning="always",
    strict_tools=True,
    system_role="developer",
    tool_name_field=True,
)
OPTIONS = ModelOptions(
    stop=("a", "b"),
    extra_body={"z": {"y": 1}},
    extra_headers={"x-key": "SECRET-123"},
    retry=Retry(),
    cache=Cache("stable", "1h", (1, 2)),
)
CONFIG = WireConfig("m", "mistral", OPTIONS)
TEXTS = Texts(empty_message="(none)", tool_empty="(void)")


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.wire)
def test_a_body_is_written_again_byte_for_byte(encoder: Encoder) -> None:
    """REC1: setup and request, both through JSON, give the bytes that were sent."""
    request = ModelRequest(REQUEST.messages, ("first",), REQUEST.tools, texts=TEXTS)
    again = ModelRequest(REQUEST.messages, ("first",), REQUEST.tools)

    stored = json.loads(json.dumps(encoder.setup(PROFILE, CONFIG, TEXTS)))

    for stream in (True, False):
        sent = encoder.encode(request, PROFILE, CONFIG, stream)
        assert b"(none)" in sent and b"(void)" in sent
        assert encoder.encode_from_setup(stored, again, stream) == sent


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.wire)
def test_a_setup_holds_no_secret_and_no_window(encoder: Encoder) -> None:
    """REC9: headers stay out; what does not change bytes does not change the setup."""
    setup = encoder.setup(PROFILE, CONFIG, TEXTS)

    assert "SECRET-123" not in json.dumps(setup)
    assert "context_window" not in json.dumps(setup) and "retry" not in setup["options"]
    assert (setup["wire"], setup["name"], setup["provider"]) == (encoder.wire, "m", "mistral")


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.wire)
def test_a_plain_setup_works(encoder: Encoder) -> None:
    """Without options and with the default texts the same holds."""
    plain = WireConfig("m", "p")

    setup = encoder.setup(ModelProfile(), plain, Texts())

    sent = encoder.encode(REQUEST, ModelProfile(), plain, False)
    assert encoder.encode_from_setup(setup, REQUEST, False) == sent


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_what_is_not_json_is_refused(value: object) -> None:
    """NaN and foreign objects are an invalid request that says why."""
    request = ModelRequest((user("q"),), options=ModelOptions(extra_body={"x": value}))

    with pytest.raises(ModelError, match="cannot be written as JSON") as raised:
        openai_request.ENCODER.encode(request, ModelProfile(), CONFIG, False)

    assert raised.value.kind == "invalid_request"
