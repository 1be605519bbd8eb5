"""What an MCP server says, in our words: names of tools, contents of results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from backscroll.kernel.content import FilePart, Part, TextPart

if TYPE_CHECKING:
    from mcp.types import BlobResourceContents, CallToolResult, TextResourceContents
    from mcp.types import Tool as McpTool

LONGEST = 64
UNKNOWN_TYPE = "application/octet-stream"

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(names: Iterable[str], prefix: str = "") -> list[str]:
    """Return names a model can call, in order: `prefix_name`, unique, at most 64 characters.

    What may not be in a name becomes `_`; a name that is taken gets a number.
    """
    offered: dict[str, None] = {}
    for name in names:
        plain = _FORBIDDEN.sub("_", f"{prefix}_{name}" if prefix else name) or "_"
        found, number = plain[:LONGEST], 1
        while found in offered:
            number += 1
            found = f"{plain[: LONGEST - len(str(number)) - 1]}_{number}"
        offered[found] = None
    return list(offered)


def description_of(tool: McpTool) -> str:
    """Return what a model is told of a tool: its description, or else its title or name."""
    title = tool.title or (tool.annotations and tool.annotations.title)
    said = (text for text in (tool.description, title, tool.name) if text and text.strip())
    return next(said, tool.name)


def content_of(result: CallToolResult) -> Any:  # Any: text, parts, or a JSON value
    """Return a result's content: text, or parts where it holds files.

    Structured content is added as JSON, unless the text says the same.
    """
    parts = [_part(block) for block in result.content]
    structured = result.structured_content
    if structured is not None:
        if not parts:
            return structured
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        if not _say(texts, structured):
            written = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
            parts.append(TextPart(written))
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return tuple(parts)


def _part(block: Any) -> Part:  # Any: one of the kinds of content the mcp package knows
    if block.type == "text":
        return TextPart(block.text)
    if block.type in ("image", "audio"):
        return FilePart(block.mime_type, data=block.data)
    if block.type == "resource":
        return _resource(block.resource)
    return TextPart(f"{block.title or block.name}: {block.uri}")


def _resource(resource: TextResourceContents | BlobResourceContents) -> Part:
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return TextPart(text)
    uri = str(resource.uri)
    filename = uri.rstrip("/").rpartition("/")[2] or None
    blob: str = getattr(resource, "blob", "")
    return FilePart(resource.mime_type or UNKNOWN_TYPE, data=blob, filename=filename)


def _say(texts: Sequence[str], structured: Any) -> bool:
    """Say whether texts hold a structured value already, whole or as one text per item."""
    value = structured
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        # So servers wrap what is no object.
        value = structured["result"]
    read = [_read(text) for text in texts]
    return any(value in found or found == value for found in (read, list(texts))) or (
        structured in read
    )


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
