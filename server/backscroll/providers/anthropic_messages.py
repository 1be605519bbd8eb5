"""Neutral messages as the alternating turns of blocks that the messages wire takes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from backscroll.kernel.content import text_of
from backscroll.kernel.message import Message, Role, ToolCall
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.providers.anthropic_parts import PartRules

FORMAT = "anthropic-content"
"""The format of replay blocks that this wire makes and takes."""

Turn = dict[str, Any]
"""One message of the wire: a role and a list of blocks."""

THOUGHTS = ("thinking", "redacted_thinking")
"""Blocks that hold what a model thought; they are sent as they came, or not at all."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class Conversation:
    """The system text and the turns of one request."""

    def __init__(self, request: ModelRequest, profile: ModelProfile, provider: str) -> None:
        self._request, self._profile, self._provider = request, profile, provider
        self._texts = request.texts
        self._rules = PartRules(profile, provider)
        self._as_text = profile.tools_with_history and not request.tools
        self._turns: list[Turn] = []
        self.places: dict[int, tuple[Turn, dict[str, Any]]] = {}
        """Which turn a message of the request went into, by its index, and its last block."""
        self._build()

    def system(self) -> list[dict[str, Any]]:
        """Return the system text as one block, no block without text."""
        history = (m for m in self._request.messages if m.role is Role.SYSTEM)
        later = (self._rules.text(message.for_model(), "system") for message in history)
        text = "\n".join(text for text in (*self._request.system, *later) if text.strip())
        return [{"type": "text", "text": text}] if text else []

    def messages(self) -> list[Turn]:
        """Return the turns, a user's first, roles alternating."""
        return self._turns

    def _build(self) -> None:
        for index, message in enumerate(self._request.messages):
            if message.role is Role.SYSTEM:
                continue
            role = "assistant" if message.role is Role.ASSISTANT else "user"
            self._append(index, role, self._blocks(message))
        if self._turns and self._turns[0]["role"] == "assistant":
            opening = {"type": "text", "text": self._texts.continued}
            self._turns.insert(0, {"role": "user", "content": [opening]})
        for before, turn in zip([None, *self._turns], self._turns, strict=False):
            _order_results(turn, before)
        self._trim_last()

    def _append(self, index: int, role: str, blocks: list[dict[str, Any]]) -> None:
        """Add blocks to the last turn if it has their role, else as a new turn."""
        if not blocks:
            return
        if self._turns and self._turns[-1]["role"] == role:
            self._turns[-1]["content"] += blocks
        else:
            self._turns.append({"role": role, "content": blocks})
        self.places[index] = (self._turns[-1], blocks[-1])

    def _blocks(self, message: Message) -> list[dict[str, Any]]:
        if message.role is Role.ASSISTANT:
            return self._own(message) or self._rebuilt(message)
        if message.role is Role.TOOL:
            return [self._result(message)]
        blocks = self._rules.blocks(message.for_model(), "user")
        return blocks or [{"type": "text", "text": self._texts.empty_message}]

    def _own(self, message: Message) -> list[dict[str, Any]] | None:
        """Return the list that this provider made, as it was, but for call ids we changed."""
        blocks = message.blocks
        if blocks is None or blocks.format != FORMAT or blocks.source != self._provider:
            return None
        if message.incomplete or message.model_content is not None or self._as_text:
            return None
        own = [block for block in blocks.data if not _is_blank(block)]
        uses = [block for block in own if block.get("type") == "tool_use"]
        if len(uses) != len(message.tool_calls) or not own or own[-1].get("type") in THOUGHTS:
            # A reply that ended while it thought is refused as it is: no thought may come last.
            return None
        ids = iter(_call_id(call.id) for call in message.tool_calls)
        return [
            {**block, "id": next(ids)} if block.get("type") == "tool_use" else block
            for block in own
        ]

    def _rebuilt(self, message: Message) -> list[dict[str, Any]]:
        said = self._rules.blocks(message.for_model(), "assistant")
        return [*said, *(self._call(call) for call in message.tool_calls)]

    def _call(self, call: ToolCall) -> dict[str, Any]:
        if self._as_text:
            text = self._texts.call_as_text.format(name=call.name, args=call.args_text)
            return {"type": "text", "text": text}
        args = {"invalid_arguments": call.raw or ""} if call.args is None else dict(call.args)
        return {
            "type": "tool_use",
            "id": _call_id(call.id),
            "name": _FOREIGN.sub("_", call.name)[:64] or "_",
            "input": args,
        }

    def _result(self, message: Message) -> dict[str, Any]:
        blocks = self._rules.blocks(message.for_model(), "tool")
        if self._as_text:
            content = text_of(message.for_model()) or self._texts.tool_empty
            text = self._texts.result_as_text.format(name=message.name or "", content=content)
            return {"type": "text", "text": text}
        out: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": _call_id(message.tool_call_id or ""),
            "content": plain(blocks) or self._texts.tool_empty,
        }
        return {**out, "is_error": True} if message.failed else out

    def _trim_last(self) -> None:
        """Cut the white space at the end of a final reply, which this API refuses."""
        turn = self._turns[-1] if self._turns else None
        if turn is None or turn["role"] != "assistant" or turn["content"][-1]["type"] != "text":
            return
        last = turn["content"][-1]
        turn["content"][-1] = {**last, "text": last["text"].rstrip()}


def plain(blocks: list[dict[str, Any]]) -> Any:
    """Return one unmarked text as text, anything else as it is."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def has_tool_blocks(turns: Iterable[Turn]) -> bool:
    """Say whether any turn holds a call or a result."""
    kinds = ("tool_use", "tool_result")
    return any(block.get("type") in kinds for turn in turns for block in turn["content"])


def _order_results(turn: Turn, before: Turn | None) -> None:
    """Put results first, in the order of their calls; what people said comes after them."""
    uses = [] if before is None else [block.get("id") for block in before["content"]]
    blocks = turn["content"]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if not results or turn["role"] != "user":
        return
    known = {use: place for place, use in enumerate(uses)}
    results.sort(key=lambda block: known.get(block["tool_use_id"], len(known)))
    turn["content"] = [*results, *(b for b in blocks if b.get("type") != "tool_result")]


def _is_blank(block: dict[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _call_id(call_id: str) -> str:
    """Return an id in the characters this API takes; different ids stay different."""
    if call_id and not _FOREIGN.search(call_id):
        return call_id
    tail = hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{_FOREIGN.sub('_', call_id)}{tail}"
