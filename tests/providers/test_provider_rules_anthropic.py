"""The strict messages server's rules: each violation has its sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from provider_rules import Refused, Rules
from provider_rules_anthropic import check_anthropic, check_count
from provider_script_anthropic import sign

USER = {"role": "user", "content": "hi"}
TOOL = {"name": "add", "input_schema": {"type": "object"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
THINK = {"type": "enabled", "budget_tokens": 1024}


def use(call_id: str = "t1", name: str = "add", value: Any = None) -> dict[str, Any]:
    """Make a call."""
    return {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": {} if value is None else value,
    }


def result(call_id: str = "t1", content: Any = "r") -> dict[str, Any]:
    """Make a result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def said(*blocks: Any) -> dict[str, Any]:
    """Make an assistant message."""
    return {"role": "assistant", "content": list(blocks)}


def heard(*blocks: Any) -> dict[str, Any]:
    """Make a user message."""
    return {"role": "user", "content": list(blocks)}


def text(value: str, **more: Any) -> dict[str, Any]:
    """Make a text block."""
    return {"type": "text", "text": value, **more}


def check(body: Any, **rules: Any) -> None:
    """Check a body; a list is its messages, a dict what differs from a plain one."""
    if isinstance(body, list):
        body = {"messages": body}
    if isinstance(body, dict):
        whole = {"model": "m", "max_tokens": 2048, "messages": [USER], **body}
        body = json.dumps({k: v for k, v in whole.items() if v is not None}).encode()
    check_anthropic(body, Rules(**rules))


def answer(schema: Any) -> dict[str, Any]:
    """Make what asks for an answer of this form."""
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "x"}}
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not valid JSON"),
        (b'{"a":1,"a":2}', "occurs twice"),
        (b"[]", "should be an object"),
        ({"model": "\ud83c"}, "lone surrogate"),
        ({"writes": 1}, "writes: Extra inputs"),
        ({"model": None}, "model: Field required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"system": " "}, "system: text content blocks"),
        ({"system": [text("")]}, "system: text content blocks"),
        ([], "at least one message"),
        ([{"role": "system", "content": "a"}], "unexpected role"),
        ([{**USER, "id": "m1"}], "unexpected role or key"),
        ([said(text("a")), USER], "roles must alternate"),
        ([USER, USER], "roles must alternate"),
        ([{"role": "user", "content": []}], "non-empty content"),
        ([{"role": "user", "content": " \n"}], "non-whitespace"),
        ([USER, said(text("a "))], "trailing whitespace"),
        ([heard(text("a", writes=1))], "text.writes: Extra inputs"),
        ([heard(text("a", cache_control={"type": "x"}))], "Input should be 'ephemeral'"),
        ([heard(*[text("a", **MARK)] * 5)], "maximum of 4 blocks"),
        ([heard(IMAGE)], "image/jpeg, image/png"),
        ([heard(use())], "unexpected block"),
        ([USER, said(use())], "without `tool_result` blocks"),
        ([USER, said(use()), USER], "without `tool_result` blocks"),
        ([USER, said(use()), heard(text("a"), result())], "must come first"),
        ([USER, said(use()), heard(result(), result())], "unexpected `tool_use_id`"),
        ([USER, said(text("a")), heard(result())], "unexpected `tool_use_id`"),
        ([USER, said(use(), use()), heard(result())], "ids must be unique"),
        ([USER, said(use()), heard(result()), said(use()), heard(result())], "must be unique"),
        ([USER, said(use("a:b")), heard(result("a:b"))], "should match pattern"),
        ([USER, said(use(name="a b")), heard(result())], "should match pattern"),
        ([USER, said(use(value=[1])), heard(result())], "valid dictionary"),
        ([USER, said(use()), heard(result(content=""))], "tool_result.content: empty|whitespace"),
        ([USER, said(use()), heard(result(content=[{"type": "document"}]))], "unexpected"),
        ([USER, said(THOUGHT), USER], "final block in an assistant message"),
        ([USER, said({**THOUGHT, "thinking": "hm "}, text("a")), USER], "Invalid `signature`"),
        ([USER, said({**THOUGHT, "signature": ""}, text("a")), USER], "Invalid `signature`"),
        ([USER, said({**THOUGHT, **MARK}, text("a")), USER], "cannot be set for thinking"),
        ([USER, said({"type": "redacted_thinking", "data": ""}, text("a")), USER], "`data`"),
        ([USER, said(use(), THOUGHT, text("a")), heard(result())], "must come before tool_use"),
        ({"tool_choice": {"type": "auto"}}, "only be specified while providing tools"),
        ({"tools": [TOOL, TOOL]}, "must be unique"),
        ({"tools": [{**TOOL, "name": "a b"}]}, "should match pattern"),
        ({"tools": [{"name": "a", "input_schema": {}}]}, "input_schema.type"),
        ({"tools": [{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]}, "oneOf"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "b"}}, "not found"),
        (answer({"type": "object", "properties": {}}), "must be explicitly set to false"),
        (answer({"type": "integer", "minimum": 3}), "'minimum' is not supported"),
        (answer({"type": "array", "items": {"type": "string"}, "minItems": 2}), "minItems"),
        (answer({"description": "any"}), "must have a type"),
        ({"output_config": {"format": {"type": "json_object"}}}, "should be 'json_schema'"),
        ({"temperature": 1.5}, "temperature: range"),
        ({"stop_sequences": ["\n"]}, "non-whitespace"),
        ({"thinking": {"type": "x"}}, "none of 'enabled'"),
        ({"thinking": THINK, "max_tokens": 1024}, "greater than `thinking.budget_tokens`"),
        ({"thinking": {**THINK, "budget_tokens": 9}}, "greater than or equal to 1024"),
        ({"thinking": THINK, "temperature": 0}, "may only be set to 1"),
        ({"thinking": THINK, "top_k": 3}, "must be unset"),
        ({"thinking": THINK, "tools": [TOOL], "tool_choice": {"type": "any"}}, "forces tool use"),
        ({"thinking": THINK, "messages": [USER, said(use()), heard(result())]},
         "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
    ],
)  # fmt: skip
def test_a_violation_is_refused(body: Any, words: str) -> None:
    """Each rule of the real API has its sentence."""
    with pytest.raises(Refused, match=words):
        check(body)


def test_what_is_well_formed_is_accepted() -> None:
    """A whole conversation with thought, calls, an image, marks and settings passes."""
    png = {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}}
    check(
        {
            "system": [text("be", **MARK)],
            "messages": [
                heard(text("q"), png),
                said(THOUGHT, text("a"), use("t1"), use("t2")),
                heard(result("t1"), result("t2", [text("r"), png]), text("and hurry")),
                said(THOUGHT, use("t3")),
                heard(result("t3")),
            ],
            "tools": [TOOL],
            "tool_choice": {"type": "auto"},
            "thinking": THINK,
            "stream": True,
        }
    )
    with pytest.raises(Refused, match="must define tools"):
        check([USER, said(use()), heard(result())], tools_with_history=True)


def test_a_count_takes_what_makes_up_the_prompt() -> None:
    """The same content rules; settings of an answer have no place there."""
    check_count(json.dumps({"model": "m", "messages": [USER], "thinking": THINK}).encode(), Rules())
    for wrong, words in (({"max_tokens": 9}, "max_tokens: Extra"), ({"messages": []}, "at least")):
        body = json.dumps({"model": "m", "messages": [USER], **wrong}).encode()
        with pytest.raises(Refused, match=words):
            check_count(body, Rules())
