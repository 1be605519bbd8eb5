"""Writing a body again from what was recorded."""

from __future__ import annotations

import json

from backscroll.kernel.message import assistant, system, tool_call, tool_result, user
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, Retry
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_request import WireConfig, encode
from backscroll.providers.openai_setup import encode_from_setup, setup_of

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
)
CONFIG = WireConfig("m", "mistral", OPTIONS)
TEXTS = Texts(empty_message="(none)", tool_empty="(void)")


def test_a_body_is_written_again_byte_for_byte() -> None:
    """REC1: setup and request, both through JSON, give the bytes that were sent."""
    request = ModelRequest(REQUEST.messages, ("first",), REQUEST.tools, texts=TEXTS)

    stored = json.loads(json.dumps(setup_of(PROFILE, CONFIG, TEXTS)))
    again = ModelRequest(REQUEST.messages, ("first",), REQUEST.tools)

    for stream in (True, False):
        sent = encode(request, PROFILE, CONFIG, stream)
        assert b"(none)" in sent and b"(void)" in sent
        assert encode_from_setup(stored, again, stream) == sent


def test_a_setup_holds_no_secret_and_no_window() -> None:
    """REC9: headers stay out; what does not change bytes does not change the setup."""
    setup = setup_of(PROFILE, CONFIG, TEXTS)

    assert "SECRET-123" not in json.dumps(setup)
    assert "context_window" not in json.dumps(setup) and "retry" not in setup["options"]
    assert (setup["wire"], setup["name"], setup["provider"]) == ("openai-chat/1", "m", "mistral")


def test_a_plain_setup_works() -> None:
    """Without options and with the default texts the same holds."""
    plain = WireConfig("m")

    setup = setup_of(ModelProfile(), plain, Texts())

    assert encode_from_setup(setup, REQUEST, False) == encode(REQUEST, ModelProfile(), plain, False)
