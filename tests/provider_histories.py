"""Hypothesis strategies for neutral histories that a repaired view may hold."""

from __future__ import annotations

import json
from typing import Any

from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import Message, ToolCall, assistant, system, tool_result, user
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.tool import ToolSpec
from hypothesis import strategies as st

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "\n", "é 你好 🌍", "trailing  ", "\ud83c", "\ud83c\udf0d", "\x00\u2028"]
    ),
    st.text(max_size=30),
)
NAMES = st.sampled_from(["add", "get_weather", "made up", "functions.add:0", ""])
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=5,
)
ARGS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
OUTCOMES = st.sampled_from(["ok", "error", "refused", "cancelled", "skipped", "unknown", None])
IMAGE = FilePart("image/png", data="aGk=")
IMAGE_URL = FilePart("image/*", url="https://h/a.png", detail="low")
PARTS = st.lists(
    st.one_of(TEXTS.map(TextPart), st.just(IMAGE), st.just(IMAGE_URL)), max_size=3
).map(tuple)
TOOLS = (
    ToolSpec("add", "Add numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}}),
    ToolSpec("client_tool", "From a client.", {}),
)


@st.composite
def calls(draw: st.DrawFn, first: int) -> list[ToolCall]:
    """Draw up to three calls with ids of their own, some of them invalid."""
    made = []
    for n in range(draw(st.integers(1, 3))):
        call_id, name = f"call:{first + n}.x", draw(NAMES)
        if draw(st.integers(0, 3)) == 0:
            raw = draw(st.sampled_from(['{"a":', "[1]", "NaN", "text", ""]))
            made.append(ToolCall(call_id, name, None, raw))
            continue
        args: dict[str, Any] = draw(ARGS)
        raw_text = draw(st.one_of(st.none(), st.just(json.dumps(args, indent=1))))
        made.append(ToolCall(call_id, name, args, raw_text))
    return made


@st.composite
def groups(draw: st.DrawFn, first: int) -> list[Message]:
    """Draw an assistant message with calls, and their results in order."""
    made = draw(calls(first))
    message = assistant(draw(st.one_of(st.none(), TEXTS)), made)
    results = [
        tool_result(call.id, call.name, draw(TEXTS)).replace(
            outcome=draw(OUTCOMES), writes={"s": 1}
        )
        for call in made
    ]
    return [_thinking(draw, message), *results]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Draw a well-formed history: texts, parts, reasoning, groups, system messages anywhere."""
    out: list[Message] = []
    for n in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["user", "parts", "assistant", "group", "system", "rewritten"]))
        if kind == "user":
            out.append(user(draw(TEXTS), f"m{n}"))
        elif kind == "parts":
            out.append(user(draw(PARTS), f"m{n}"))
        elif kind == "rewritten":
            question = user("asked").replace(model_content=draw(TEXTS), rewritten_by=("retrieval",))
            out.append(question)
        elif kind == "system":
            out.append(system(draw(TEXTS)))
        elif kind == "assistant":
            said = assistant(draw(TEXTS)).replace(incomplete=draw(st.booleans()))
            out.append(_thinking(draw, said))
        else:
            out += draw(groups(10 * n))
    return [*out, user(draw(TEXTS))]


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    """Draw a request: a history, system texts, tools and a choice."""
    return ModelRequest(
        tuple(draw(histories())),
        tuple(draw(st.lists(TEXTS, max_size=2))),
        draw(st.sampled_from([(), TOOLS])),
        draw(st.sampled_from(["auto", "none", "required"])),
    )


def _thinking(draw: st.DrawFn, message: Message) -> Message:
    return message.replace(reasoning=draw(st.one_of(st.none(), TEXTS)))
