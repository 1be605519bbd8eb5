"""A neutral request as a chat completions body: pure, and equal input gives equal bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from backscroll.kernel.canon import canonical_json
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Message, Role, ToolCall
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_parts import PartRules
from backscroll.providers.wire import Encoder, WireConfig

UNKNOWN_OPTIONS = ("top_k", "thinking", "cache")
"""Options that this wire has no place for."""

_FORMATS: dict[str, tuple[str, ...]] = {
    "none": ("text",),
    "json_object": ("text", "json_object"),
    "json_schema": ("text", "json_object", "json_schema"),
}

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_NAME = re.compile(r"[^A-Za-z0-9_-]")


def build_request(
    request: ModelRequest, profile: ModelProfile, config: WireConfig, stream: bool = False
) -> dict[str, Any]:
    """Return the body, its keys in the order in which they are sent."""
    options = request.options.over(config.options)
    body: dict[str, Any] = {
        "model": options.model or config.name,
        "messages": _Messages(request, profile, config.provider).build(),
        **_tools(request, profile, options),
    }
    given = {
        profile.max_tokens_field: options.max_output_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) if options.stop else None,
        "seed": options.seed,
        "reasoning_effort": options.reasoning_effort,
        "response_format": _response_format(options.response_format, profile),
        "service_tier": options.service_tier,
        "user": options.user,
        "stream": True if stream else None,
        "stream_options": {"include_usage": True} if stream and profile.stream_usage else None,
    }
    body.update((key, value) for key, value in given.items() if value is not None)
    body.update(options.extra_body or {})
    return body


ENCODER = Encoder(
    "openai-chat/1",
    build_request,
    profile=(
        "parts",
        "max_tokens_field",
        "system_role",
        "single_system",
        "alternate_roles",
        "null_content",
        "tool_name_field",
        "call_id_style",
        "stream_usage",
        "replay_reasoning",
        "response_format",
        "strict_tools",
    ),
    texts=("continued", "empty_message", "tool_empty"),
)


def left_out(options: ModelOptions, profile: ModelProfile) -> list[str]:
    """Return the options that are set and have no place in this profile's requests."""
    names = [name for name in UNKNOWN_OPTIONS if getattr(options, name) is not None]
    asked = options.response_format
    if asked is not None and _response_format(asked, profile) is None:
        names.append("response_format")
    return names


def allows_strict(schema: Any) -> bool:
    """Say whether all objects of a schema are closed and require all of their properties."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties")
        if isinstance(properties, Mapping) or schema.get("type") == "object":
            names = set(properties or ())
            closed = schema.get("additionalProperties") is False
            if not closed or set(schema.get("required", ())) != names:
                return False
        return all(allows_strict(value) for value in schema.values())
    return all(allows_strict(item) for item in schema) if isinstance(schema, list) else True


def _response_format(value: Any, profile: ModelProfile) -> Any:
    kind = value.get("type") if isinstance(value, Mapping) else None
    return value if kind in _FORMATS[profile.response_format] else None


def _tools(request: ModelRequest, profile: ModelProfile, options: ModelOptions) -> dict[str, Any]:
    choice = request.tool_choice
    if isinstance(choice, Named) and choice.name not in {tool.name for tool in request.tools}:
        message = f"tool_choice: expected an offered tool, got {choice.name!r}"
        raise ModelError("invalid_request", message)
    if choice == "none" or not request.tools:
        return {}
    out: dict[str, Any] = {"tools": [_tool(spec, profile) for spec in request.tools]}
    if isinstance(choice, Named):
        out["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice == "required":
        out["tool_choice"] = "required"
    if options.parallel_tool_calls is not None:
        out["parallel_tool_calls"] = options.parallel_tool_calls
    return out


def _tool(spec: ToolSpec, profile: ModelProfile) -> dict[str, Any]:
    schema = dict(spec.schema)
    if "type" not in schema:
        schema = {"type": "object", "properties": {}, **schema}
    function: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": schema,
    }
    if profile.strict_tools and allows_strict(schema):
        function["strict"] = True
    return {"type": "function", "function": function}


class _Messages:
    """The message list of one request."""

    def __init__(self, request: ModelRequest, profile: ModelProfile, provider: str) -> None:
        self._request, self._profile, self._texts = request, profile, request.texts
        self._rules = PartRules(profile, provider)

    def build(self) -> list[dict[str, Any]]:
        """Return the list, system text first."""
        profile = self._profile
        hoists = profile.single_system or profile.system_role == "user"
        first, rest = list(self._request.system), []
        for message in self._request.messages:
            if message.role is Role.SYSTEM and hoists:
                first.append(self._rules.text(message.for_model(), "system"))
            elif (wire := self._message(message)) is not None:
                rest.append(wire)
        if profile.alternate_roles:
            rest = self._alternating(rest)
        system = "\n".join(text for text in first if text.strip())
        if not system:
            return rest
        if profile.system_role == "user":
            return _folded(system, rest)
        return [{"role": profile.system_role, "content": system}, *rest]

    def _message(self, message: Message) -> dict[str, Any] | None:
        if message.role is Role.USER:
            return {"role": "user", "content": self._user_content(message)}
        if message.role is Role.ASSISTANT:
            return self._assistant(message)
        if message.role is Role.TOOL:
            return self._result(message)
        text = self._rules.text(message.for_model(), "system")
        return {"role": self._profile.system_role, "content": text} if text.strip() else None

    def _user_content(self, message: Message) -> str | list[dict[str, Any]]:
        content = message.for_model()
        if content is None or isinstance(content, str):
            return content if content and content.strip() else self._texts.empty_message
        return self._rules.parts(content, "user") or self._texts.empty_message

    def _assistant(self, message: Message) -> dict[str, Any] | None:
        content = message.for_model()
        said: Any = content
        if isinstance(content, tuple):
            parts = self._rules.parts(content, "assistant")
            plain = all(part["type"] == "text" for part in parts)
            said = "".join(part["text"] for part in parts) if plain else parts
        if isinstance(said, str) and not said.strip():
            said = None
        if said is None and not message.tool_calls:
            return None
        empty = None if self._profile.null_content else ""
        out = {"role": "assistant", "content": empty if said is None else said}
        if self._replays(message):
            out["reasoning_content"] = message.reasoning or ""
        if message.tool_calls:
            out["tool_calls"] = [self._call(call) for call in message.tool_calls]
        return out

    def _replays(self, message: Message) -> bool:
        wanted = self._profile.replay_reasoning
        return not message.incomplete and (
            wanted == "always" or (wanted == "tool_calls" and bool(message.tool_calls))
        )

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": _wire_name(call.name), "arguments": _arguments(call)}
        return {"id": self._call_id(call.id), "type": "function", "function": function}

    def _result(self, message: Message) -> dict[str, Any]:
        text = self._rules.text(message.for_model(), "tool")
        out = {"role": "tool", "tool_call_id": self._call_id(message.tool_call_id or "")}
        if self._profile.tool_name_field:
            out["name"] = _wire_name(message.name or "")
        return {**out, "content": text if text.strip() else self._texts.tool_empty}

    def _call_id(self, call_id: str) -> str:
        if self._profile.call_id_style == "any" or re.fullmatch("[A-Za-z0-9]{9}", call_id):
            return call_id
        number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest()[:8])
        digits = (number // len(_ALPHABET) ** place for place in range(9))
        return "".join(_ALPHABET[digit % len(_ALPHABET)] for digit in digits)

    def _alternating(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Merge neighbours of one role, and let a user begin, as strict chat templates demand."""
        out: list[dict[str, Any]] = []
        for message in messages:
            if not out and message["role"] == "assistant":
                out.append({"role": "user", "content": self._texts.continued})
            if out and out[-1]["role"] == message["role"] != "tool":
                out[-1] = _merged(out[-1], message)
            else:
                out.append(message)
        return out


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    contents = [m["content"] for m in (first, second) if m["content"]]
    out = {**first, "content": _joined(contents) if contents else first["content"]}
    reasons = [m["reasoning_content"] for m in (first, second) if m.get("reasoning_content")]
    if reasons:
        out["reasoning_content"] = "\n\n".join(reasons)
    calls = [*first.get("tool_calls", ()), *second.get("tool_calls", ())]
    return {**out, "tool_calls": calls} if calls else out


def _joined(contents: list[Any]) -> Any:
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents)
    lists = ([_text_part(c)] if isinstance(c, str) else c for c in contents)
    return [part for parts in lists for part in parts]


def _folded(system: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the system text in front of the first user message, for servers without that role."""
    for n, message in enumerate(messages):
        if message["role"] == "user":
            whole = {**message, "content": _joined([system, message["content"]])}
            return [*messages[:n], whole, *messages[n + 1 :]]
    return [{"role": "user", "content": system}, *messages]


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _arguments(call: ToolCall) -> str:
    if call.args is None:
        return canonical_json({"invalid_arguments": call.raw or ""})
    return call.raw if call.raw is not None else canonical_json(call.args)


def _wire_name(name: str) -> str:
    """Return a name that servers take, also for one that the model made up."""
    return _NAME.sub("_", name)[:64] or "_"
