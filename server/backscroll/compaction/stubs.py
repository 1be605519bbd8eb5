"""Short stand-ins for long argument values and for media, of the same shape as the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backscroll.compaction.canon_forms import reference_text
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import TokenCounter
from backscroll.kernel.content import Content, FilePart, Part, TextPart
from backscroll.kernel.message import ToolCall

STUB_FROM_CHARS = 160
MAX_SHARE = 0.8
"""What a stand-in may take of what it replaces; a larger one is not worth the loss."""

_DEPTH = 40


def stub_call(
    call: ToolCall, ref: int | None, texts: CompactionTexts, counter: TokenCounter
) -> ToolCall:
    """Return the call with every long text in its arguments replaced; itself if there is none."""
    stub = _Stub(ref, texts, counter)
    if call.args is None:
        raw = stub.value(call.raw or "")
        return call if raw == call.raw else ToolCall(call.id, call.name, None, raw)
    args = {name: stub.value(value) for name, value in call.args.items()}
    return call if args == call.args else ToolCall(call.id, call.name, args)


def stub_media(content: Content, ref: int | None, texts: CompactionTexts) -> Content:
    """Return content with each file replaced by a text that names its type."""
    if not isinstance(content, tuple):
        return content
    return tuple(_media(part, ref, texts) for part in content)


class _Stub:
    def __init__(self, ref: int | None, texts: CompactionTexts, counter: TokenCounter) -> None:
        self._ref, self._texts, self._counter = reference_text(ref), texts, counter

    def value(self, value: Any, depth: int = 0) -> Any:  # Any: the JSON values of arguments
        if isinstance(value, str):
            return self._text(value)
        if depth >= _DEPTH:
            return value
        if isinstance(value, Mapping):
            return {name: self.value(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return value

    def _text(self, text: str) -> str:
        if len(text) <= STUB_FROM_CHARS:
            return text
        stub = self._texts.fill("args_stub", chars=len(text), ref=self._ref)
        worth = self._counter.count(stub) <= MAX_SHARE * self._counter.count(text)
        return stub if worth and len(stub) < len(text) else text


def _media(part: Part, ref: int | None, texts: CompactionTexts) -> Part:
    if not isinstance(part, FilePart):
        return part
    return TextPart(texts.fill("media_stub", media_type=part.media_type, ref=reference_text(ref)))
