"""The rules by which a strict messages server refuses a request, in its words."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
from provider_rules import NAME, Refused, Rules, no_constant, texts_in, unique_keys
from provider_script_anthropic import sign

CALL_ID = re.compile(r"[A-Za-z0-9_-]+")
TOP_KEYS = {
    "model", "max_tokens", "system", "messages", "tools", "tool_choice", "temperature", "top_p",
    "top_k", "stop_sequences", "thinking", "output_config", "metadata", "service_tier", "stream",
}  # fmt: skip
COUNT_KEYS = {
    "model", "system", "messages", "tools", "tool_choice", "thinking", "output_config",
    "cache_control", "context_management", "mcp_servers", "speed",
}  # fmt: skip
SERVER_BLOCKS = {"server_tool_use", "web_search_tool_result"}
BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking", *SERVER_BLOCKS},
}
BLOCK_KEYS = {
    "text": {"text", "citations"},
    "image": {"source"},
    "document": {"source", "title", "context", "citations"},
    "tool_use": {"id", "name", "input", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def check_anthropic(raw: bytes, rules: Rules) -> dict[str, Any]:
    """Return the parsed body, or raise Refused with the sentence a real server would send."""
    body = _parsed(raw, TOP_KEYS, rules)
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise Refused("max_tokens: Field required")
    _check_content(raw, body, rules)
    _check_format(body.get("output_config", {}).get("format"))
    _check_sampling(body)
    _check_thinking_asked(body)
    return body


def check_count(raw: bytes, rules: Rules) -> dict[str, Any]:
    """Return the parsed body of a request to count tokens, or raise Refused."""
    body = _parsed(raw, COUNT_KEYS, rules)
    _check_content(raw, body, rules)
    return body


def _parsed(raw: bytes, keys: set[str], rules: Rules) -> dict[str, Any]:
    try:
        body = json.loads(
            raw.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=no_constant
        )
    except ValueError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused("Input should be an object")
    if any("\ud800" <= char <= "\udfff" for text in texts_in(body) for char in text):
        raise Refused("The request body is not valid JSON: lone surrogate")
    for key in body:
        if key not in keys and key not in rules.extra_keys:
            raise Refused(f"{key}: Extra inputs are not permitted")
    if not body.get("model"):
        raise Refused("model: Field required")
    return body


def _check_content(raw: bytes, body: dict[str, Any], rules: Rules) -> None:
    _check_system(body)
    _check_tools(body)
    _check_messages(body, rules)
    if raw.count(b'"cache_control"') > 4:
        raise Refused("A maximum of 4 blocks with cache_control may be provided.")


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
    seen: set[str] = set()
    for n, message in enumerate(messages):
        where, role = f"messages.{n}", message.get("role")
        if role not in BLOCKS or set(message) != {"role", "content"}:
            raise Refused(f"{where}: unexpected role or key: {sorted(message)}")
        if role != ("user", "assistant")[n % 2]:
            raise Refused(f'{where}: roles must alternate between "user" and "assistant"')
        blocks = _blocks(message, where)
        if rules.signed:
            _check_signatures(blocks, where)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _check_results(open_ids, results, blocks, where)
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(open_ids)) < len(open_ids) or seen & set(open_ids):
            raise Refused(f"{where}: `tool_use` ids must be unique")
        seen |= set(open_ids)
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
        _check_keys(block, f"{where}.content.{block['type']}")
        _CHECKS[block["type"]](block, f"{where}.content")
    kinds = [block["type"] for block in content]
    if kinds[-1] in ("thinking", "redacted_thinking"):
        raise Refused(f"{where}: The final block in an assistant message cannot be `{kinds[-1]}`.")
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
        _check_keys(inner, f"{where}.tool_result.content.{inner['type']}")
        _CHECKS[inner["type"]](inner, f"{where}.tool_result.content")
    if not content:
        raise Refused(f"{where}.tool_result.content: empty")


def _check_thinking(block: dict[str, Any], where: str) -> None:
    kind = block["type"]
    name = "data" if kind == "redacted_thinking" else "signature"
    if not isinstance(block.get(name), str) or not block[name]:
        raise Refused(f"{where}: Invalid `{name}` in `{kind}` block")
    if kind == "thinking" and not isinstance(block.get("thinking"), str):
        raise Refused(f"{where}.thinking.thinking: Field required")
    if "cache_control" in block:
        raise Refused(f"{where}: cache_control cannot be set for thinking blocks")


def _check_signatures(blocks: list[dict[str, Any]], where: str) -> None:
    """A thought goes back as it came: its signature was made of its text."""
    for n, block in enumerate(blocks):
        if block["type"] == "thinking" and block["signature"] != sign(block["thinking"]):
            raise Refused(f"{where}.content.{n}: Invalid `signature` in `thinking` block")


def _check_keys(block: dict[str, Any], where: str) -> None:
    known = BLOCK_KEYS.get(block["type"])
    extra = set() if known is None else set(block) - known - {"type", "cache_control"}
    if extra:
        raise Refused(f"{where}.{min(extra)}: Extra inputs are not permitted")
    mark = block.get("cache_control", {"type": "ephemeral"})
    if mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
        raise Refused(f"{where}.cache_control: Input should be 'ephemeral', ttl '5m' or '1h'")


def _check_any(block: dict[str, Any], where: str) -> None:
    """What the server's own tools left is taken as it is."""


_CHECKS = {
    "text": _check_text,
    "image": _check_file,
    "document": _check_file,
    "tool_use": _check_use,
    "server_tool_use": _check_use,
    "web_search_tool_result": _check_any,
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
        if {"oneOf", "allOf", "anyOf"} & schema.keys():
            raise Refused(
                "tools.input_schema: input_schema does not support oneOf, allOf, or anyOf at the "
                "top level"
            )
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise Refused(f"tools.input_schema: {error.message}") from None
    choice = body.get("tool_choice", {"type": "auto"})
    named = choice.get("type") == "tool" and choice.get("name") in names
    if choice.get("type") not in ("auto", "any", "none") and not named:
        raise Refused("tool_choice: Tool not found in provided tools")


ANSWER_KEYS = {
    "type", "title", "description", "default", "properties", "required", "additionalProperties",
    "items", "minItems", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions",
    "format",
}  # fmt: skip


def _check_format(value: Any) -> None:
    if value is None:
        return
    if value.get("type") != "json_schema" or not isinstance(value.get("schema"), dict):
        raise Refused("output_config.format.type: Input should be 'json_schema'")
    check_answer(value["schema"])


def check_answer(schema: Any) -> None:
    """What an answer may be held to: closed objects, no limits of numbers and lengths."""
    where = "output_config.format.schema"
    extra = set(schema) - ANSWER_KEYS
    if extra:
        raise Refused(f"{where}: property '{min(extra)}' is not supported")
    kind = schema.get("type")
    if kind == "object" and schema.get("additionalProperties") is not False:
        raise Refused(
            f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        )
    if kind is None and not schema.keys() & {"anyOf", "allOf", "$ref", "enum", "const"}:
        raise Refused(f"{where}: schema must have a type")
    if schema.get("minItems", 0) not in (0, 1):
        raise Refused(f"{where}: For 'array' type, 'minItems' values other than 0 or 1")
    inner = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    for name in ("properties", "$defs", "definitions"):
        inner += schema.get(name, {}).values()
    for value in (*inner, *([schema["items"]] if kind == "array" else [])):
        check_answer(value)


def _check_sampling(body: dict[str, Any]) -> None:
    for key, most in (("temperature", 1), ("top_p", 1)):
        value = body.get(key, 0)
        if not isinstance(value, int | float) or not 0 <= value <= most:
            raise Refused(f"{key}: range: 0..{most}")
    stop = body.get("stop_sequences", ["x"])
    if not isinstance(stop, list) or not all(text.strip() for text in stop):
        raise Refused("stop_sequences: each stop sequence must contain non-whitespace")


def _check_thinking_asked(body: dict[str, Any]) -> None:
    thinking = body.get("thinking", {"type": "disabled"})
    kind = thinking.get("type")
    if kind not in ("enabled", "disabled", "adaptive"):
        raise Refused("thinking: Input tag is none of 'enabled', 'disabled', 'adaptive'")
    if kind == "disabled":
        return
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        raise Refused("Thinking may not be enabled when tool_choice forces tool use.")
    if body.get("temperature", 1) != 1:
        raise Refused("`temperature` may only be set to 1 when thinking is enabled.")
    if "top_k" in body or body.get("top_p", 1) < 0.95:
        raise Refused("`top_k` and `top_p` below 0.95 must be unset when thinking is enabled.")
    if kind == "adaptive":
        return
    budget = thinking.get("budget_tokens", 0)
    if budget < 1024:
        raise Refused("thinking.enabled.budget_tokens: should be greater than or equal to 1024")
    if budget >= body["max_tokens"]:
        raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")
    _check_turn_thinks(body["messages"])


def _check_turn_thinks(messages: list[dict[str, Any]]) -> None:
    """Where results are answered, the turn they belong to must have begun with a thought."""
    begun = None
    for n, message in enumerate(messages):
        blocks = _blocks(message, "")
        if message["role"] == "assistant":
            begun = (n, blocks[0]["type"]) if begun is None else begun
        elif any(block["type"] != "tool_result" for block in blocks):
            begun = None
    if begun is not None and not begun[1].endswith("thinking"):
        raise Refused(
            f"messages.{begun[0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but "
            f"found `{begun[1]}`. When `thinking` is enabled, a final `assistant` message must "
            "start with a thinking block"
        )
