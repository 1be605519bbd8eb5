"""Reading a messages stream: data of events in, deltas out; knows no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from backscroll.kernel.canon import parse_json
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import parse_call
from backscroll.kernel.model import (
    CallArgs,
    CallClosed,
    CallOpened,
    Delta,
    Finished,
    ModelResponse,
    Partial,
    Reasoning,
    Text,
)
from backscroll.kernel.usage import FinishReason, finish_reason
from backscroll.providers.anthropic_response import failure, read_calls, read_message, read_usage
from backscroll.providers.failures import Source, broken_off
from backscroll.providers.overflow import recognise
from backscroll.providers.reply import Channel


class _Block:
    """A content block that is still arriving."""

    def __init__(self, start: Mapping[str, Any], call_id: str) -> None:
        self.data = dict(start)
        self.kind = str(self.data.get("type"))
        self.call_id = call_id
        self.is_open = True
        self._text = Channel()

    @property
    def received(self) -> str:
        """The text that came in pieces."""
        return self._text.whole()

    def take(self, piece: Any) -> str:
        """Take a piece of text and return what of it can be delivered now."""
        return self._text.take(piece) if isinstance(piece, str) else ""

    def end(self) -> str:
        """Return what was held back for a partner that did not come."""
        return self._text.end()

    def settle(self) -> None:
        """Put what came in pieces where it belongs in the block."""
        if "input" in self.data:
            call = parse_call(self.call_id, "", self.received or self.data.get("input"))
            self.data["input"] = (
                {"invalid_arguments": call.raw} if call.args is None else dict(call.args)
            )
        elif self.kind in ("text", "thinking"):
            self.data[self.kind] = self.received


class StreamReader:
    """Turns one streamed reply into deltas and, at its end, into a complete response."""

    def __init__(self, source: Source, mint: Callable[[], str], broken: str) -> None:
        """`mint` makes ids for calls without one; `broken` is what `incomplete_stream` says."""
        self.done = False
        self._source, self._mint, self._broken = source, mint, broken
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._reason: FinishReason | None = None
        self._id: str | None = None
        self._model: str | None = None
        self._on: Mapping[str, Callable[[Mapping[str, Any]], list[Delta]]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
        }

    @property
    def finished(self) -> bool:
        """Say whether the reply is complete: its end, or a stop reason with all blocks closed."""
        closed = not any(block.is_open for block in self._blocks.values())
        return self.done or (self._reason is not None and closed)

    def feed(self, data: str) -> list[Delta]:
        """Return the deltas of one event; raises the mapped error of an error event."""
        event = self._parse(data)
        if event.get("error"):
            error = failure(event["error"], self._source)
            error.partial = self.partial()
            raise error
        act = self._on.get(str(event.get("type")))
        return [] if act is None else act(event)

    def finish(self) -> list[Delta]:
        """Return `Finished`; call it once, when the body has ended.

        Raises `incomplete_stream` when there was no finish marker.
        """
        if not self.finished:
            raise broken_off(self._source, self._broken, self.partial())
        out = [delta for block in self._blocks.values() for delta in self._close(block)]
        uses = (block for block in self._blocks.values() if block.kind == "tool_use")
        calls = read_calls(((b.call_id, b.data.get("name"), self._arguments(b)) for b in uses), str)
        blocks = [block.data for block in self._blocks.values()]
        response = ModelResponse(
            read_message(blocks, calls, self._source.provider),
            read_usage(self._usage),
            self._reason,
            self._id,
            self._model,
            self._source.provider,
        )
        return [*out, Finished(response)]

    def partial(self) -> Partial:
        """Return what has arrived so far."""
        kinds: dict[Any, list[str]] = {"text": [], "thinking": [], "tool_use": []}
        for block in self._blocks.values():
            name = f"{block.data.get('name')} " if block.kind == "tool_use" else ""
            kinds.get(block.kind, []).append(name + block.received)
        return Partial(
            "".join(kinds["text"]),
            "".join(kinds["thinking"]),
            tuple(kinds["tool_use"]),
            read_usage(self._usage),
        )

    def _message_start(self, event: Mapping[str, Any]) -> list[Delta]:
        message = _mapping(event.get("message"))
        found, model = message.get("id"), message.get("model")
        self._id = found if isinstance(found, str) else None
        self._model = model if isinstance(model, str) else None
        self._merge_usage(message.get("usage"))
        return []

    def _block_start(self, event: Mapping[str, Any]) -> list[Delta]:
        start = _mapping(event.get("content_block"))
        given = start.get("id")
        taken = {block.call_id for block in self._blocks.values()}
        usable = isinstance(given, str) and given and given not in taken
        call_id = str(given) if usable else self._mint() if start.get("type") == "tool_use" else ""
        block = self._blocks[_index(event)] = _Block(start, call_id)
        if block.kind == "tool_use":
            return [CallOpened(call_id, str(start.get("name") or ""))]
        return self._said(block, start.get(str(block.kind)))

    def _block_delta(self, event: Mapping[str, Any]) -> list[Delta]:
        block, delta = self._blocks.get(_index(event)), _mapping(event.get("delta"))
        if block is None:
            return []
        kind = delta.get("type")
        if kind == "text_delta" or kind == "thinking_delta":
            return self._said(block, delta.get(block.kind))
        if kind == "input_json_delta":
            piece = block.take(delta.get("partial_json"))
            return [CallArgs(block.call_id, piece)] if piece and block.kind == "tool_use" else []
        if kind == "signature_delta":
            block.data["signature"] = block.data.get("signature", "") + delta.get("signature", "")
        elif kind == "citations_delta":
            cited = block.data.get("citations") or []
            block.data["citations"] = [*cited, delta.get("citation")]
        return []

    def _block_stop(self, event: Mapping[str, Any]) -> list[Delta]:
        block = self._blocks.get(_index(event))
        return [] if block is None else self._close(block)

    def _message_delta(self, event: Mapping[str, Any]) -> list[Delta]:
        reason = _mapping(event.get("delta")).get("stop_reason")
        if reason is not None:
            self._reason = finish_reason(str(reason))
        self._merge_usage(event.get("usage"))
        return []

    def _message_stop(self, event: Mapping[str, Any]) -> list[Delta]:
        self.done = True
        return []

    def _said(self, block: _Block, text: Any) -> list[Delta]:
        piece = block.take(text)
        if piece and block.kind == "text":
            return [Text(piece)]
        return [Reasoning(piece)] if piece and block.kind == "thinking" else []

    def _close(self, block: _Block) -> list[Delta]:
        """End a block: deliver what was held, and arguments that came with its start."""
        if not block.is_open:
            return []
        block.is_open = False
        rest = block.end()
        out: list[Delta] = []
        if block.kind == "tool_use":
            text = rest if block.received else _given(block.data.get("input"))
            out = [CallArgs(block.call_id, text)] if text else []
            out.append(CallClosed(block.call_id))
        elif rest:
            out = [Text(rest) if block.kind == "text" else Reasoning(rest)]
        block.settle()
        return out

    def _arguments(self, block: _Block) -> Any:
        """Return a closed call's argument text, or the input that came with its start."""
        return block.received or block.data.get("input")

    def _merge_usage(self, value: Any) -> None:
        """Let later numbers win, but for a zero behind a positive one."""
        for name, number in _mapping(value).items():
            if number is not None and not (number == 0 and self._usage.get(name)):
                self._usage[name] = number

    def _parse(self, data: str) -> Mapping[str, Any]:
        try:
            event = parse_json(data)
        except (ValueError, RecursionError):
            event = data
        if isinstance(event, dict):
            return event
        # Some gateways put the sentence of an error where an object belongs.
        if recognise(200, None, event).cls != "other":
            raise failure(event, self._source)
        message = f"expected an event with a JSON object, got {data[:200]!r}"
        raise ModelError("parse", self._source.clean(message), provider=self._source.provider)


def _given(value: Any) -> str:
    """Return the input that came with a call's start as text; the usual `{}` is none."""
    return parse_call("", "", value).args_text if value else ""


def _index(event: Mapping[str, Any]) -> int:
    found = event.get("index")
    return found if isinstance(found, int) else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
