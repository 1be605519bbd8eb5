"""What an agent is put together from is checked and chained once."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from agent.agents import agent_of, lines, model_of
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import Filter
from backscroll.kernel.message import user
from backscroll.kernel.model import ModelOptions, Named
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import tool
from played_model import PlayedModel, call, calls


@tool
async def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"max_iterations": -1}, "invalid_option"),
        ({"tools": [look, look]}, "duplicate_tool"),
        ({"tools": [lambda: 1]}, "invalid_tool"),
        ({"filters": [object()]}, "not_a_filter"),
        ({"texts": Texts(tool_error="{mesage}")}, "invalid_text"),
        ({"options": ModelOptions(retry="yes")}, "invalid_retry"),  # type: ignore[arg-type]
        ({"instructions": 7}, "invalid_option"),
        ({"slots": {"x": 1}}, "invalid_option"),
        ({"tool_choice": Named("look")}, "invalid_option"),
        ({"model": object()}, "invalid_option"),
        ({"compaction": object()}, "invalid_option"),
        ({"gate": "ask"}, "invalid_option"),
        ({"sensitive_tools": "always"}, "invalid_option"),
        ({"on_environment_error": "raise"}, "invalid_option"),
    ],
)
def test_mistakes(fields: Any, kind: str) -> None:
    """AG1, AG2, TXT2: every mistake is raised by the constructor."""
    with pytest.raises(AssemblyError) as caught:
        Agent(**{"model": PlayedModel([]), **fields})

    assert caught.value.kind == kind


def test_an_agent_does_not_change() -> None:
    """Assigning to an agent is an error."""
    agent = agent_of()

    with pytest.raises(dataclasses.FrozenInstanceError):
        agent.name = "other"  # type: ignore[misc]


async def test_nesting() -> None:
    """AG3: memory is outermost, then compaction, then the list, then the model."""
    trace: list[str] = []

    async def mine(request: Any, chain: Any) -> Any:
        trace.append(f"mine:{len(request.messages)}")
        return await chain(request)

    class Tracing(Compaction):
        async def chat(self, request: Any, chain: Any) -> Any:
            trace.append(f"compaction:{len(request.messages)}")
            return await super().chat(request, chain)

    compaction = Tracing(summariser=None)
    agent = agent_of("ok", filters=[Filter.of("mine", chat=mine)], compaction=compaction)
    await agent.memory.add("t", [user("before", "u0")])

    await agent.invoke("hi", conversation_id="t")

    assert trace == ["compaction:2", "mine:2"]


async def test_a_memory_filter_of_ones_own() -> None:
    """A memory filter in the list gives the agent its memory, unless it is replaced."""
    mine = InMemoryChatMemory()
    agent = agent_of("one", "two", filters=[MemoryFilter(mine)])
    other = InMemoryChatMemory()

    await agent.invoke("hi", conversation_id="t")
    await agent.replace(memory=other).invoke("hi", conversation_id="t")

    assert agent.memory is mine
    assert lines(await mine.get("t")) == ["user: hi", "assistant: one"]
    assert lines(await other.get("t")) == ["user: hi", "assistant: two"]


def test_an_agent_whose_compaction_recalls_has_the_tool() -> None:
    """RCL: offered always or never, and its name is taken."""
    agent = agent_of(compaction=Compaction(recall=True), tools=[look])
    assert agent.client.tools.names() == ("look", "recall")
    assert agent_of(compaction=Compaction()).client.tools.names() == ()

    @tool
    async def recall() -> str:
        """Recall something."""
        return ""

    with pytest.raises(AssemblyError) as caught:
        agent_of(compaction=Compaction(recall=True), tools=[recall])
    assert caught.value.kind == "duplicate_tool"


async def test_a_looked_up_message_is_in_the_next_request_and_one_line_in_the_history() -> None:
    """RCL3: the text follows the results; the store grows by the line alone."""
    memory = InMemoryChatMemory()
    await memory.add("t", [user("the gateway listens on port 8443", "u1")])
    asks = calls(call("recall", {"query": "gateway port"}, "c1"))
    agent = agent_of(asks, "8443", memory=memory, compaction=Compaction(recall=True))

    await agent.invoke("which port?", conversation_id="t")

    sent = model_of(agent).requests[-1].messages
    assert [m.role.value for m in sent[-3:]] == ["assistant", "tool", "user"]
    assert sent[-2].text.startswith("[recalled ") and "8443" not in sent[-2].text
    assert sent[-1].text.startswith("<recalled>") and "8443" in sent[-1].text
    stored = await memory.get("t")
    assert [m.role.value for m in stored] == ["user", "user", "assistant", "tool", "assistant"]
    assert stored[3].content == sent[-2].content
