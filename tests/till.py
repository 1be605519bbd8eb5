"""A till whose tools ask before they pay or write: what tests of approvals work with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from backscroll.agui.input import ResumeEntry
from backscroll.kernel.tool import Tool, tool
from backscroll.runs.answering import Answered
from backscroll.runs.worker import Worker
from played_model import StreamingModel, call
from working import agent_of, key, working

PAY = call("pay", {"to": "ann", "amount": 10})
MAIL = call("mail", {"to": "bob"})
ADD = call("add", {"a": 1, "b": 2})
PICK = call("pick", {})
OFFERED = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]
YES: dict[str, Any] = {"approved": True}


class Till:
    """Tools that count what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self) -> list[Tool]:
        """Return pay and mail, which ask, and add, which does not."""

        @tool(sensitive=True)
        def pay(to: str, amount: int) -> str:
            """Pay somebody."""
            self.done.append(f"pay {to} {amount}")
            return "paid"

        @tool(sensitive=True)
        def mail(to: str) -> str:
            """Write to somebody."""
            self.done.append(f"mail {to}")
            return "sent"

        @tool
        def add(a: int, b: int) -> int:
            """Add."""
            self.done.append("add")
            return a + b

        return [pay, mail, add]


def model_of(*script: Any) -> StreamingModel:
    """Return a model that plays a script."""
    return StreamingModel(script)


@asynccontextmanager
async def two_workers(
    model: StreamingModel, till: Till, url: str, prefix: str, **fields: Any
) -> AsyncIterator[tuple[Worker, Worker]]:
    """Run two workers of one agent on one Redis."""
    agents = [agent_of(model=model, tools=till.tools(), **fields) for _ in range(2)]
    async with working(agents[0], url, prefix) as one, working(agents[1], url, prefix) as other:
        yield one, other


def resume(**answers: Any) -> list[dict[str, Any]]:
    """Return resume entries; None cancels, anything else is the payload of a resolved one."""
    return [
        {"interruptId": f"call_{name}", "status": "resolved", "payload": payload}
        if payload is not None
        else {"interruptId": f"call_{name}", "status": "cancelled"}
        for name, payload in answers.items()
    ]


async def answer(worker: Worker, name: str, payload: Any, **more: Any) -> Answered:
    """Answer one question by a control frame."""
    status = "cancelled" if payload is None else "resolved"
    entry = ResumeEntry(f"call_{name}", status, payload)
    return await worker.registry.answers.answer(key(), entry, **more)


def results(found: list[Any]) -> dict[str, str]:
    """Return the results that clients were sent, by call."""
    return {e["toolCallId"]: e["content"] for e in found if e["type"] == "TOOL_CALL_RESULT"}
