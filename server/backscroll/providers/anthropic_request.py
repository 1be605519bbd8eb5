"""A neutral request as a messages body: pure, and equal input gives equal bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from backscroll.kernel.errors import ModelError
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.providers.anthropic_cache import mark
from backscroll.providers.anthropic_messages import Conversation, Turn, has_tool_blocks, plain
from backscroll.providers.anthropic_schema import answer_schema, input_schema
from backscroll.providers.anthropic_thinking import sampling, settle
from backscroll.providers.wire import Encoder, WireConfig

DEFAULT_MAX_TOKENS = 4096

UNKNOWN_OPTIONS = ("seed", "reasoning_effort")
"""Options that this wire has no place for."""


def build_request(
    request: ModelRequest, profile: ModelProfile, config: WireConfig, stream: bool = False
) -> dict[str, Any]:
    """Return the body, its keys in the order in which they are sent."""
    options = request.options.over(config.options)
    conversation = Conversation(request, profile, config.provider)
    parts = {
        "system": conversation.system(),
        "messages": conversation.messages(),
        **_tools(request, profile, options, conversation),
    }
    mark(parts, conversation.places, options.cache)
    choice, limit = parts.get("tool_choice"), options.max_output_tokens or default_output(profile)
    thinking = settle(options.thinking, parts["messages"], choice, limit)
    stop = [text for text in options.stop or () if text.strip()]
    given = {
        "model": options.model or config.name,
        "max_tokens": limit,
        "system": plain(parts["system"]) or None,
        "messages": [_turn(turn) for turn in parts["messages"]],
        "tools": parts.get("tools"),
        "tool_choice": choice,
        **sampling(options, thinking),
        "stop_sequences": stop or None,
        "thinking": thinking,
        "output_config": _output_config(options.response_format, profile),
        "metadata": None if options.user is None else {"user_id": options.user},
        "service_tier": options.service_tier,
        "stream": True if stream else None,
    }
    body = {key: value for key, value in given.items() if value is not None}
    body.update(options.extra_body or {})
    return body


def default_output(profile: ModelProfile) -> int:
    """Return the maximum output that is sent where nobody asks for one."""
    return profile.max_output_tokens or DEFAULT_MAX_TOKENS


ENCODER = Encoder(
    "anthropic-messages/1",
    build_request,
    profile=("parts", "max_output_tokens", "response_format", "tools_with_history"),
    texts=("call_as_text", "continued", "empty_message", "result_as_text", "tool_empty"),
)


COUNTED = ("model", "system", "messages", "tools", "tool_choice", "thinking", "output_config")
"""What of a body makes up its prompt, and all that a request to count it may hold."""


def build_count(
    request: ModelRequest, profile: ModelProfile, config: WireConfig, stream: bool = False
) -> dict[str, Any]:
    """Return the body that asks how large the prompt of a request is."""
    body = build_request(request, profile, config, stream)
    return {name: body[name] for name in COUNTED if name in body}


COUNTER = dataclasses.replace(ENCODER, wire="anthropic-count/1", build=build_count)


def left_out(options: ModelOptions, profile: ModelProfile) -> list[str]:
    """Return the options that are set and have no place in this profile's requests."""
    names = [name for name in UNKNOWN_OPTIONS if getattr(options, name) is not None]
    asked = options.response_format
    if asked is not None and _output_config(asked, profile) is None:
        names.append("response_format")
    return names


def _output_config(value: Any, profile: ModelProfile) -> dict[str, Any] | None:
    if not isinstance(value, Mapping) or value.get("type") != "json_schema":
        return None
    if profile.response_format != "json_schema":
        return None
    inner = value.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    said = answer_schema(schema) if isinstance(schema, Mapping) else None
    return None if said is None else {"format": {"type": "json_schema", "schema": said}}


def _tools(
    request: ModelRequest, profile: ModelProfile, options: ModelOptions, said: Conversation
) -> dict[str, Any]:
    choice = request.tool_choice
    if isinstance(choice, Named) and choice.name not in {tool.name for tool in request.tools}:
        message = f"tool_choice: expected an offered tool, got {choice.name!r}"
        raise ModelError("invalid_request", message)
    if not request.tools or (choice == "none" and not has_tool_blocks(said.messages())):
        return {}
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": input_schema(tool.schema),
        }
        for tool in request.tools
    ]
    return {"tools": tools, "tool_choice": _choice(choice, options.parallel_tool_calls)}


def _choice(choice: Any, parallel: bool | None) -> dict[str, Any]:
    if isinstance(choice, Named):
        out: dict[str, Any] = {"type": "tool", "name": choice.name}
    else:
        out = {"type": {"auto": "auto", "required": "any", "none": "none"}[choice]}
    if parallel is False and choice != "none":
        out["disable_parallel_tool_use"] = True
    return out


def _turn(turn: Turn) -> Turn:
    """Write a user turn that is one plain text as text; replies stay lists."""
    return {**turn, "content": plain(turn["content"])} if turn["role"] == "user" else turn
