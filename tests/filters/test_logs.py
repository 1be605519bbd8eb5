"""Log lines about calls: so many, cut, and without secrets."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from agent.agents import agent_of
from backscroll.filters.logs import ChatLogger, ToolLogger
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import Named
from backscroll.kernel.tool import tool
from played_model import call, calls


@tool
async def look(at: str) -> str:
    """Look."""
    return f"saw\n{at}"


ROUND = calls(call("look", {"at": "k-secret " + "x" * 300}))


async def run(*filters: Any, answer: str = "a\nlong answer", **options: Any) -> None:
    """Run a turn with one round of a tool."""
    await agent_of(ROUND, answer, tools=[look], filters=filters).invoke("hi", **options)


async def test_tool_lines() -> None:
    """SM2: two lines per call, cut, on one line each, with secrets masked."""
    lines: list[str] = []

    await run(ToolLogger(lines.append, cut_chars=20, secrets=["k-secret"]))

    assert lines == ['look {"at":"*** xxxxxxxxx…', "look ok: saw *** xxxxxxxxxxxx…"]


async def test_chat_lines() -> None:
    """SM2: two lines per model call: counts, then calls or a preview."""
    lines: list[str] = []

    await run(ChatLogger(lines.append, preview_chars=6), tool_choice=Named("look"))

    assert lines == [
        "request: 1 messages, 1 tools, tool choice look",
        "reply: calls look",
        "request: 3 messages, 1 tools, tool choice auto",
        "reply: a long…",
    ]


async def test_nothing_is_cut() -> None:
    """SM2: None shows everything, of calls and of replies."""
    lines: list[str] = []
    loggers = ToolLogger(lines.append, cut_chars=None), ChatLogger(lines.append, None)

    await run(*loggers, answer="y" * 400)

    assert len(lines) == 2 + 4 and "…" not in "".join(lines)
    assert lines[3].endswith("x" * 300) and lines[5].endswith("y" * 400)


async def test_the_standard_loggers(caplog: Any) -> None:
    """Without a function the lines go to loggers of their own."""
    with caplog.at_level(logging.INFO, "backscroll"):
        await run(ToolLogger(), ChatLogger())

    names = [record.name for record in caplog.records]
    assert names.count("backscroll.tools") == 2
    assert names.count("backscroll.chat") == 4


def test_wrong_options() -> None:
    """A limit is a whole number above 0, or None."""
    for wrong in (0, "100", -1):
        with pytest.raises(AssemblyError):
            ToolLogger(cut_chars=wrong)  # type: ignore[arg-type]
