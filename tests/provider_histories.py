"""Hypothesis strategies for neutral histories that a repaired view may hold."""

from __future__ import annotations

import json
from typing import Any

from backscroll.kernel.content import FilePart, TextPart, VendorPart
from backscroll.kernel.message import (
    Blocks,
    Message,
    ToolCall,
    assistant,
    system,
    tool_result,
    user,
)
from backscroll.kernel.model import Cache, ModelOptions, ModelRequest, Named
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.anthropic_messages import FORMAT
from hypothesis import strategies as st
from provider_script_anthropic import sign

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
ANY_PARTS = st.lists(
    st.one_of(
        TEXTS.map(TextPart),
        st.sampled_from(
            [
                IMAGE,
                IMAGE_URL,
                FilePart("image/jpg", data="aGk="),
                FilePart("image/svg+xml", data="aGk="),
                FilePart("application/pdf", data="aGk=", filename="a.pdf"),
                FilePart("application/pdf", url="https://h/a.pdf"),
                FilePart("audio/wav", data="aGk="),
                FilePart("video/mp4", url="https://h/a.mp4"),
                FilePart("image/png", handle="file_1", provider="anthropic"),
                VendorPart("elsewhere", {"type": "thing"}),
            ]
        ),
    ),
    max_size=4,
).map(tuple)
ANSWER = {
    "name": "answer",
    "schema": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": ["string", "null"]}},
    },
}
OPTIONS = st.builds(
    ModelOptions,
    max_output_tokens=st.sampled_from([None, 500, 1_200, 9_000]),
    temperature=st.sampled_from([None, 0, 1]),
    top_p=st.sampled_from([None, 0.5, 1]),
    stop=st.sampled_from([None, ("\n",), ("END", " ")]),
    thinking=st.sampled_from(
        [
            None,
            {"type": "enabled", "budget_tokens": 1_024},
            {"type": "enabled", "budget_tokens": 8_000},
            {"type": "adaptive"},
            {"type": "disabled"},
        ]
    ),
    parallel_tool_calls=st.sampled_from([None, False]),
    response_format=st.sampled_from([None, {"type": "json_schema", "json_schema": ANSWER}]),
    cache=st.one_of(
        st.none(),
        st.builds(
            Cache,
            st.sampled_from(["conversation", "tool_results", "stable"]),
            at=st.lists(st.integers(0, 20), max_size=4).map(tuple),
        ),
    ),
)
TOOLS = (
    ToolSpec("add", "Add numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}}),
    ToolSpec("client_tool", "From a client.", {}),
    ToolSpec(
        "either",
        "One of two.",
        {"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}, {}]},
    ),
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
def replies(draw: st.DrawFn, first: int) -> list[Message]:
    """Draw a reply with its provider's own blocks, broken off or not, and its results."""
    made = draw(st.one_of(st.just([]), calls(first)))
    text = draw(TEXTS)
    thought = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    blocks: list[Any] = [{"type": "thinking", "thinking": thought, "signature": sign(thought)}]
    blocks += [{"type": "redacted_thinking", "data": "x"}] * draw(st.integers(0, 1))
    blocks += [{"type": "text", "text": text}] * draw(st.integers(0, 1))
    blocks += [
        {"type": "tool_use", "id": c.id, "name": "add", "input": dict(c.args or {})} for c in made
    ]
    source = draw(st.sampled_from(["anthropic", "anthropic", "gateway"]))
    message = assistant(text or None, made).replace(
        reasoning=thought or None,
        blocks=Blocks(FORMAT, tuple(blocks), source),
        incomplete=not made and draw(st.booleans()),
    )
    seen = st.one_of(TEXTS, ANY_PARTS)
    return [message, *(tool_result(call.id, call.name, draw(seen)) for call in made)]


@st.composite
def any_requests(draw: st.DrawFn) -> ModelRequest:
    """Draw a request as no single vendor could have caused it: any part, any blocks, any option."""
    out: list[Message] = [user(draw(ANY_PARTS))]
    for n in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["parts", "reply", "reply", "group", "assistant"]))
        if kind == "parts":
            out.append(user(draw(ANY_PARTS)))
        elif kind == "reply":
            out += draw(replies(10 * n))
        elif kind == "group":
            out += draw(groups(10 * n))
        else:
            out.append(_thinking(draw, assistant(draw(TEXTS))))
    out += draw(st.sampled_from([[], [user("and then?")], [user("hurry").replace(origin="note")]]))
    choice = draw(st.sampled_from(["auto", "none", "required", Named("add")]))
    tools = TOOLS if isinstance(choice, Named) else draw(st.sampled_from([(), TOOLS]))
    return ModelRequest(tuple(out), ("Be brief.",), tools, choice, draw(OPTIONS))


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
