"""Reading a messages answer that came whole, and the parts that streams share with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from backscroll.kernel.canon import parse_json
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Blocks, Message, ToolCall, parse_call
from backscroll.kernel.model import ModelResponse
from backscroll.kernel.usage import Usage, finish_reason
from backscroll.providers.anthropic_messages import FORMAT
from backscroll.providers.failures import Source, from_error
from backscroll.providers.overflow import recognise
from backscroll.providers.reply import reply_message

PLAIN_BLOCKS = ("text", "tool_use")
"""Blocks that text and calls can be rebuilt from; any other kind must be kept as it was."""


def read_body(text: str, source: Source, mint: Callable[[], str]) -> ModelResponse:
    """Return the reply of a body's text; raises as `read_response` does."""
    try:
        body = parse_json(text)
    except (ValueError, RecursionError):
        # Some gateways answer with the bare sentence of an error.
        if recognise(200, text).cls != "other":
            raise failure(text, source) from None
        shown = source.clean(repr(text.strip()[:200])) if text.strip() else "nothing"
        raise _unreadable(f"expected JSON, got {shown}", source) from None
    return read_response(body, source, mint)


def read_response(body: Any, source: Source, mint: Callable[[], str]) -> ModelResponse:
    """Return the reply of a parsed body; `mint` makes ids for calls that have none.

    Raises the mapped error of a body with an error object, and `parse` for anything unreadable.
    """
    if not isinstance(body, Mapping):
        raise _unreadable(f"expected an object, got {type(body).__name__}", source)
    if body.get("error"):
        raise failure(body["error"], source)
    content = body.get("content")
    if not isinstance(content, list):
        raise _unreadable("expected a list of content blocks, got none", source)
    blocks = [dict(block) for block in content if isinstance(block, Mapping)]
    uses = (block for block in blocks if block.get("type") == "tool_use")
    calls = read_calls(((_word(b.get("id")), b.get("name"), b.get("input")) for b in uses), mint)
    return ModelResponse(
        read_message(blocks, calls, source.provider),
        read_usage(body.get("usage")),
        finish_reason(_word(body.get("stop_reason"))),
        _word(body.get("id")),
        _word(body.get("model")),
        source.provider,
        body,
    )


def read_count(text: str, source: Source) -> int:
    """Return the size that an answer to a request to count states; raises `parse` without one."""
    try:
        body = parse_json(text)
    except (ValueError, RecursionError):
        body = None
    found = _count(body, "input_tokens") if isinstance(body, Mapping) else None
    if found is None or found < 1:
        shown = source.clean(repr(text.strip()[:200]))
        raise _unreadable(f"expected the number input_tokens, got {shown}", source)
    return found


def read_calls(
    found: Iterable[tuple[str | None, Any, Any]], mint: Callable[[], str]
) -> tuple[ToolCall, ...]:
    """Return calls from ids, names and inputs; a missing or repeated id is replaced."""
    out: dict[str, ToolCall] = {}
    for given, name, value in found:
        call_id = given if given and given not in out else mint()
        out[call_id] = parse_call(call_id, name if isinstance(name, str) else "", value)
    return tuple(out.values())


def read_message(
    blocks: Sequence[Mapping[str, Any]], calls: tuple[ToolCall, ...], provider: str
) -> Message:
    """Return the message of a content list; the list is kept when it cannot be rebuilt."""
    text = "".join(str(b.get("text") or "") for b in blocks if b.get("type") == "text")
    thought = "".join(str(b.get("thinking") or "") for b in blocks if b.get("type") == "thinking")
    message = reply_message(text, thought, calls)
    if all(block.get("type") in PLAIN_BLOCKS for block in blocks):
        return message
    return message.replace(blocks=Blocks(FORMAT, tuple(blocks), provider))


def read_usage(value: Any) -> Usage | None:
    """Return what a usage object reports; input includes what was read from and put in caches."""
    if not isinstance(value, Mapping):
        return None
    written = _count(value, "cache_creation_input_tokens")
    parts = value.get("cache_creation")
    if written is None and isinstance(parts, Mapping):
        sizes = [size for name in parts if (size := _count(parts, name)) is not None]
        written = sum(sizes) if sizes else None
    read = _count(value, "cache_read_input_tokens")
    known = [n for n in (_count(value, "input_tokens"), read, written) if n is not None]
    usage = Usage(sum(known) if known else None, _count(value, "output_tokens"), read, written)
    return None if usage == Usage() else usage


def failure(value: Any, source: Source) -> ModelError:
    """Return the error of an error object; what it does not name is a bad request."""
    return from_error(value, source, otherwise="invalid_request")


def _unreadable(problem: str, source: Source) -> ModelError:
    message = f"the answer cannot be read: {problem}"
    return ModelError("parse", message, provider=source.provider)


def _count(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
