"""Recognising what a refusal is about."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from backscroll.kernel.errors import Refusal
from backscroll.providers.overflow import recognise
from deadlines import scaled

DATA = Path(__file__).parent.parent / "data" / "overflow-fixtures.json"
FIXTURES = [item for item in json.loads(DATA.read_text()) if "given" not in item]


@pytest.mark.parametrize("fixture", FIXTURES, ids=[item["name"] for item in FIXTURES])
@pytest.mark.parametrize("form", ["parsed", "text", "bytes"])
def test_every_fixture_is_classified(fixture: dict[str, Any], form: str) -> None:
    """OVF1: class and limit are right, and what is `other` is nothing else (compaction-06)."""
    body = fixture.get("body")
    if form != "parsed" and body is not None:
        text = body if isinstance(body, str) else json.dumps(body)
        body = text if form == "text" else text.encode()

    found = recognise(fixture["http_status"], body, fixture.get("stream_event"))

    assert found.cls == fixture["expected_class"]
    # A budget per minute is a limit, too, which nobody may learn as the model's window.
    if found.cls != "over_tpm":
        assert found.limit == fixture.get("expected_limit")


def error(message: str, **more: Any) -> dict[str, Any]:
    """Make a body in OpenAI's shape."""
    return {"error": {"message": message, **more}}


SHAPES: list[tuple[int, Any, Refusal]] = [
    (
        400,
        error("Input tokens exceed the configured limit of 272000 tokens."),
        Refusal("overflow", None, None, 272000, "input_configured"),
    ),
    (
        400,
        error(
            "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in "
            "297,006 tokens."
        ),
        Refusal("overflow", 297006, None, 272000, "input_configured"),
    ),
    (
        400,
        error(
            "This model's maximum context length is 8192 tokens. However, you requested 9000 "
            "tokens (7000 in the messages, 1000 in the functions, and 1000 in the completion)."
        ),
        Refusal("sum", 8000, 1000, 8192, "max_context_split"),
    ),
    (
        400,
        "prompt tokens (9000) exceed model maximum (8192)",
        Refusal("overflow", 9000, None, 8192, "mantle"),
    ),
    (
        422,
        error("The input (9,000 tokens) is longer than the model's context length (8192 tokens)."),
        Refusal("overflow", 9000, None, 8192, "together"),
    ),
    (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. "
            "Given: 4000 `inputs` tokens and 200 `max_new_tokens`",
            "error_type": "validation",
        },
        Refusal("sum", 4000, 200, 4096, "tgi"),
    ),
    (
        400,
        error(
            "This model's maximum context length is 4096 tokens. However, you requested 512 "
            "output tokens and your prompt contains at least 4000 input tokens, for a total of "
            "at least 4512 tokens. (parameter=input_tokens, value=4000)"
        ),
        Refusal("sum", 4000, 512, 4096, "max_context_output_first"),
    ),
    (
        400,
        error(
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum "
            "context length is 4096 tokens and your request has 100 input tokens"
        ),
        Refusal("sum", 100, 5000, 4096, "max_tokens_left"),
    ),
    (
        500,
        "the request exceeds the available context size. try increasing the context size",
        Refusal("overflow", rule="llama_cpp_old"),
    ),
    (
        400,
        error("Requested tokens (2500) exceed context window of 2048"),
        Refusal("overflow", 2500, None, 2048, "llama_cpp_python"),
    ),
    (
        400,
        {"error": "Context size has been exceeded."},
        Refusal("overflow", rule="lm_studio_exceeded"),
    ),
    (
        400,
        error("Range of input length should be [1, 30720]", code="InvalidParameter"),
        Refusal("overflow", None, None, 30720, "dashscope"),
    ),
    (
        400,
        {"message": "This request exceeds the maximum allowed input length of 131072 tokens"},
        Refusal("overflow", None, None, 131072, "poolside"),
    ),
    (
        400,
        {"message": "Malformed input request: expected maxLength: 2048, actual: 5000"},
        Refusal("overflow", rule="bedrock_characters"),
    ),
    (
        400,
        error("Request payload size exceeds the limit: 20971520 bytes.", status="INVALID_ARGUMENT"),
        Refusal("overflow_bytes", rule="payload"),
    ),
    (413, error("Request Entity Too Large"), Refusal("overflow_bytes", rule="payload")),
    (
        400,
        error("messages.5.content.0: `thinking` blocks in it cannot be modified."),
        Refusal("heal", rule="thinking_modified"),
    ),
    (
        400,
        error("messages.1.content.0: Invalid `signature` in `thinking` block"),
        Refusal("heal", rule="thinking_signature"),
    ),
    (
        400,
        error("Missing required parameter: 'messages[3].tool_call_id'."),
        Refusal("heal", rule="call_id_missing"),
    ),
    (
        429,
        error("Request too large for m on tokens per min (TPM): Limit 30000, Requested 60000.",
              code="rate_limit_exceeded"),
        Refusal("over_tpm", 60000, None, 30000, "over_tpm"),
    ),
    (
        400,
        error("messages.1: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
        Refusal("other", rule="media"),
    ),
    (
        400,
        error("Invalid 'tools[0].function.description': string too long."),
        Refusal("other", rule="field"),
    ),
    (
        404,
        error("maximum context length is 4096 tokens"),
        Refusal("other", rule="status_404"),
    ),
    (418, error("maximum context length is 4096 tokens"), Refusal("other")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "expected"), SHAPES)
def test_the_shapes_of_the_table(status: int, body: Any, expected: Refusal) -> None:
    """OVF1: shapes of further providers give class, numbers and the rule that matched."""
    assert recognise(status, body) == expected


def test_numbers_come_from_the_text_when_the_code_decides() -> None:
    """A known code decides the class; the sentence beside it still gives the numbers."""
    body = error("maximum context length is 100 tokens", code="CONTEXT_LENGTH_EXCEEDED")

    assert recognise(429, body) == Refusal("overflow", None, None, 100, "context_length_exceeded")


HOSTILE = [
    json.dumps({"detail": [{"input": "prompt is long " * 40, "loc": [n]} for n in range(1600)]}),
    "[" * 1_000_000,
    '{"a":' * 200_000,
    '"' * 1_000_000,
    json.dumps(json.dumps({"error": json.dumps({"error": '{"error": "$ref"}'})})),
    b"\xff\xfe" * 500_000,
    "tool name " * 100_000,
    "image " * 170_000,
    "maximum context length is " + "1" * 1_000_000,
    {"error": {"n_ctx": 10**400, "code": None, 5: [None, 1.5, float("nan")]}},
    None,
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_bodies_are_classified_quickly(body: Any) -> None:
    """OVF11: a megabyte of anything is classified in under 50 ms, without an exception."""
    times = []
    for _ in range(3):
        start = time.process_time()
        found = recognise(400, body)
        times.append(time.process_time() - start)

    assert found.cls in ("other", "overflow")
    assert min(times) < scaled(0.05)


def test_depth_is_bounded() -> None:
    """What is wrapped deeper than eight levels is not looked at."""
    body: Any = "prompt is too long: 5 tokens > 4 maximum"
    for _ in range(12):
        body = {"error": body}

    assert recognise(400, body).cls == "other"
