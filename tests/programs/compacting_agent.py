"""Agents with a small window for tests to serve; the model is whatever OPENAI_BASE_URL names."""

from __future__ import annotations

from backscroll.agent.agent import Agent
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.kernel.tool import tool

ITEMS = ("touring saddles", "bottle cages", "bar tapes", "front lamps", "steel chains")
TOWNS = ("Basel", "Lyon", "Torino", "Graz", "Ghent", "Porto", "Malmo")
STATES = ("paid", "packed", "shipped", "late")


@tool(idempotent=True)
def report(pages: int) -> str:
    """Return a report of so many pages, eight orders on each."""
    return "\n".join(
        f"page {n}: " + "; ".join(map(_order, range(8 * n, 8 * n + 8))) for n in range(pages)
    )


def _order(n: int) -> str:
    item, town, state = ITEMS[n % 5], TOWNS[n % 7], STATES[n % 11 % 4]
    return f"{n % 6 + 2} {item} to {town}, {state}"


def _agent(name: str, compaction: Compaction) -> Agent:
    return Agent(
        name=name,
        model="openai:scripted",
        instructions="You help the staff of a small bicycle shop. Be brief.",
        tools=[report],
        compaction=compaction,
    )


summarising = _agent("summarising", Compaction(ExtractiveSummariser(), window=4000))
dropping = _agent("dropping", Compaction(None, window=4000))
filling = _agent(
    "filling",
    Compaction(
        ExtractiveSummariser(),
        window=4000,
        reserve_output=100,
        micro_ratio=0.97,
        trigger_ratio=0.97,
    ),
)
failing = _agent("failing", Compaction("own", window=4000))
