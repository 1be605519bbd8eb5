"""The rules by which a strict messages server refuses a request, in its words."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
from provider_rules import NAME, Refused, Rules, no_constant, texts_in, unique_keys

CALL_ID = re.compile(r"[A-Za-z0-9_-]+")
TOP_KEYS = {
    "model", "max_tokens", "system", "messages", "tools", "tool_choice", "temperature", "top_p",
    "top_k", "stop_sequences", "thinking", "output_config", "metadata", "service_tier", "stream",
}  # fmt: skip
BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use"},
}
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def check_anthropic(raw: bytes, rules: Rules) -> dict[str, Any]:
    """Return the parsed body, or raise Refused with the sentence a real server would send."""
    try:
        body = json.loads(
            raw.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=no_constant
        )
    except ValueError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None
    if any("\ud800" <= char <= "\udfff" for text in texts_in(body) for char in text):
        raise Refused("The request body is not valid JSON: lone surrogate")
    for key in body:
        if key not in TOP_KEYS and key not in rules.extra_keys:
            raise Refused(f"{key}: Extra inputs are not permitted")
    if not body.get("model"):
        raise Refused("model: Field required")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise Refused("max_tokens: Field required")
    _check_system(body)
    _check_tools(body)
    _check_messages(body, rules)
    if raw.count(b'"cache_control"') > 4:
        raise Refused("A maximum of 4 blocks with cache_control may be provided.")
    return body


def _check_system(body: dict[str, Any]) -> None:
    system = body.get("system", "x")
    if isinstance(system, list) and system:
        for block in system:
            _check_text(block, "system")
    elif not isinstance(system, str) or not system.strip():
        raise Refused("system: text content blocks must be non-empty")


def _check_messages(body: dict[str, Any], rules: Rules) -> None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required")
    open_ids: list[str] = []
    for n, message in enumerate(messages):
        where, role = f"messages.{n}", message.get("role")
        if role not in BLOCKS or set(message) != {"role", "content"}:
            raise Refused(f"{where}: unexpected role or key: {sorted(message)}")
        if role != ("user", "assistant")[n % 2]:
            raise Refused(f'{where}: roles must alternate between "user" and "assistant"')
        blocks = _blocks(message, where)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _check_results(open_ids, results, blocks, where)
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(open_ids)) < len(open_ids):
            raise Refused(f"{where}: `tool_use` ids must be unique")
    if open_ids:
        raise Refused(_unanswered(f"messages.{len(messages) - 1}", open_ids))
    last = messages[-1]
    if last["role"] == "assistant" and _ends_blank(last):
        raise Refused("messages: final assistant content cannot end with trailing whitespace")
    has_tools = any(block["type"].startswith("tool_") for m in messages for block in _blocks(m, ""))
    if rules.tools_with_history and has_tools and "tools" not in body:
        raise Refused("Requests which include tool blocks must define tools")


def _blocks(message: dict[str, Any], where: str) -> list[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise Refused(f"{where}: all messages must have non-empty content")
    for block in content:
        if block.get("type") not in BLOCKS[message["role"]]:
            raise Refused(f"{where}.content: unexpected block {block.get('type')!r}")
        _CHECKS[block["type"]](block, f"{where}.content")
    kinds = [block["type"] for block in content]
    thinks = [n for n, kind in enumerate(kinds) if kind.endswith("thinking")]
    if thinks and "tool_use" in kinds and kinds.index("tool_use") < thinks[-1]:
        raise Refused(f"{where}: thinking blocks must come before tool_use blocks")
    return content


def _check_results(
    open_ids: list[str], results: list[str], blocks: list[dict[str, Any]], where: str
) -> None:
    missing = [call_id for call_id in open_ids if call_id not in results]
    if missing:
        raise Refused(_unanswered(where, missing))
    if any(call_id not in open_ids for call_id in results) or len(set(results)) < len(results):
        raise Refused(f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {results}")
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        raise Refused(f"{where}: `tool_result` blocks must come first")


def _unanswered(where: str, missing: list[str]) -> str:
    return (
        f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result`"
    )


def _check_text(block: dict[str, Any], where: str) -> None:
    if not isinstance(block.get("text"), str) or not block["text"].strip():
        raise Refused(f"{where}: text content blocks must contain non-whitespace text")


def _check_file(block: dict[str, Any], where: str) -> None:
    source = block.get("source") or {}
    kinds = IMAGES if block["type"] == "image" else ("application/pdf",)
    inline = source.get("type") == "base64" and source.get("media_type") in kinds
    if not (inline and source.get("data")) and not source.get("url") and not source.get("file_id"):
        raise Refused(f"{where}.source: Input should be one of {', '.join(kinds)}")


def _check_use(block: dict[str, Any], where: str) -> None:
    if not isinstance(block.get("id"), str) or not CALL_ID.fullmatch(block["id"]):
        raise Refused(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block.get("name"), str) or not NAME.fullmatch(block["name"]):
        raise Refused(f"{where}.tool_use.name: String should match pattern")
    if not isinstance(block.get("input"), dict):
        raise Refused(f"{where}.tool_use.input: Input should be a valid dictionary")


def _check_result(block: dict[str, Any], where: str) -> None:
    if not isinstance(block.get("tool_use_id"), str) or not block["tool_use_id"]:
        raise Refused(f"{where}.tool_result.tool_use_id: Field required")
    content = block.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for inner in content or ():
        if inner.get("type") not in ("text", "image"):
            raise Refused(f"{where}.tool_result.content: unexpected {inner.get('type')!r}")
        _CHECKS[inner["type"]](inner, f"{where}.tool_result.content")
    if not content:
        raise Refused(f"{where}.tool_result.content: empty")


def _check_thinking(block: dict[str, Any], where: str) -> None:
    fields = ("data",) if block["type"] == "redacted_thinking" else ("thinking", "signature")
    for name in fields:
        if not isinstance(block.get(name), str) or not block[name]:
            raise Refused(f"{where}: Invalid `{name}` in `{block['type']}` block")
    if "cache_control" in block:
        raise Refused(f"{where}: cache_control cannot be set for thinking blocks")


_CHECKS = {
    "text": _check_text,
    "image": _check_file,
    "document": _check_file,
    "tool_use": _check_use,
    "server_tool_use": _check_use,
    "tool_result": _check_result,
    "thinking": _check_thinking,
    "redacted_thinking": _check_thinking,
}


def _ends_blank(message: dict[str, Any]) -> bool:
    content = message["content"]
    text = content if isinstance(content, str) else content[-1].get("text", "x")
    return bool(text != text.rstrip())


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools")
    if tools is None:
        if "tool_choice" in body:
            raise Refused("tool_choice: may only be specified while providing tools")
        return
    names = [tool.get("name") for tool in tools]
    if not tools or len(set(names)) < len(names):
        raise Refused("tools: Tool names must be unique.")
    for tool in tools:
        if not isinstance(tool.get("name"), str) or not NAME.fullmatch(tool["name"]):
            raise Refused("tools.name: String should match pattern")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise Refused("tools.input_schema.type: Field required")
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise Refused(f"tools.input_schema: {error.message}") from None
    choice = body.get("tool_choice", {"type": "auto"})
    named = choice.get("type") == "tool" and choice.get("name") in names
    if choice.get("type") not in ("auto", "any", "none") and not named:
        raise Refused("tool_choice: Tool not found in provided tools")
