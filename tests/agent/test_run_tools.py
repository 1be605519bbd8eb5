"""Tools of a loop written by hand run in order, without a gate."""

from __future__ import annotations

import threading

from agent.agents import pair_of_tools
from backscroll.agent.executors import SequentialExecutor
from backscroll.agent.run_tools import run_tools
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.kernel.client import ChatClient
from backscroll.kernel.message import user
from backscroll.kernel.request import ChatRequest
from backscroll.kernel.tool import tool
from played_model import PlayedModel, call, calls


async def test_a_hand_written_loop() -> None:
    """RUN13: with a memory filter in the client, run_tools leaves a complete transcript."""
    trace: list[str] = []
    a, b = pair_of_tools(trace)
    memory = InMemoryChatMemory()
    model = PlayedModel([calls(call("a"), call("b")), "done"])
    client = ChatClient(model, [a, b], [MemoryFilter(memory)])
    context = {"conversation_id": "t"}

    reply = await client.chat(ChatRequest((user("hi"),), context=context))
    batch = await run_tools(client, reply.tool_calls, context)
    await client.chat(ChatRequest(batch.messages, context=batch.context))

    roles = [str(message.role) for message in await memory.get("t")]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert trace == ["a-start", "a-end", "b-start", "b-end"]


async def test_run_tools_uses_the_clients_executor() -> None:
    """Plain functions of a hand-written loop run on the client's executor, which stays open."""

    @tool
    def look() -> str:
        """Look."""
        return threading.current_thread().name

    client = ChatClient(tools=[look], executor=SequentialExecutor())

    for _ in range(2):
        batch = await run_tools(client, [call("look")], {})
        assert str(batch.messages[0].content).startswith("tool-")
