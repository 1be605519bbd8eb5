"""Calls that are answered without running, and what the model is told."""

from __future__ import annotations

import json

from backscroll.kernel.canon import parse_json
from backscroll.kernel.errors import ToolFailure
from backscroll.kernel.message import ToolCall
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSet
from backscroll.kernel.tool_schema import Problem

NAMES_SHOWN = 50
"""How many tool names a model is told after it called one that does not exist."""

_JSON_NAMES: dict[type, str] = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
}


def unrunnable(
    call: ToolCall, tools: ToolSet, texts: Texts, is_cut: bool = False
) -> ToolResponse | None:
    """Return the result of a call that cannot run, or None when it can.

    `is_cut` says that the reply reached its length limit.
    """
    tool = tools.get(call.name)
    if tool is None:
        names = ", ".join(tools.names()[:NAMES_SHOWN]) or "none"
        return _refused(texts.tool_unknown.format(name=call.name, names=names))
    if call.args is None:
        if is_cut:
            return _refused(texts.tool_args_cut.format(name=call.name))
        problem = args_problem(call.raw or "")
        return _refused(texts.tool_args_not_object.format(name=call.name, problem=problem))
    checked = tool.check(call.args)
    if isinstance(checked, Problem):
        text = texts.tool_args_invalid.format(
            name=call.name, field=checked.field, problem=checked.problem
        )
        return _refused(text)
    return None


def args_problem(raw: str) -> str:
    """Say why an argument text is not a JSON object."""
    try:
        value = parse_json(raw)
    except json.JSONDecodeError as error:
        return f"{error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return f"expected an object, got {_JSON_NAMES.get(type(value), 'null')}"


def _refused(text: str) -> ToolResponse:
    return ToolResponse(text, error=ToolFailure("semantic", text), outcome="error")
