"""What the scripted provider plays: replies, and how they look on the OpenAI wire."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

CREATED = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the model makes; `args` is an object, or the argument text as it is."""

    name: str
    args: Any = field(default_factory=dict)
    id: str | None = None

    @property
    def text(self) -> str:
        """The argument text."""
        return self.args if isinstance(self.args, str) else json.dumps(self.args)


@dataclass(frozen=True, slots=True)
class Hold:
    """A place in a stream where the server waits for `release(name)`, or for the client to go."""

    name: str = "hold"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the provider.

    Ordinary replies: `text`, `reasoning`, `calls` (a call without id gets `call_<n>`), `finish`,
    `usage` (None: none reported; "auto": counted). Streams send a role chunk, then the text word
    by word, then finish, usage and `[DONE]`.

    `chunks` replaces what a stream sends: a dict with `choices`, `error`, `usage` or `type` is one
    data event, another dict is a delta, text is written as it is, and a `Hold` waits.
    `status`, `body` and `headers` answer with one body instead (text as it is, else JSON).
    `hold_after` puts a Hold after that many events; with 0 not even the headers are sent before.

    How it is written: `split` bytes at a time, `crlf` line ends, `comments` between events, a
    `bom`. How it ends: "done" (`[DONE]`), "eof" (the body just ends, no finish marker either),
    "no_done" (a finish reason, no `[DONE]`), "drop" (the connection closes inside the body),
    "reset" (RST), "open" (the marker was sent and the connection stays open without an end).
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Any = "auto"
    chunks: tuple[Any, ...] | None = None
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hold_after: int | None = None
    pause_s: float = 0.0
    split: int | None = None
    crlf: bool = False
    comments: bool = False
    bom: bool = False
    end: Literal["done", "eof", "no_done", "drop", "reset", "open"] = "done"

    def to_json(self) -> dict[str, Any]:
        """Return the reply as JSON values, for the control API."""
        out = asdict(self)
        if self.chunks is not None:
            out["chunks"] = [
                {"$hold": item.name} if isinstance(item, Hold) else item for item in self.chunks
            ]
        return out

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Reply:
        """Read what `to_json` wrote."""
        chunks = value.get("chunks")
        if chunks is not None:
            chunks = tuple(Hold(c["$hold"]) if _is_hold(c) else c for c in chunks)
        calls = tuple(Call(**call) for call in value.get("calls", ()))
        return cls(**{**value, "calls": calls, "chunks": chunks})


@dataclass(frozen=True, slots=True)
class Form:
    """How a server writes its answers.

    `reasoning` is the field of reasoning text, "thinking" for parts inside the content. `usage`
    comes when it is "asked" for, or always with the "last" choice. `filters_first` begins with a
    chunk without choices, `comment` with a comment line.
    """

    reasoning: str = "reasoning_content"
    usage: Literal["asked", "last"] = "asked"
    filters_first: bool = False
    comment: str | None = None

    def thought(self, text: str) -> dict[str, Any]:
        """Return what a message or a delta holds for reasoning."""
        if self.reasoning != "thinking":
            return {self.reasoning: text}
        return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}


def error(
    status: int, message: str, code: Any = None, type: str = "invalid_request_error"
) -> Reply:
    """Make an error answer in OpenAI's shape."""
    body = {"error": {"message": message, "type": type, "param": None, "code": code}}
    return Reply(status=status, body=body)


def usage_of(prompt: int, completion: int, cached: int | None = None) -> dict[str, Any]:
    """Make a usage report in OpenAI's shape."""
    out: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if cached is not None:
        out["prompt_tokens_details"] = {"cached_tokens": cached}
    return out


def openai_body(
    reply: Reply, model: str, usage: dict[str, Any] | None, form: Form
) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message.update(form.thought(reply.reasoning))
        if isinstance(message["content"], list) and reply.text:
            message["content"].append({"type": "text", "text": reply.text})
    if reply.calls:
        message["tool_calls"] = [_call(n, call) for n, call in enumerate(reply.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": model}
    return {**head, "choices": [choice], **({"usage": usage} if usage else {})}


def openai_events(
    reply: Reply, model: str, usage: dict[str, Any] | None, form: Form
) -> list[str | Hold]:
    """Return what a stream writes: SSE text, and places where it holds."""
    items = list(reply.chunks) if reply.chunks is not None else _default_chunks(reply, form)
    if reply.chunks is None:
        items += _last_chunks(reply, model, usage, form)
        if form.filters_first:
            items.insert(0, {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
        if form.comment:
            items.insert(0, form.comment)
    if reply.hold_after is not None:
        items.insert(reply.hold_after, Hold())
    out: list[str | Hold] = ["\ufeff"] if reply.bom else []
    for item in items:
        if reply.comments:
            out.append(_lines(": keep-alive\n\n", reply))
        out.append(item if isinstance(item, Hold) else _lines(_sse(item, model), reply))
    if reply.end == "done":
        out.append(_lines("data: [DONE]\n\n", reply))
    return out


def _sse(item: Any, model: str) -> str:
    if isinstance(item, str):
        return item
    whole = item if {"choices", "error", "usage", "type"} & item.keys() else _chunk(item, model)
    return f"data: {json.dumps(whole, ensure_ascii=False)}\n\n"


def _lines(text: str, reply: Reply) -> str:
    return text.replace("\n", "\r\n") if reply.crlf else text


def _last_chunks(
    reply: Reply, model: str, usage: dict[str, Any] | None, form: Form
) -> list[dict[str, Any]]:
    last = _chunk({}, model, _finish(reply))
    items = [last] if reply.end in ("done", "no_done", "open") else []
    if usage is not None and form.usage == "last":
        last["usage"] = usage
    elif usage is not None:
        items.append({**_chunk({}, model), "choices": [], "usage": usage})
    return items


def _default_chunks(reply: Reply, form: Form) -> list[Any]:
    items: list[Any] = [{"role": "assistant", "content": None}]
    items += [form.thought(word) for word in words(reply.reasoning)]
    items += [{"content": word} for word in words(reply.text)]
    for n, call in enumerate(reply.calls):
        whole = _call(n, call)
        head = {**whole, "index": n, "function": {"name": call.name, "arguments": ""}}
        items.append({"tool_calls": [head]})
        half = len(call.text) // 2
        pieces = [piece for piece in (call.text[:half], call.text[half:]) if piece]
        items += [{"tool_calls": [{"index": n, "function": {"arguments": p}}]} for p in pieces]
    return items


def words(text: str) -> list[str]:
    """Cut a text into words, each with the blanks before it."""
    out: list[str] = []
    for piece in text.split(" "):
        out.append(f" {piece}" if out else piece)
    return [piece for piece in out if piece]


def _call(n: int, call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.text}
    call_id = f"call_{n}" if call.id is None else call.id
    return {"id": call_id, "type": "function", "function": function}


def _chunk(delta: dict[str, Any], model: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED}
    return {**head, "model": model, "choices": [choice]}


def _finish(reply: Reply) -> str | None:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _is_hold(value: Any) -> bool:
    return isinstance(value, dict) and "$hold" in value
