"""How the scripted provider's replies look on the messages wire."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from provider_script import Call, Hold, Reply, words


def sign(thought: str) -> str:
    """Return the signature of a thought; changing a character of it makes another."""
    raw = f"signed by the provider: {thought}".encode("utf-8", "surrogatepass")
    return base64.b64encode(hashlib.sha256(raw).digest()).decode()


def anthropic_error(status: int, message: str, kind: str = "invalid_request_error") -> Reply:
    """Make an error answer in Anthropic's shape."""
    return Reply(status=status, body={"type": "error", "error": {"type": kind, "message": message}})


def anthropic_body(reply: Reply, model: str, usage: dict[str, int]) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        signed = {"thinking": reply.reasoning, "signature": sign(reply.reasoning)}
        content.append({"type": "thinking", **signed})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += [{**_use(n, call), "input": call.args} for n, call in enumerate(reply.calls)]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    return {**head, "content": content, "stop_reason": _reason(reply), "usage": usage}


def anthropic_events(reply: Reply, model: str, usage: dict[str, int]) -> list[str | Hold]:
    """Return what a stream writes: SSE text, and places where it holds."""
    items = list(reply.chunks) if reply.chunks is not None else _default_events(reply, model, usage)
    if reply.hold_after is not None:
        items.insert(reply.hold_after, Hold())
    out: list[str | Hold] = ["\ufeff"] if reply.bom else []
    for item in items:
        if reply.comments:
            out.append(_lines(": keep-alive\n\n", reply))
        out.append(item if isinstance(item, Hold) else _lines(_sse(item), reply))
    return out


def block_events(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    """Return the events of one content block."""
    at = {"index": index}
    return [
        {"type": "content_block_start", **at, "content_block": start},
        *({"type": "content_block_delta", **at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", **at},
    ]


def end_events(reason: str, usage: dict[str, int]) -> list[Any]:
    """Return the events that end a reply."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def _default_events(reply: Reply, model: str, usage: dict[str, int]) -> list[Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model}
    started = {"input_tokens": usage["input_tokens"], "output_tokens": 1}
    out: list[Any] = [{"type": "message_start", "message": {**head, "usage": started}}]
    index = 0
    if reply.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": word} for word in words(reply.reasoning)]
        signed = [
            {"type": "signature_delta", "signature": piece}
            for piece in (sign(reply.reasoning)[:9], sign(reply.reasoning)[9:])
        ]
        start = {"type": "thinking", "thinking": "", "signature": ""}
        out += block_events(index, start, *deltas, *signed)
        index += 1
    if reply.text:
        deltas = [{"type": "text_delta", "text": word} for word in words(reply.text)]
        out += [*block_events(index, {"type": "text", "text": ""}, *deltas), {"type": "ping"}]
        index += 1
    for n, call in enumerate(reply.calls):
        half = len(call.text) // 2
        pieces = ("", call.text[:half], call.text[half:])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        out += block_events(index, {**_use(n, call), "input": {}}, *deltas)
        index += 1
    if reply.end in ("done", "no_done", "open"):
        out += end_events(_reason(reply), {"output_tokens": usage["output_tokens"]})
    return out[:-1] if reply.end == "no_done" else out


def _sse(item: Any) -> str:
    if isinstance(item, str):
        return item
    return f"event: {item['type']}\ndata: {json.dumps(item, ensure_ascii=False)}\n\n"


def _lines(text: str, reply: Reply) -> str:
    return text.replace("\n", "\r\n") if reply.crlf else text


def _use(n: int, call: Call) -> dict[str, Any]:
    call_id = f"toolu_{n}" if call.id is None else call.id
    return {"type": "tool_use", "id": call_id, "name": call.name}


def _reason(reply: Reply) -> str:
    return reply.finish or ("tool_use" if reply.calls else "end_turn")
