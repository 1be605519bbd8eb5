"""Backscroll: an AG-UI backend for chat agents whose every conversation is a log in Redis."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public name -> module. Loaded on first use, because importing any room runs this file first.
_HOMES: dict[str, str] = {
    name: f"backscroll.{home}"
    for home, names in {
        "agent.agent": "Agent",
        "agent.answers": "Approve GiveUp Reject Reply",
        "agent.run_tools": "run_tools",
        "agent.events": "tee",
        "agent.executors": "ConcurrentExecutor PoolExecutor SequentialExecutor",
        "agent.gate": "Answer AskFirst Proceed Refuse",
        "agent.loader": "load_agent",
        "agent.mcp": "mcp_tools",
        "agent.pause": "InMemoryPauseStore PauseStore",
        "compaction.extractive": "ExtractiveSummariser",
        "compaction.filter": "Compaction",
        "compaction.write_back": "write_back_to",
        "conversation.memory": "ChatMemory InMemoryChatMemory",
        "conversation.windowed": "WindowedChatMemory",
        "filters.approval": "AskApproval",
        "filters.dead_loop": "DeadLoop",
        "filters.logs": "ChatLogger ToolLogger",
        "filters.memory": "MemoryFilter",
        "filters.rereading": "ReReading",
        "filters.retrieval": "Document Retrieval Retriever",
        "filters.safeguard": "Safeguard",
        "filters.structured_output": "StructuredOutput",
        "filters.tokens": "HoldUntilChecked Redact",
        "filters.tool_guard": "ToolGuard",
        "filters.tool_index": "KeywordIndex RegexIndex ToolIndex",
        "filters.tool_search": "ToolSearch",
        "filters.validation": "Validation",
        "kernel.client": "ChatClient",
        "kernel.content": "FilePart TextPart file_part",
        "kernel.errors": "BackscrollError ModelError ToolError",
        "kernel.filter": "Filter TokenTransform around",
        "kernel.message": "Message Role ToolCall assistant system tool_call tool_result user",
        "kernel.model": "Cache ChatModel ModelOptions ModelProfile Named Reasoning Retry Text",
        "kernel.ports": "CancelToken",
        "kernel.request": "ChatRequest ChatResponse Note ToolRequest ToolResponse",
        "kernel.texts": "Texts",
        "kernel.tool": "Slot Tool ToolContext ToolResult ToolRetry ToolSet ToolSpec client_tool"
        " tool",
        "kernel.turn": "Continue IterationRequest TurnRequest TurnResult",
        "providers.anthropic": "AnthropicModel",
        "providers.demo": "DemoModel DemoReply",
        "providers.openai": "OpenAIModel",
    }.items()
    for name in names.split()
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:  # Any: a public name may be any object
    """Import a public name from its room when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'backscroll' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
