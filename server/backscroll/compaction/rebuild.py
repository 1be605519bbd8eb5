"""A request rebuilt from its record, the history and the blobs the record names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backscroll.compaction.canon_forms import as_said, canon_sent, message_from_sent
from backscroll.compaction.record_items import BLOCK
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import Message
from backscroll.kernel.model import Cache, ModelOptions, ModelRequest, Named, ToolChoice
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The canonical forms of a sent list, in order; None where a body is gone."""

    sent: tuple[str | None, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RebuiltRequest:
    """A request as it was handed to the model; what is in `missing` is not in it."""

    request: ModelRequest
    missing: tuple[str, ...] = ()


def sent_bytes(canon: Sequence[str]) -> bytes:
    """Return the canonical JSON array of a sent list; `sent_sha256` is its sha256."""
    return f"[{','.join(canon)}]".encode("utf-8", "surrogatepass")


def rebuild(
    record: Mapping[str, Any],
    history: Sequence[tuple[int, Message]],
    blobs: Mapping[str, bytes],
    form: Callable[[Message], str] = canon_sent,
) -> Rebuilt:
    """Return the sent list of a record; positions that the history lacks count as missing.

    `history` may hold more than the call knew: what came later, or was superseded. `form` gives
    what `canon_sent` does, for those who have it already.
    """
    work = _Rebuilding(record, dict(history), blobs, form)
    if "whole" in record:
        whole = work.blob(record["whole"])
        return Rebuilt(tuple(whole or ()), tuple(work.missing))
    return Rebuilt(tuple(work.sent()), tuple(dict.fromkeys(work.missing)))


def rebuild_request(
    record: Mapping[str, Any],
    history: Sequence[tuple[int, Message]],
    blobs: Mapping[str, bytes],
) -> RebuiltRequest:
    """Return the request of a record; a wire's `encode` gives its bytes again."""
    rebuilt = rebuild(record, history, blobs)
    work = _Rebuilding(record, {}, blobs)
    messages = [message_from_sent(json.loads(form)) for form in rebuilt.sent if form is not None]
    asked = record["request"]
    systems = asked.get("system", 0)
    tools = work.blob(asked["tools"]) if asked.get("tools") else []
    texts = work.blob(asked["texts"]) if asked.get("texts") else {}
    request = ModelRequest(
        tuple(messages[systems:]),
        tuple(message.text for message in messages[:systems]),
        tuple(ToolSpec(tool["name"], tool["description"], tool["schema"]) for tool in tools or ()),
        choice_from_json(asked.get("tool_choice", "auto")),
        options_from_json(asked.get("options", {})),
        replace(Texts(), **(texts or {})),
    )
    missing = (*rebuilt.missing, *work.missing)
    return RebuiltRequest(request, tuple(dict.fromkeys(missing)))


class _Rebuilding:
    def __init__(
        self,
        record: Mapping[str, Any],
        history: dict[int, Message],
        blobs: Mapping[str, bytes],
        form: Callable[[Message], str] = canon_sent,
    ) -> None:
        self._record, self._history, self._blobs = record, history, blobs
        self._form = form
        self._blocks = dict(record.get("bodies", ()))
        self._read: dict[str, Any] = {}
        self.missing: list[str] = []

    def sent(self) -> Iterator[str | None]:
        """Yield the canonical form of each sent message."""
        for span in self._record["view"]:
            if "from" not in span:
                value = self.blob(span["blob"])
                yield None if value is None else canonical_json(value)
                continue
            for position in range(span["from"], span["to"] + 1):
                yield self._body(span, position)

    def blob(self, name: str) -> Any:
        """Return the JSON value of a blob, or None, and remember that it is gone."""
        if name not in self._read:
            data = self._blobs.get(name)
            if data is None:
                self.missing.append(name)
            self._read[name] = (
                None if data is None else json.loads(data.decode("utf-8", "surrogatepass"))
            )
        return self._read[name]

    def _body(self, span: Mapping[str, Any], position: int) -> str | None:
        stored = self._history.get(position)
        if span["fate"] == "kept" or "store" in span:
            if stored is None:
                self.missing.append(f"message at position {position}")
                return None
            if "store" in span:
                return self._form(stored)
            return self._form(as_said(stored))
        name = self._blocks.get((position - 1) // BLOCK)
        block = None if name is None else self.blob(name)
        value = None if block is None else block.get(str(position))
        return None if value is None else canonical_json(value)


def choice_to_json(choice: ToolChoice) -> Any:
    """Return a tool choice as JSON values."""
    return {"name": choice.name} if isinstance(choice, Named) else choice


def choice_from_json(value: Any) -> ToolChoice:
    """Read a tool choice."""
    if isinstance(value, Mapping):
        return Named(str(value["name"]))
    choice: ToolChoice = value
    return choice


def options_to_json(options: ModelOptions) -> dict[str, Any]:
    """Return the options that shape a request body, only those given; headers may hold secrets."""
    out: dict[str, Any] = {}
    for name in ModelOptions.__dataclass_fields__:
        value = getattr(options, name)
        if value is None or name in ("extra_headers", "retry"):
            continue
        out[name] = _plain(value)
    return out


def options_from_json(value: Mapping[str, Any]) -> ModelOptions:
    """Read the options of a record."""
    known = {k: v for k, v in value.items() if k in ModelOptions.__dataclass_fields__}
    if "stop" in known:
        known["stop"] = tuple(known["stop"])
    if "cache" in known:
        cache = known["cache"]
        known["cache"] = Cache(cache["strategy"], cache.get("ttl"), tuple(cache.get("at", ())))
    return ModelOptions(**known)


def _plain(value: Any) -> Any:
    if isinstance(value, Cache):
        return {"strategy": value.strategy, "ttl": value.ttl, "at": list(value.at)}
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
