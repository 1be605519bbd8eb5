"""One assembly with everything in it, from the question to the corrected answer."""

from __future__ import annotations

from typing import Any

from agent.agents import Events, QuickClock
from backscroll.agent.agent import Agent
from backscroll.agent.events import Reported
from backscroll.compaction.filter import Compaction
from backscroll.filters.logs import ToolLogger
from backscroll.filters.retrieval import Document, Retrieval
from backscroll.filters.safeguard import Safeguard
from backscroll.filters.structured_output import StructuredOutput
from backscroll.filters.tool_search import SLOT, ToolSearch
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import Message
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import Slot, ToolResult, tool
from played_model import StreamingModel, call, calls, sent
from pydantic import BaseModel


class Answer(BaseModel):
    """What the shop answers."""

    status: str


class Handbook:
    """A retriever of one passage."""

    async def retrieve(self, query: str, k: int) -> list[Document]:
        """Return the passage."""
        return [Document("Orders are kept for a year.")]


@tool
async def find_order(number: str) -> ToolResult:
    """Look up one order."""
    return ToolResult({"number": number, "status": "paid"}, writes={"receipts": number})


@tool(sensitive=True)
async def pay(amount: int) -> str:
    """Pay an amount."""
    return "paid"


def shop(script: Any, log: list[str], *more: Filter) -> Agent:
    """Return the agent of the shop."""
    profile = ModelProfile(context_window=32_000, response_format="json_schema")
    return Agent(
        name="shop",
        model=StreamingModel(script, profile=profile),
        instructions="You help the customers of a bicycle shop.",
        tools=[find_order, pay],
        filters=[
            Safeguard(["bomb"]),
            Retrieval(Handbook(), k=4),
            StructuredOutput(Answer, max_retries=2),
            ToolLogger(log.append),
            *more,
        ],
        compaction=Compaction(summariser=None),
        tool_search=ToolSearch(limit=5),
        slots={"receipts": Slot(list, lambda seen, new: [*seen, new])},
        eligible=lambda response, context: context.get("budget", 1) > 0,
        clock=QuickClock(),
    )


SCRIPT = [
    calls(call("search_tools", {"query": "order"}, "c1")),
    calls(call("find_order", {"number": "A-1042"}, "c2")),
    "It is paid.",
    '{"status": "paid"}',
]


def parts(messages: Any) -> list[tuple[str, str]]:
    """Return messages as role and what a model reads, calls by name."""
    return [(str(m.role), _said(m)) for m in messages]


def _said(message: Message) -> str:
    return ",".join(c.name for c in message.tool_calls) or str(message.for_model())


async def test_a_blocked_word() -> None:
    """END1: no event but the two of the turn, and an empty store."""
    agent, events = shop([], []), Events()

    result = await agent.invoke("a bomb", conversation_id="t", on_event=events)

    assert result.blocked_by == "safeguard"
    assert events.kinds() == ["TurnStarted", "TurnEnded"]
    assert await agent.memory.get("t") == []


async def test_what_each_call_is_sent() -> None:
    """END2, AG3: the question is augmented once, feedback is not; found tools are shown."""
    log: list[str] = []
    agent = shop(SCRIPT, log)

    result = await agent.invoke("Where is order A-1042?", conversation_id="t")

    assert isinstance(agent.model, StreamingModel)
    requests = agent.model.requests
    assert [[tool.name for tool in r.tools] for r in requests] == [
        ["search_tools"],
        *[["search_tools", "find_order"]] * 3,
    ]
    assert len({sent(r)[0] for r in requests}) == 1
    assert "<context>\nOrders are kept for a year.\n</context>" in sent(requests[0])[0]
    assert "<context>" not in sent(requests[3])[-1]
    assert {r.system for r in requests} == {("You help the customers of a bicycle shop.",)}
    assert all(r.options.response_format["type"] == "json_schema" for r in requests)  # type: ignore[index]
    assert [line.split(" ")[0] for line in log] == ["search_tools"] * 2 + ["find_order"] * 2
    assert result.output == Answer(status="paid")


async def test_what_is_stored_and_returned() -> None:
    """END2: the history in order, with what was said; slots, records and usage in the result."""
    agent = shop(SCRIPT, [])

    result = await agent.invoke("Where is order A-1042?", conversation_id="t")

    stored = await agent.memory.get("t")
    feedback = stored[6]
    assert [(str(m.role), m.content) for m in stored if not m.tool_calls] == [
        ("user", "Where is order A-1042?"),
        (
            "tool",
            "Found 1 tools. They can be called from your next step:\n"
            "- find_order: Look up one order.",
        ),
        ("tool", '{"number":"A-1042","status":"paid"}'),
        ("assistant", "It is paid."),
        ("user", feedback.content),
        ("assistant", '{"status": "paid"}'),
    ]
    assert feedback.origin == "filter:structured_output"
    assert stored[0].rewritten_by == ("retrieval",)
    assert result.context["receipts"] == ["A-1042"]
    assert result.context[SLOT] == ["find_order"]
    assert (len(result.records), len(result.usage), result.iterations) == (2, 4, 4)
    assert list(result.new_messages) == stored


async def test_the_events() -> None:
    """END2: one reply after the other, tools between them, the end last."""
    agent, events = shop(SCRIPT, []), Events()

    await agent.invoke("Where is order A-1042?", conversation_id="t", on_event=events)

    asked = ["IterationStarted", "CallStarted", "ToolCallOpened", "ToolCallArgs", "ToolCallClosed"]
    ran = ["CallFinished", "ToolStarted", "ToolFinished", "ContextChanged"]
    said = ["IterationStarted", "CallStarted", "TextDelta", "CallFinished"]
    kinds = [type(event).__name__ for event in events.all if not isinstance(event, Reported)]
    once = [kind for n, kind in enumerate(kinds) if n == 0 or kinds[n - 1] != kind]
    assert once == ["TurnStarted", *(asked + ran) * 2, *said * 2, "TurnEnded"]


async def test_nesting() -> None:
    """AG3: turn, chat and tool hooks see the request in the order of the assembly."""
    seen: dict[str, list[Any]] = {"turn": [], "chat": [], "tool": []}

    async def turn(request: Any, chain: Any) -> Any:
        seen["turn"].append(len(request.messages))
        return await chain(request)

    async def chat(request: Any, chain: Any) -> Any:
        seen["chat"].append((len(request.messages), len(request.tools)))
        return await chain(request)

    async def run(request: Any, chain: Any) -> Any:
        seen["tool"].append(request.tool.name)
        return await chain(request)

    agent = shop(SCRIPT, [], Filter.of("probe", turn=turn, chat=chat, tool=run))

    await agent.invoke("Where is order A-1042?", conversation_id="t")

    assert seen["turn"] == [1, 1]
    assert seen["chat"] == [(1, 1), (3, 2), (5, 2), (7, 2)]
    assert seen["tool"] == ["search_tools", "find_order"]
