"""Reading a whole chat completions answer."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import ToolCall
from backscroll.kernel.model import ModelResponse
from backscroll.kernel.usage import FinishReason, Usage
from backscroll.providers.failures import Source
from backscroll.providers.openai_response import read_body, read_response, read_usage

SOURCE = Source("openai", secrets=("KEY-PROV-789",))


def read(message: Any, finish: Any = "stop", **more: Any) -> ModelResponse:
    """Read a body with one choice."""
    numbers = count()
    body = {"choices": [{"message": message, "finish_reason": finish}], **more}
    return read_response(body, SOURCE, lambda: f"minted_{next(numbers)}")


def test_a_plain_answer_is_read() -> None:
    """Text, finish reason, id, model, provider and the body itself are kept."""
    found = read({"content": "hi"}, id="r1", model="m-1", usage={"prompt_tokens": 3})

    assert (found.text, found.finish_reason) == ("hi", FinishReason.STOP)
    assert (found.response_id, found.model, found.provider) == ("r1", "m-1", "openai")
    assert found.usage == Usage(input_tokens=3)
    assert found.raw["id"] == "r1"


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        (None, "", None),
        ([{"type": "text", "text": "a"}, "b", {"type": "text", "text": "c"}, 5], "abc", None),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "a"}],
            "a",
            "hm",
        ),
        ("\ud83c\udf0d \ud83c", "🌍 \ufffd", None),
    ],
)
def test_content_may_be_text_or_parts(content: Any, text: str, reasoning: str | None) -> None:
    """Texts of a list are concatenated; half a surrogate pair is replaced (MSG10)."""
    found = read({"content": content})

    assert (found.text, found.reasoning) == (text, reasoning)


def test_calls_win_over_the_finish_reason() -> None:
    """A reply with calls has them, whatever the server says of its end; no text is None (MSG6)."""
    call = {"id": "c1", "function": {"name": "add", "arguments": '{"a":1}'}}

    found = read({"content": "", "tool_calls": [call]}, "stop")

    assert found.tool_calls == (ToolCall("c1", "add", {"a": 1}),)
    assert found.message.content is None


@pytest.mark.parametrize("arguments", ["", None, "  ", {}, "null"])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    """OAI6: blank, null and an empty object all mean `{}` (wire-openai-04)."""
    call = {"id": "c1", "function": {"name": "now", "arguments": arguments}}

    assert read({"tool_calls": [call]}).tool_calls == (ToolCall("c1", "now", {}),)


def test_broken_arguments_are_kept_as_text() -> None:
    """MSG7: what is not a JSON object is kept raw and makes the call invalid."""
    call = {"id": "c1", "function": {"name": "x", "arguments": '{"a":'}}

    assert read({"tool_calls": [call]}).tool_calls == (ToolCall("c1", "x", None, '{"a":'),)


def test_calls_without_a_usable_id_get_one() -> None:
    """OAI3: a missing or repeated id is replaced within the reply."""
    function = {"name": "x", "arguments": {"a": 1}}
    calls = [{"id": "c", "function": function}, {"id": "c", "function": function}, 7, {"id": 5}]

    found = read({"tool_calls": calls}).tool_calls

    assert [call.id for call in found] == ["c", "minted_0", "minted_1", "minted_2"]
    assert found[0].args == {"a": 1} and found[3].name == ""


def test_the_old_form_of_a_call_is_read() -> None:
    """A legacy `function_call` is one call without an id."""
    found = read({"content": None, "function_call": {"name": "x", "arguments": "{}"}})

    assert found.tool_calls == (ToolCall("minted_0", "x", {}),)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_comes_under_two_names(name: str) -> None:
    """Readable reasoning is kept beside the text, never in it."""
    found = read({"content": "a", name: "because é"})

    assert (found.text, found.reasoning) == ("a", "because é")


def test_a_refusal_is_the_text() -> None:
    """The words of a refusal become the text, the finish reason `refusal`."""
    found = read({"content": None, "refusal": "I cannot."})

    assert (found.text, found.finish_reason) == ("I cannot.", FinishReason.REFUSAL)


@pytest.mark.parametrize(
    ("word", "reason"),
    [("weird", FinishReason.UNKNOWN), (None, None), ("length", FinishReason.MAX_TOKENS)],
)
def test_finish_reasons_are_translated(word: str | None, reason: FinishReason | None) -> None:
    """USE4: an unknown word is `unknown`, null is None."""
    assert read({"content": "a"}, word).finish_reason is reason


@pytest.mark.parametrize(
    "body",
    [[], "text", {}, {"choices": []}, {"choices": [{}]}, {"choices": None}, {"choices": [3]}],
)
def test_an_answer_without_a_message_is_a_parse_error(body: Any) -> None:
    """No choices and no error cannot be read."""
    with pytest.raises(ModelError) as raised:
        read_response(body, SOURCE, str)

    assert raised.value.kind == "parse"


def test_an_error_object_counts_whatever_the_status() -> None:
    """OAI9: a plain body with `error` is that error."""
    text = json.dumps({"error": {"message": "too long", "code": "context_length_exceeded"}})

    with pytest.raises(ModelError) as raised:
        read_body(text, SOURCE, str)

    assert raised.value.kind == "context_overflow"


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("<html> KEY-PROV-789", "parse", "expected JSON, got '<html> ***'"),
        ("", "parse", "expected JSON, got nothing"),
        ("Context size has been exceeded.", "context_overflow", "Context size"),
        ('{"a": NaN}', "parse", "expected JSON"),
    ],
)
def test_a_body_that_is_not_json(text: str, kind: str, words: str) -> None:
    """A bare sentence about size is that error; anything else is `parse`, without secrets."""
    with pytest.raises(ModelError, match=words.replace("*", r"\*")) as raised:
        read_body(text, SOURCE, str)

    assert raised.value.kind == kind


def usage(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    """Make a usage object."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 900}},
         Usage(1000, None, 900)),
        (usage(10, 5, prompt_cache_hit_tokens=4), Usage(10, 5, 4)),
        (usage(10, 5, prompt_cache_hit_tokens=4, prompt_tokens_details={"cached_tokens": 0}),
         Usage(10, 5, 0)),
        (usage(10, 5, prompt_tokens_details={"cache_write_tokens": 3}), Usage(10, 5, None, 3)),
        (usage(10, 5, completion_tokens_details={"reasoning_tokens": 4}, total_tokens=15),
         Usage(10, 5, reasoning_tokens=4)),
        (usage(10, 5, completion_tokens_details={"reasoning_tokens": 4}, total_tokens=19),
         Usage(10, 9, reasoning_tokens=4)),
        (usage(0, 0), Usage(0, 0)),
        ({"prompt_tokens": True, "completion_tokens": "5"}, None),
        ({}, None),
        (None, None),
    ],
)  # fmt: skip
def test_usage_is_read_as_reported(value: Any, expected: Usage | None) -> None:
    """USE1, USE3: totals include their parts; what is not reported is absent, a 0 is 0."""
    assert read_usage(value) == expected


def test_usage_may_sit_in_the_choice() -> None:
    """Some servers report usage beside the message."""
    choice = {"message": {"content": "a"}, "usage": usage(1, 2)}

    assert read_response({"choices": [choice]}, SOURCE, str).usage == Usage(1, 2)
