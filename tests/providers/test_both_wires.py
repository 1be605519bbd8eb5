"""One neutral history on two wires: any of it is accepted, and nothing replayable is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from backscroll.conversation.parts import fit
from backscroll.conversation.repair import repair
from backscroll.kernel.message import Message, tool_result, user
from backscroll.kernel.model import Finished, ModelOptions, ModelRequest
from backscroll.providers.anthropic_stream import StreamReader as AnthropicReader
from backscroll.providers.failures import Source
from backscroll.providers.openai_stream import StreamReader as OpenAIReader
from backscroll.providers.sse import SseParser
from backscroll.providers.wires import encode_from_setup
from conversation.histories import random_histories
from hypothesis import given, settings
from hypothesis import strategies as st
from provider_histories import TOOLS, any_requests
from provider_script import Call, Form, Reply, openai_events
from provider_script_anthropic import anthropic_events, sign
from strict_wires import MODELS, sent

WIRES = pytest.mark.parametrize("wire", list(MODELS))
NO_RESULT = "No result of this call is on record."
IDS = (f"minted_{n}" for n in count())


def heard(wire: str, reply: Reply, size: int = 7) -> Message:
    """Return a reply that was streamed over a wire in pieces of some bytes, from the store."""
    if wire == "anthropic":
        usage = {"input_tokens": 1, "output_tokens": 1}
        events = anthropic_events(reply, "m", usage)
        reader: Any = AnthropicReader(Source("anthropic"), lambda: next(IDS), "broke")
    else:
        events = openai_events(reply, "m", None, Form())
        reader = OpenAIReader(Source("generic"), ("add",), lambda: next(IDS), "broke")
    raw = "".join(map(str, events)).encode()
    parser = SseParser()
    for start in range(0, len(raw), size):
        for data in parser.feed(raw[start : start + size]):
            if data != "[DONE]" or wire == "openai":
                reader.feed(data)
    last = reader.finish()[-1]
    assert isinstance(last, Finished)
    return Message.from_dict(json.loads(json.dumps(last.response.message.to_dict())))


@WIRES
@given(request=any_requests())
@settings(max_examples=150, deadline=None)
def test_any_request_is_accepted(wire: str, request: ModelRequest) -> None:
    """MSG3, REQ8: parts, blocks, reasoning and options of any vendor; nothing of ours goes out."""
    sent(wire, request)


@WIRES
@given(request=any_requests())
@settings(max_examples=60, deadline=None)
def test_any_body_is_written_again(wire: str, request: ModelRequest) -> None:
    """REC1: from setup and request the same bytes come out, whatever the options."""
    model = MODELS[wire]
    messages, _ = fit(request.messages, model, "[{media_type} not shown]")
    request = replace(request, messages=tuple(messages))
    setup = json.loads(json.dumps(model.setup(request.texts)))

    assert encode_from_setup(setup, request, True) == model.encode(request, True)


@WIRES
@given(history=random_histories(), thinks=st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_repaired_history_is_accepted(wire: str, history: Any, thinks: bool) -> None:
    """wire-anthropic-05: whatever is missing, doubled or misplaced, its repair is accepted."""
    view, _ = repair([*history, user("and now?")], NO_RESULT)
    options = ModelOptions(thinking={"type": "enabled", "budget_tokens": 2_000} if thinks else None)

    body = sent(wire, ModelRequest(tuple(view), tools=TOOLS, options=options))

    asked = [m.content for m in history if m.role == "user"]
    assert all(str(text) in json.dumps(body) for text in asked)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=25)
ARGS = st.one_of(
    st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.none()), max_size=3),
    st.just('{ "a" : 1,\n "b":"é 🌍" }'),
)


@st.composite
def played(draw: st.DrawFn, names: Iterator[int]) -> Reply:
    """Draw a reply that says, thinks or calls something."""
    made = tuple(
        Call("add", draw(ARGS), f"call_{next(names)}") for _ in range(draw(st.integers(0, 3)))
    )
    return Reply(text=draw(TEXT) or "x", reasoning=draw(TEXT), calls=made)


REPLIES = st.builds(count).flatmap(lambda names: st.lists(played(names), min_size=1, max_size=5))


def results(message: Message) -> list[Message]:
    """Return a result for each call, in the wrong order."""
    return [tool_result(c.id, c.name, f"result of {c.id}") for c in reversed(message.tool_calls)]


@given(st.builds(count).flatmap(played), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_a_reply_over_messages_goes_back_whole(reply: Reply, size: int) -> None:
    """Property: thought, signature, text and inputs return as they came, however they were cut."""
    message = heard("anthropic", reply, size)

    body = sent("anthropic", ModelRequest((user("q"), message, *results(message), user("r"))))

    thought = {"type": "thinking", "thinking": reply.reasoning, "signature": sign(reply.reasoning)}
    uses = [
        {"type": "tool_use", "id": call.id, "name": "add", "input": json.loads(call.text)}
        for call in reply.calls
    ]
    said = [{"type": "text", "text": reply.text}] if reply.text.strip() else []
    expected = [*([thought] if reply.reasoning else []), *said, *uses]
    if said or uses:
        assert json.dumps(body["messages"][1]["content"]) == json.dumps(expected)


@given(st.builds(count).flatmap(played), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_a_reply_over_completions_goes_back_whole(reply: Reply, size: int) -> None:
    """Property: text, reasoning and argument texts return as they came, however they were cut."""
    message = heard("openai", reply, size)

    body = sent("openai", ModelRequest((user("q"), message, *results(message), user("r"))))

    if not reply.calls and not reply.text.strip():
        return
    back = body["messages"][1]
    assert back["reasoning_content"] == reply.reasoning
    assert back["content"] == (reply.text if reply.text.strip() else None)
    given_args = [(call.id, call.text) for call in reply.calls]
    made = [(c["id"], c["function"]["arguments"]) for c in back.get("tool_calls", ())]
    assert [i for i, _ in made] == [i for i, _ in given_args]
    for (_, there), (_, came) in zip(made, given_args, strict=True):
        assert json.loads(there) == json.loads(came)
        assert there == came or json.dumps(json.loads(came)) == came


@given(REPLIES, st.data())
@settings(max_examples=40, deadline=None)
def test_a_thread_goes_on_with_the_other_vendor(replies: Sequence[Reply], data: Any) -> None:
    """Property: whichever wire spoke before, at every message each of them takes the thread."""
    thread: list[Message] = [user("q")]
    options = ModelOptions(thinking={"type": "enabled", "budget_tokens": 2_000})
    for n, reply in enumerate(replies):
        wire = data.draw(st.sampled_from(list(MODELS)))
        message = heard(wire, reply)
        thread += [message, *results(message), *([] if message.tool_calls else [user(f"and {n}?")])]
        request = ModelRequest(tuple(thread), tools=TOOLS, options=options)
        for other in MODELS:
            body = json.dumps(sent(other, request), ensure_ascii=False)
            spoken = [m.text for m in thread if m.text.strip()]
            assert all(json.dumps(text, ensure_ascii=False)[1:-1] in body for text in spoken)


PROGRAM = """
import sys
from backscroll.kernel.message import assistant, tool_call, tool_result, user
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.{wire}_request import ENCODER
from backscroll.providers.wire import WireConfig
calls = (tool_call("c1", "add", {{"b": 2, "a": 1}}),)
messages = (user("hé"), assistant(None, calls), tool_result("c1", "add", {{"z": 1, "y": [2]}}))
tools = (ToolSpec("add", "d", {{"type": "object", "properties": {{"z": {{}}, "a": {{}}}}}}),)
request = ModelRequest(messages, ("s",), tools, options=ModelOptions(temperature=0.1))
profile = ModelProfile(call_id_style="alnum9", strict_tools=True)
sys.stdout.buffer.write(ENCODER.encode(request, profile, WireConfig("m", "p"), True))
"""


@WIRES
def test_two_processes_write_the_same_bytes(wire: str) -> None:
    """MOD5: equal input gives equal bytes, whatever the hash seed."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM.format(wire=wire)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]

    assert runs[0] == runs[1]
    assert json.loads(runs[0])["temperature"] == 0.1
