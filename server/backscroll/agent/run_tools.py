"""Running tools for a loop written by hand: a batch without a gate, always in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backscroll.agent.batch import Batch, Tooling, execute_batch
from backscroll.agent.executors import SequentialExecutor
from backscroll.kernel.client import ChatClient, Job, ToolExecutor
from backscroll.kernel.message import ToolCall
from backscroll.kernel.request import ToolResponse


async def run_tools(
    client: ChatClient, calls: Sequence[ToolCall], context: Mapping[str, Any]
) -> Batch:
    """Run calls for a hand-written loop: no gate, always in order."""
    executor = client.executor or SequentialExecutor()
    try:
        tooling = Tooling(client, client.tools, _InOrder(executor))
        return await execute_batch(tooling, calls, context)
    finally:
        if client.executor is None:
            await executor.aclose()


class _InOrder:
    """An executor that runs every batch in order."""

    def __init__(self, inner: ToolExecutor) -> None:
        self._inner, self.timeout_s = inner, inner.timeout_s

    async def run(self, jobs: Sequence[Job], *, serial: bool) -> list[ToolResponse]:
        return await self._inner.run(jobs, serial=True)

    async def call(self, function: Callable[[], Any]) -> Any:
        return await self._inner.call(function)

    async def aclose(self) -> None:
        await self._inner.aclose()
