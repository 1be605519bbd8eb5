"""The messages wire's half of `wire`: its stream, what reads it, and the chunks as models."""

from __future__ import annotations

import json
from itertools import count
from typing import Annotated, Literal

from backscroll.kernel.model import Finished
from backscroll.providers.anthropic_stream import StreamReader
from backscroll.providers.failures import Source
from backscroll.providers.sse import SseParser
from pydantic import BaseModel, Field, TypeAdapter

NETWORK_BYTES = 16 * 1024


class TextDelta(BaseModel):
    """A piece of text."""

    type: Literal["text_delta"]
    text: str


class InputDelta(BaseModel):
    """A piece of arguments."""

    type: Literal["input_json_delta"]
    partial_json: str


class BlockDelta(BaseModel):
    """What a block grows by."""

    type: Literal["content_block_delta"]
    index: int
    delta: Annotated[TextDelta | InputDelta, Field(discriminator="type")]


class Other(BaseModel):
    """Any other event; there are only a few of them."""

    type: Literal[
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


EVENT: TypeAdapter[BlockDelta | Other] = TypeAdapter(
    Annotated[BlockDelta | Other, Field(discriminator="type")]
)


def chunks(number: int) -> list[str]:
    """Return a reply of that many deltas as events: text, then a call."""
    calls = number // 5
    use = {"type": "tool_use", "id": "t1", "name": "add", "input": {}}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": "m1", "model": "m-1", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(_delta(0, type="text_delta", text=f" word{n}") for n in range(number - calls)),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": use},
        *(_delta(1, type="input_json_delta", partial_json=f"{n},") for n in range(calls)),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    return [json.dumps(event) for event in events]


def neutralise(body: bytes) -> int:
    """Do what the sending path does with a body: bytes to events to deltas to a response."""
    numbers = count()
    reader = StreamReader(Source("bench"), lambda: f"c{next(numbers)}", "broken off")
    parser, found = SseParser(), 0
    for start in range(0, len(body), NETWORK_BYTES):
        for data in parser.feed(body[start : start + NETWORK_BYTES]):
            found += len(reader.feed(data))
    *rest, last = reader.finish()
    assert isinstance(last, Finished) and last.response.text
    return found + len(rest)


def validate(events: list[str]) -> int:
    """Parse and validate the same events, and do nothing with them."""
    return sum(bool(EVENT.validate_python(json.loads(event))) for event in events)


def _delta(index: int, **delta: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": delta}
