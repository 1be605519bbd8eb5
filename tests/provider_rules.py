"""The rules by which a strict chat completions server refuses a request, in its words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TOP_KEYS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens",
    "max_completion_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort",
    "response_format", "service_tier", "user", "stream", "stream_options",
}  # fmt: skip
MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal"},
    "tool": {"role", "content", "tool_call_id", "name"},
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs between strict servers.

    `reasoning`: "demand" wants it on messages with calls, "demand_turn" on every reply between two
    questions as soon as one of them has calls. `refused_keys` are not known to it,
    `reasoning_field` is the only name it takes reasoning under. `tool_choice`: "all", "words" (no
    object), "auto" (nothing may be forced). `formats` are the response formats taken. `call_id` is
    the form of call ids. `reply_after_tools`: no user speaks directly after a tool. `names` and
    `developer`: whether messages may have a name, and whether there is that role.
    """

    extra_keys: tuple[str, ...] = ()
    alternate: bool = False
    reasoning: Literal["allow", "refuse", "demand", "demand_turn"] = "allow"
    tools_with_history: bool = False
    signed: bool = True
    refused_keys: tuple[str, ...] = ()
    reasoning_field: str = "reasoning_content"
    tool_choice: Literal["all", "words", "auto"] = "all"
    formats: tuple[str, ...] = ("text", "json_object", "json_schema")
    call_id: str = ".+"
    reply_after_tools: bool = False
    names: bool = True
    developer: bool = True


class Refused(Exception):
    """The request breaks a rule; `param` names the place."""

    def __init__(self, message: str, param: str | None = None) -> None:
        self.param = param
        super().__init__(message)


def check_openai(raw: bytes, rules: Rules) -> dict[str, Any]:
    """Return the parsed body, or raise Refused with the sentence a real server would send."""
    try:
        body = json.loads(
            raw.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=no_constant
        )
    except ValueError as error:
        raise Refused(f"We could not parse the JSON body of your request: {error}") from None
    if not isinstance(body, dict):
        raise Refused("The JSON body of your request is not an object.")
    for text in texts_in(body):
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise Refused("Invalid body: a text holds a lone surrogate.")
    for key in body:
        if (key not in TOP_KEYS or key in rules.refused_keys) and key not in rules.extra_keys:
            raise Refused(f"Unrecognized request argument supplied: {key}", key)
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise Refused("you must provide a model parameter", "model")
    _check_tools(body, rules)
    _check_settings(body, rules)
    _check_messages(body, rules)
    return body


def _check_messages(body: dict[str, Any], rules: Rules) -> None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("[] is too short - 'messages'", "messages")
    for n, message in enumerate(messages):
        where = f"messages.[{n}]"
        if not isinstance(message, dict) or str(message.get("role")) not in _roles(rules):
            raise Refused(f"Invalid value for role: {message!r:.80}", f"{where}.role")
        unknown = set(message) - MESSAGE_KEYS[message["role"]] - {rules.reasoning_field}
        if not rules.names and "name" in message:
            unknown.add("name")
        if unknown:
            raise Refused(f"Additional properties are not allowed ({sorted(unknown)})", where)
        _CHECKS[message["role"]](message, where, n)
        _check_reasoning(message, where, rules)
    _check_pairs(messages)
    if rules.reasoning == "demand_turn":
        _check_turns(messages, rules)
    _check_call_ids(messages, rules)
    if rules.alternate:
        _check_alternation(messages)


def _roles(rules: Rules) -> set[str]:
    return set(MESSAGE_KEYS) - (set() if rules.developer else {"developer"})


def _check_system(message: dict[str, Any], where: str, n: int) -> None:
    if n:
        raise Refused("System message must be at the beginning.", where)
    _check_content(message, where, ("text",))


def _check_user(message: dict[str, Any], where: str, n: int) -> None:
    _check_content(message, where, ("text", "image_url", "input_audio", "file"))


def _check_assistant(message: dict[str, Any], where: str, n: int) -> None:
    calls = message.get("tool_calls")
    if "tool_calls" in message and (not isinstance(calls, list) or not calls):
        raise Refused("[] is too short", f"{where}.tool_calls")
    if message.get("content") is None and not calls:
        raise Refused("Invalid value for 'content': expected a string, got null.", where)
    if message.get("content") not in (None, "") or not calls:
        _check_content(message, where, ("text",))
    for call in calls or ():
        _check_call(call, f"{where}.tool_calls")


def _check_tool(message: dict[str, Any], where: str, n: int) -> None:
    if not isinstance(message.get("tool_call_id"), str) or not message["tool_call_id"]:
        raise Refused(f"Missing parameter '{where}.tool_call_id'.", f"{where}.tool_call_id")
    _check_content(message, where, ("text",))


_CHECKS = {
    "system": _check_system,
    "developer": _check_system,
    "user": _check_user,
    "assistant": _check_assistant,
    "tool": _check_tool,
}


def _check_content(message: dict[str, Any], where: str, kinds: tuple[str, ...]) -> None:
    content = message.get("content")
    place = f"{where}.content"
    if isinstance(content, str):
        if not content.strip():
            raise Refused("text content must be non-empty", place)
        return
    if not isinstance(content, list) or not content:
        raise Refused(f"Invalid type for '{place}': expected text or an array of parts.", place)
    for part in content:
        if not isinstance(part, dict) or part.get("type") not in kinds:
            kind = part.get("type") if isinstance(part, dict) else part
            raise Refused(f"Invalid content type {kind!r} in a {message['role']} message", place)
        problem = _part_problem(part)
        if problem:
            raise Refused(problem, place)


def _part_problem(part: dict[str, Any]) -> str | None:
    kind = part["type"]
    value = part.get(kind)
    if kind == "text":
        ok = isinstance(value, str) and bool(value.strip())
        return None if ok else "text content blocks must be non-empty"
    if not isinstance(value, dict):
        return f"Missing required parameter: '{kind}'"
    if kind == "image_url":
        ok = str(value.get("url", "")).startswith(("http://", "https://", "data:image/"))
        return None if ok else "Invalid image_url: expected a URL or a base64 data URI"
    if kind == "input_audio":
        ok = value.get("format") in ("wav", "mp3") and bool(value.get("data"))
        return None if ok else "Invalid input_audio: expected format wav or mp3"
    inline = str(value.get("file_data", "")).startswith("data:application/pdf;base64,")
    ok = bool(value.get("file_id")) or (inline and bool(value.get("filename")))
    return None if ok else "Invalid file: expected file_id, or file_data with a filename"


def _check_call(call: Any, where: str) -> None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or call.get("type") != "function":
        raise Refused("Invalid tool call: expected type function", where)
    if not isinstance(call.get("id"), str) or not call["id"]:
        raise Refused("Invalid tool call: empty id", where)
    if not isinstance(function.get("name"), str) or not NAME.fullmatch(function["name"]):
        raise Refused(f"Invalid 'function.name': {function.get('name')!r}", where)
    try:
        args = json.loads(function["arguments"], parse_constant=no_constant)
    except (KeyError, TypeError, ValueError):
        args = None
    if not isinstance(args, dict):
        raise Refused("Invalid 'function.arguments': expected a JSON object as text", where)


def _check_reasoning(message: dict[str, Any], where: str, rules: Rules) -> None:
    given = rules.reasoning_field in message
    if given and message["role"] != "assistant":
        raise Refused(f"Additional properties are not allowed ({rules.reasoning_field})", where)
    if given and rules.reasoning == "refuse":
        raise Refused(f"property '{rules.reasoning_field}' is unsupported: not permitted", where)
    if rules.reasoning == "demand" and message.get("tool_calls") and not given:
        raise Refused("Missing `reasoning_content` field in an assistant message", where)


def _check_turns(messages: list[dict[str, Any]], rules: Rules) -> None:
    """Once a turn has calls, none of its replies may lack the reasoning."""
    turn: list[dict[str, Any]] = []
    for message in [*messages, {"role": "user"}]:
        if message["role"] == "assistant":
            turn.append(message)
        elif message["role"] == "user":
            lacking = any(rules.reasoning_field not in reply for reply in turn)
            if lacking and any(reply.get("tool_calls") for reply in turn):
                raise Refused(
                    f"The `{rules.reasoning_field}` in the thinking mode must be passed back to "
                    "the API."
                )
            turn = []


def _check_pairs(messages: list[dict[str, Any]]) -> None:
    """Each call is answered once, directly after its message, before anything else."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for n, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                raise Refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceding message with 'tool_calls'.",
                    f"messages.[{n}].role",
                )
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            raise Refused(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each 'tool_call_id'. The following tool_call_ids did not have "
                f"response messages: {', '.join(open_ids)}",
                f"messages.[{n}].role",
            )
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(open_ids)) < len(open_ids) or seen & set(open_ids):
            raise Refused("Duplicate tool call id", f"messages.[{n}].tool_calls")
        seen |= set(open_ids)


def _check_call_ids(messages: list[dict[str, Any]], rules: Rules) -> None:
    before = None
    for n, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            if not re.fullmatch(rules.call_id, call["id"]):
                raise Refused(
                    f"Invalid 'tool_calls[0].id': Tool call id was {call['id']} but must be "
                    f"{rules.call_id}, got a string with length {len(call['id'])}.",
                    f"messages.[{n}].tool_calls",
                )
        if rules.reply_after_tools and (before, message["role"]) == ("tool", "user"):
            raise Refused("Unexpected role 'user' after role 'tool'", f"messages.[{n}].role")
        before = message["role"]


def _check_alternation(messages: list[dict[str, Any]]) -> None:
    before = None
    for role in (m["role"] for m in messages if m["role"] not in ("system", "developer")):
        if (before is None and role != "user") or (role == before and role != "tool"):
            raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")
        before = role


def _check_tools(body: dict[str, Any], rules: Rules) -> None:
    tools = body.get("tools")
    if tools is None:
        for key in ("tool_choice", "parallel_tool_calls"):
            if key in body:
                raise Refused(f"'{key}' is only allowed when 'tools' are specified.", key)
        return
    if not isinstance(tools, list) or not tools:
        raise Refused("[] is too short - 'tools'", "tools")
    names = [_check_tool_spec(tool, f"tools.[{n}]") for n, tool in enumerate(tools)]
    if len(set(names)) < len(names):
        raise Refused("Tool names must be unique.", "tools")
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, dict) and rules.tool_choice == "words":
        raise Refused(
            "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
            "tool_choice",
        )
    if choice != "auto" and rules.tool_choice == "auto":
        raise Refused("this model does not support this tool_choice", "tool_choice")
    if isinstance(choice, dict):
        if choice.get("type") != "function" or choice.get("function", {}).get("name") not in names:
            raise Refused("Tool choice names a tool that is not in 'tools'.", "tool_choice")
    elif choice not in ("auto", "none", "required"):
        raise Refused(f"Invalid value for 'tool_choice': {choice!r}", "tool_choice")


def _check_tool_spec(tool: Any, where: str) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type") != "function":
        raise Refused("Invalid tool: expected type function", where)
    name = function.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(f"Invalid '{where}.function.name': {name!r}", where)
    schema = function.get("parameters")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        kind = schema.get("type") if isinstance(schema, dict) else None
        raise Refused(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of "
            f"'type: \"object\"', got 'type: \"{kind}\"'.",
            where,
        )
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise Refused(f"Invalid schema for function '{name}': {error.message}", where) from None
    if function.get("strict"):
        _check_strict(schema, name, where)
    return name


def _check_strict(schema: Any, name: str, where: str) -> None:
    """Strict tools: every object is closed and requires all of its properties."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            closed = schema.get("additionalProperties") is False
            if not closed or set(schema.get("required", ())) != set(properties):
                raise Refused(
                    f"Invalid schema for function '{name}': 'required' must list every property "
                    "and 'additionalProperties' must be false.",
                    where,
                )
        for value in schema.values():
            _check_strict(value, name, where)
    elif isinstance(schema, list):
        for value in schema:
            _check_strict(value, name, where)


def _check_settings(body: dict[str, Any], rules: Rules) -> None:
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise Refused("Setting 'max_tokens' and 'max_completion_tokens' at the same time.")
    for key in ("max_tokens", "max_completion_tokens"):
        if key in body and (not isinstance(body[key], int) or body[key] < 1):
            raise Refused(f"{key} must be at least 1, got {body[key]}.", key)
    for key, most in (("temperature", 2), ("top_p", 1)):
        value = body.get(key, 0)
        if not isinstance(value, int | float) or not 0 <= value <= most:
            raise Refused(f"Invalid value for '{key}': expected 0 to {most}, got {value!r}.", key)
    if "stream_options" in body and not body.get("stream"):
        raise Refused(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
        )
    stop = body.get("stop", "x")
    if not isinstance(stop, str) and not (isinstance(stop, list) and 1 <= len(stop) <= 4):
        raise Refused("Invalid 'stop': expected 1 to 4 texts.", "stop")
    _check_format(body.get("response_format"), rules)


def _check_format(value: Any, rules: Rules) -> None:
    if value is None:
        return
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in rules.formats:
        known = " or ".join(f"'{name}'" for name in rules.formats)
        raise Refused(f"'response_format.type' must be {known}, got {kind!r}", "response_format")
    spec = value.get("json_schema")
    named = isinstance(spec, dict) and spec.get("name") and isinstance(spec.get("schema"), dict)
    if kind == "json_schema" and not named:
        raise Refused("Missing 'response_format.json_schema.name'.", "response_format")


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return out


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
