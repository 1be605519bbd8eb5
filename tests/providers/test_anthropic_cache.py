"""Cache marks: exactly where a strategy says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backscroll.kernel.message import Blocks, assistant, tool_call, tool_result, user
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.anthropic_messages import FORMAT
from backscroll.providers.anthropic_request import build_request
from backscroll.providers.wire import WireConfig

THOUGHT = ({"type": "text", "text": "a"}, {"type": "redacted_thinking", "data": "x"})
HISTORY = (
    user("q1"),
    assistant(None, (tool_call("c1", "t"), tool_call("c2", "t"))),
    tool_result("c1", "t", "r1"),
    tool_result("c2", "t", "r2"),
    user("q2"),
    assistant("a").replace(blocks=Blocks(FORMAT, THOUGHT, "anthropic")),
    user("q3"),
)
TOOLS = (ToolSpec("t", "d", {"type": "object"}), ToolSpec("u", "d", {"type": "object"}))


def marked(cache: Cache | None, **more: Any) -> list[str]:
    """Return the places that carry a mark: system, tools[n], messages[n][m]."""
    options = ModelOptions(cache=cache)
    given: dict[str, Any] = {"system": ("s",), "tools": TOOLS, "messages": HISTORY, **more}
    body = build_request(ModelRequest(options=options, **given), ModelProfile(), CONFIG)
    found = ["system" for block in body.get("system", ()) if "cache_control" in block]
    tools = body.get("tools", ())
    found += [f"tools[{n}]" for n, tool in enumerate(tools) if "cache_control" in tool]
    for n, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [f"[{n}][{m}]" for m, block in enumerate(blocks) if "cache_control" in block]
    return found


CONFIG = WireConfig("m", "anthropic")


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("none", []),
        ("unheard-of", []),
        ("system", ["system"]),
        ("tools", ["tools[1]"]),
        ("system_and_tools", ["system", "tools[1]"]),
        ("conversation", ["[4][0]"]),
        ("tool_results", ["[2][1]"]),
        ("system_and_conversation", ["system", "[4][0]"]),
        ("stable", ["system", "tools[1]"]),
    ],
)
def test_a_strategy_marks_exactly_its_places(strategy: str, expected: list[str]) -> None:
    """ANT12: each strategy marks the blocks it names and no other."""
    assert marked(Cache(strategy)) == expected


def test_nothing_is_marked_by_default() -> None:
    """ANT12: without a setting there is no mark anywhere."""
    assert marked(None) == []


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((0,), ["[0][0]"]),
        ((2,), ["[2][0]"]),
        ((4, 0), ["[0][0]", "[2][2]"]),
        ((5,), ["[3][0]"]),
        ((99,), []),
        ((0, 1, 2, 3), ["[0][0]", "[1][1]"]),
    ],
)
def test_stable_marks_the_places_compaction_names(at: tuple[int, ...], expected: Any) -> None:
    """The end of system and tools, and the named messages; at most four marks in all.

    A block that cannot carry a mark passes it to the one before.
    """
    assert marked(Cache("stable", at=at)) == ["system", "tools[1]", *expected]


def test_missing_places_take_no_mark() -> None:
    """Without system text, tools or results the rest is marked all the same."""
    plain: dict[str, Any] = {"system": (), "tools": (), "messages": (user("q"),)}

    assert marked(Cache("stable", at=(0,)), **plain) == ["[0][0]"]
    assert marked(Cache("tool_results"), **plain) == []
    assert marked(Cache("conversation"), system=(), tools=(), messages=()) == []


def test_a_mark_has_its_lifetime_and_changes_nothing_stored() -> None:
    """`ttl` goes along; the message's own blocks stay as they were."""
    kept = assistant("a").replace(blocks=Blocks(FORMAT, THOUGHT, "anthropic"))
    options = ModelOptions(cache=Cache("stable", "1h", (1,)))
    request = ModelRequest((user("q"), kept, user("r")), options=options)

    body = build_request(request, ModelProfile(), CONFIG)

    control = {"type": "ephemeral", "ttl": "1h"}
    assert body["messages"][1]["content"][0] == {**THOUGHT[0], "cache_control": control}
    assert "cache_control" not in json.dumps(kept.to_dict())
