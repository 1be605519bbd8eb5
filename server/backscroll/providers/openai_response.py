"""Reading a chat completions answer that came whole, and the parts that streams share with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from backscroll.kernel.canon import canonical_json, parse_json
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import ToolCall, parse_call
from backscroll.kernel.model import ModelResponse
from backscroll.kernel.usage import FinishReason, Usage, finish_reason
from backscroll.providers.failures import Source, from_error
from backscroll.providers.overflow import recognise
from backscroll.providers.reply import reply_message


def read_body(text: str, source: Source, mint: Callable[[], str]) -> ModelResponse:
    """Return the reply of a body's text; raises as `read_response` does."""
    try:
        body = parse_json(text)
    except (ValueError, RecursionError):
        # Some servers answer with the bare sentence of an error.
        if recognise(200, text).cls != "other":
            raise from_error(text, source) from None
        shown = source.clean(repr(text.strip()[:200])) if text.strip() else "nothing"
        raise _unreadable(f"expected JSON, got {shown}", source) from None
    return read_response(body, source, mint)


def read_response(body: Any, source: Source, mint: Callable[[], str]) -> ModelResponse:
    """Return the reply of a parsed body; `mint` makes ids for calls that have none.

    Raises the mapped error of a body with an error object, and `parse` for anything unreadable.
    """
    if not isinstance(body, Mapping):
        raise _unreadable(f"expected an object, got {type(body).__name__}", source)
    if (problem := error_in(body)) is not None:
        raise from_error(problem, source)
    choice = _first_choice(body)
    message = None if choice is None else choice.get("message")
    if choice is None or not isinstance(message, Mapping):
        raise _unreadable("expected choices with a message, got none", source)
    text, thought = read_content(message.get("content"))
    refused = message.get("refusal")
    reason = finish_reason(_word(choice.get("finish_reason")))
    if not text and isinstance(refused, str) and refused:
        text, reason = refused, FinishReason.REFUSAL
    calls = tuple(_read_calls(message, mint))
    return ModelResponse(
        reply_message(text, read_reasoning(message) or thought, calls),
        read_usage(body.get("usage")) or read_usage(choice.get("usage")),
        reason,
        _word(body.get("id")),
        _word(body.get("model")),
        source.provider,
        body,
    )


def error_in(value: Mapping[str, Any]) -> Any:
    """Return the error that a body or an event holds, or is; None when there is none."""
    return value.get("error") or (value if value.get("object") == "error" else None)


def read_content(value: Any) -> tuple[str, str]:
    """Return the text and the thinking of a content that is text or a list of parts."""
    if isinstance(value, str):
        return value, ""
    text, thought = [], []
    for part in value if isinstance(value, list) else ():
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            text.append(part["text"])
        elif isinstance(part, Mapping) and part.get("type") == "thinking":
            thought.append(read_content(part.get("thinking"))[0])
    return "".join(text), "".join(thought)


def read_reasoning(value: Mapping[str, Any]) -> str:
    """Return the readable reasoning beside a content, under whichever name it comes."""
    for name in ("reasoning_content", "reasoning"):
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return ""


def arguments_text(value: Any) -> str:
    """Return a call's arguments as text; they may come as text, an object or nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else canonical_json(value)


def read_usage(value: Any) -> Usage | None:
    """Return what a usage object reports, None without one; what it leaves out stays absent."""
    if not isinstance(value, Mapping):
        return None
    prompt, output = _count(value, "prompt_tokens"), _count(value, "completion_tokens")
    details = _mapping(value.get("prompt_tokens_details"))
    cached = _count(details, "cached_tokens")
    if cached is None:
        cached = _count(value, "prompt_cache_hit_tokens")
    reasoning = _count(_mapping(value.get("completion_tokens_details")), "reasoning_tokens")
    if prompt is not None and output is not None and reasoning:
        # Some servers count reasoning beside the completion, not in it.
        beside = _count(value, "total_tokens") == prompt + output + reasoning
        output += reasoning if beside else 0
    usage = Usage(prompt, output, cached, _count(details, "cache_write_tokens"), reasoning)
    return None if usage == Usage() else usage


def _read_calls(message: Mapping[str, Any], mint: Callable[[], str]) -> Iterator[ToolCall]:
    calls = message.get("tool_calls")
    if not calls and isinstance(message.get("function_call"), Mapping):
        calls = [{"function": message["function_call"]}]
    seen: set[str] = set()
    for call in calls if isinstance(calls, list) else ():
        function = _mapping(call.get("function") if isinstance(call, Mapping) else None)
        call_id = _word(call.get("id")) if isinstance(call, Mapping) else None
        if not call_id or call_id in seen:
            call_id = mint()
        seen.add(call_id)
        name = function.get("name")
        arguments = arguments_text(function.get("arguments"))
        yield parse_call(call_id, name if isinstance(name, str) else "", arguments)


def _first_choice(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _unreadable(problem: str, source: Source) -> ModelError:
    message = f"the answer cannot be read: {problem}"
    return ModelError("parse", message, provider=source.provider)


def _count(value: Mapping[str, Any], name: str) -> int | None:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
