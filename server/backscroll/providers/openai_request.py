"""A neutral request as a chat completions body: pure, and equal input gives equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backscroll.kernel.errors import ModelError
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_messages import WireMessages
from backscroll.providers.wire import Encoder, WireConfig

UNKNOWN_OPTIONS = ("top_k", "thinking", "cache")
"""Options that this wire has no place for."""

_FORMATS: dict[str, tuple[str, ...]] = {
    "none": ("text",),
    "json_object": ("text", "json_object"),
    "json_schema": ("text", "json_object", "json_schema"),
}

_ANY_OBJECT = {"name": "answer", "schema": {"type": "object"}}


def build_request(
    request: ModelRequest, profile: ModelProfile, config: WireConfig, stream: bool = False
) -> dict[str, Any]:
    """Return the body, its keys in the order in which they are sent."""
    options = request.options.over(config.options)
    body: dict[str, Any] = {
        "model": options.model or config.name,
        "messages": WireMessages(request, profile, config.provider).build(),
        **_tools(request, profile, options),
    }
    given = {
        profile.max_tokens_field: options.max_output_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) if options.stop else None,
        "seed": options.seed,
        "reasoning_effort": options.reasoning_effort,
        "response_format": _response_format(options, profile),
        "service_tier": options.service_tier,
        "user": options.user,
        "stream": True if stream else None,
        "stream_options": {"include_usage": True} if stream and profile.stream_usage else None,
    }
    body.update((key, value) for key, value in given.items() if value is not None)
    names = profile.option_names
    renamed = {names.get(key, key): value for key, value in body.items()}
    kept = {key: value for key, value in renamed.items() if key is not None}
    return {**kept, **(options.extra_body or {})}


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
        "reasoning_field",
        "response_format",
        "json_object",
        "tool_choice",
        "reply_after_tools",
        "option_names",
        "strict_tools",
    ),
    texts=("continued", "empty_message", "tool_empty"),
)


def left_out(options: ModelOptions, profile: ModelProfile) -> list[str]:
    """Return the options that are set and have no place in this profile's requests."""
    names = [name for name in UNKNOWN_OPTIONS if getattr(options, name) is not None]
    if options.response_format is not None and _response_format(options, profile) is None:
        names.append("response_format")
    refused = [key for key, other in profile.option_names.items() if other is None]
    return names + [key for key in refused if getattr(options, key, None) is not None]


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


def _response_format(options: ModelOptions, profile: ModelProfile) -> Any:
    value = options.response_format
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "json_object" and not profile.json_object:
        kind, value = "json_schema", {"type": "json_schema", "json_schema": _ANY_OBJECT}
    return value if kind in _FORMATS[profile.response_format] else None


def _tools(request: ModelRequest, profile: ModelProfile, options: ModelOptions) -> dict[str, Any]:
    choice, tools = request.tool_choice, request.tools
    if isinstance(choice, Named) and choice.name not in {tool.name for tool in tools}:
        message = f"tool_choice: expected an offered tool, got {choice.name!r}"
        raise ModelError("invalid_request", message)
    if choice == "none" or not tools:
        return {}
    if isinstance(choice, Named) and profile.tool_choice != "all":
        # A server that cannot be told a name is offered this one tool.
        tools = tuple(tool for tool in tools if tool.name == choice.name)
        choice = "required"
    out: dict[str, Any] = {"tools": [_tool(spec, profile) for spec in tools]}
    if isinstance(choice, Named):
        out["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice == "required" and profile.tool_choice != "none":
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
