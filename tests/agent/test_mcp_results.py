"""What MCP servers say becomes names a model can call, and contents."""

from __future__ import annotations

import re
from typing import Any

import pytest
from backscroll.agent.mcp_results import content_of, description_of, offered_names
from backscroll.kernel.content import FilePart, TextPart
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, Tool, ToolAnnotations

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def result(*blocks: dict[str, Any], structured: Any = None) -> CallToolResult:
    """Return a result as it comes from a server."""
    return CallToolResult.model_validate({"content": blocks, "structuredContent": structured})


def text(value: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": value}


def test_names() -> None:
    """What may not be in a name is replaced; a name that is taken gets a number."""
    assert offered_names(["files.list", "files/list", "add"]) == [
        "files_list", "files_list_2", "add",
    ]  # fmt: skip
    assert offered_names(["add"], prefix="calc") == ["calc_add"]
    assert offered_names(["x" * 70, "x" * 80]) == ["x" * 64, "x" * 62 + "_2"]


@given(st.lists(st.text(max_size=70)), st.sampled_from(["", "p", "a.b"]))
def test_any_names(names: list[str], prefix: str) -> None:
    """Each name gets one that a tool may have, and no two are equal."""
    offered = offered_names(names, prefix)

    assert len(set(offered)) == len(offered) == len(names)
    assert all(NAME.fullmatch(name) for name in offered)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"description": "Adds"}, "Adds"),
        ({"description": " ", "title": "Adder"}, "Adder"),
        ({"annotations": ToolAnnotations(title="Sum")}, "Sum"),
        ({}, "add"),
    ],
)
def test_descriptions(members: dict[str, Any], said: str) -> None:
    """A tool without a description has its title or its name for one."""
    assert description_of(Tool(name="add", input_schema={}, **members)) == said


def test_texts() -> None:
    """Several texts are lines; no content is empty text."""
    assert content_of(result(text("a"), text("b"))) == "a\nb"
    assert content_of(result()) == ""


@pytest.mark.parametrize(
    ("texts", "structured", "content"),
    [
        ([], {"a": 1}, {"a": 1}),
        (['{"a": 1}'], {"a": 1}, '{"a": 1}'),
        (["3"], {"result": 3}, "3"),
        (["3"], {"result": "3"}, "3"),
        (["x", "y"], {"result": ["x", "y"]}, "x\ny"),
        (["Found it."], {"a": "ü"}, 'Found it.\n{"a":"ü"}'),
    ],
)
def test_structured_content(texts: list[str], structured: Any, content: Any) -> None:
    """A structured value is added as JSON, unless the text says the same."""
    assert content_of(result(*map(text, texts), structured=structured)) == content


def test_files() -> None:
    """Images, sounds and binary resources are parts; text and links are text."""
    found = content_of(
        result(
            text("a"),
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///x/a.bin", "blob": "AA=="}},
            {"type": "resource", "resource": {"uri": "file:///x/a.txt", "text": "inside"}},
            {"type": "resource_link", "uri": "file:///y", "name": "why"},
        )
    )

    assert found == (
        TextPart("a"),
        FilePart("image/png", data="AA=="),
        FilePart("audio/wav", data="AA=="),
        FilePart("application/octet-stream", data="AA==", filename="a.bin"),
        TextPart("inside"),
        TextPart("why: file:///y"),
    )
