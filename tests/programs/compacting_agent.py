"""Agents with a small window for tests to serve; the model is whatever OPENAI_BASE_URL names."""

from __future__ import annotations

from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.kernel.tool import tool


@tool(idempotent=True)
def report(pages: int) -> str:
    """Return a report of so many pages."""
    return "\n".join(
        f"page {n}: " + "the figures of the week are as expected. " * 8 for n in range(pages)
    )


def _agent(name: str, compaction: Compaction) -> Agent:
    return Agent(
        name=name,
        model="openai:scripted",
        instructions="You write reports.",
        tools=[report],
        compaction=compaction,
    )


summarising = _agent("summarising", Compaction(ExtractiveSummariser(), window=4000))
dropping = _agent("dropping", Compaction(None, window=4000))
failing = _agent("failing", Compaction("own", window=4000))
