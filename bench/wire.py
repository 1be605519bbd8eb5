"""What one delta of a provider's stream costs to parse and neutralise.

Beside it, in the same run, what `json.loads` plus pydantic validation of the same chunks costs,
with a model of the fields that are read. Both are CPU time of this process; the ratio counts. The
messages wire is measured in the same way (`wire_messages`).

    python bench/wire.py [--deltas 10000] [--runs 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import wire_messages
from backscroll.kernel.model import Finished
from backscroll.providers.failures import Source
from backscroll.providers.openai_stream import StreamReader
from backscroll.providers.sse import SseParser
from pydantic import BaseModel

NETWORK_BYTES = 16 * 1024


class Function(BaseModel):
    """A fragment of a call."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(BaseModel):
    """A call's place and fragment."""

    index: int
    id: str | None = None
    type: str | None = None
    function: Function | None = None


class ChunkDelta(BaseModel):
    """What a chunk adds."""

    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(BaseModel):
    """One choice of a chunk."""

    index: int
    delta: ChunkDelta
    finish_reason: str | None = None


class Chunk(BaseModel):
    """One chunk of a stream, as client libraries validate it."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: dict[str, object] | None = None


def main() -> None:
    """Measure both sides in turn, print the figures, and write them as JSON if asked."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--deltas", type=int, default=10_000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    number = asked.deltas
    report: dict[str, float] = {"deltas": number}
    for suffix, wire, end in (
        ("", sys.modules[__name__], ["[DONE]"]),
        ("_messages", wire_messages, []),
    ):
        events = wire.chunks(number)
        body = "".join(f"data: {event}\n\n" for event in [*events, *end]).encode()
        ours, theirs = [], []
        for _ in range(asked.runs):
            ours.append(cpu_us(partial(wire.neutralise, body), number))
            theirs.append(cpu_us(partial(wire.validate, events), number))
        mine, other = statistics.median(ours), statistics.median(theirs)
        report[f"neutralised{suffix}_us"] = round(mine, 3)
        report[f"validated{suffix}_us"] = round(other, 3)
        report[f"ratio{suffix}"] = round(mine / other, 3)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=1) + "\n")


def chunks(number: int) -> list[str]:
    """Return a reply of that many deltas as chunks: text, then a call."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}

    def chunk(delta: dict[str, object], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return json.dumps({**head, "choices": [choice]})

    words = [chunk({"content": f" word{n}"}) for n in range(number - number // 5)]
    named = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add"}}
    pieces = [
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": f"{n},"}}]})
        for n in range(number // 5)
    ]
    return [*words, chunk({"tool_calls": [named]}), *pieces, chunk({}, "tool_calls")]


def neutralise(body: bytes) -> int:
    """Do what the sending path does with a body: bytes to events to deltas to a response."""
    numbers = count()
    reader = StreamReader(Source("bench"), ["add"], lambda: f"c{next(numbers)}", "broken off")
    parser, found = SseParser(), 0
    for start in range(0, len(body), NETWORK_BYTES):
        for data in parser.feed(body[start : start + NETWORK_BYTES]):
            found += len(reader.feed(data))
    *rest, last = reader.finish()
    assert isinstance(last, Finished) and last.response.text
    return found + len(rest)


def validate(events: list[str]) -> int:
    """Parse and validate the same chunks, and do nothing with them."""
    return sum(len(Chunk.model_validate(json.loads(event)).choices) for event in events)


def cpu_us(work: Callable[[], int], deltas: int) -> float:
    """Return the CPU time of some work, in microseconds per delta."""
    start = time.process_time()
    assert work() >= deltas
    return (time.process_time() - start) * 1e6 / deltas


if __name__ == "__main__":
    main()
