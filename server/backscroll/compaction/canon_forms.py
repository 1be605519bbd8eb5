"""The canonical forms of a message, their digests, the hash chain, and references."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from operator import is_
from typing import Any

from backscroll.compaction.memo import ObjectMemo
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.content import content_to_json
from backscroll.kernel.message import Message, ToolCall, parse_call

SUMMARY_ORIGIN = "filter:compaction"
"""The origin of messages that compaction made."""

CHAIN_START = bytes(32)
CHAINS = 16
"""How many histories are remembered with the hashes of their prefixes."""
_SENT = b"\x01"
_STORED = b"\x02"


def canon_sent(message: Message) -> str:
    """Return the JSON of what a model can see of a message; it decides whether it is kept."""
    return _json(sent_dict(message))


def canon_stored(message: Message) -> str:
    """Return the same with what was said, where a filter made something else of it."""
    out = sent_dict(message)
    if message.model_content is not None and message.model_content != message.content:
        out["said"] = content_to_json(message.content)
    return _json(out)


def as_said(message: Message) -> Message:
    """Return a message without what a filter made of it: itself where none did."""
    if message.model_content is None:
        return message
    return message.replace(model_content=None, rewritten_by=())


def sent_dict(message: Message) -> dict[str, Any]:
    """Return what a model can see of a message as JSON values, in a fixed order."""
    out: dict[str, Any] = {"role": message.role.value}
    content = message.for_model()
    if content is not None:
        out["content"] = content_to_json(content)
    if message.tool_calls:
        out["tool_calls"] = [_call(call) for call in message.tool_calls]
    for name in ("tool_call_id", "name", "outcome", "reasoning"):
        value = getattr(message, name)
        if value is not None:
            out[name] = value
    blocks = message.blocks
    if blocks is not None and blocks.data:
        out["blocks"] = {
            "format": blocks.format,
            "data": list(blocks.data),
            "source": blocks.source,
        }
    if message.incomplete:
        out["incomplete"] = True
    return out


def message_from_sent(value: Mapping[str, Any]) -> Message:
    """Read the values of `sent_dict` back; what a model could not see is not there."""
    message = Message.from_dict({k: v for k, v in value.items() if k != "tool_calls"})
    calls = tuple(_read_call(call) for call in value.get("tool_calls", ()))
    return message.replace(tool_calls=calls)


def sent_digest(message: Message) -> str:
    """Return the sha256, in hex, of the canonical sent form."""
    return form_digest(canon_sent(message))


def form_digest(canon: str) -> str:
    """Return the same of a canonical sent form that is there already."""
    return _sha(_SENT, canon).hex()


def stored_digest(message: Message) -> bytes:
    """Return the sha256 of the canonical stored form."""
    return _sha(_STORED, canon_stored(message))


def _both_digests(message: Message) -> tuple[str, bytes]:
    """Return the digests of the sent and of the stored form, which mostly are one text."""
    if message.model_content is not None:
        return sent_digest(message), stored_digest(message)
    canon = canon_sent(message)
    return form_digest(canon), _sha(_STORED, canon)


class Digests:
    """Remembers the digests of message objects, which never change."""

    def __init__(self, limit: int = 16_384) -> None:
        self._both: ObjectMemo[tuple[str, bytes]] = ObjectMemo(_both_digests, limit)
        self._chains: OrderedDict[int, tuple[list[Message], list[str]]] = OrderedDict()

    def sent(self, message: Message) -> str:
        """Return the digest of the sent form, in hex."""
        return self._both.get(message)[0]

    def stored(self, message: Message) -> bytes:
        """Return the digest of the stored form."""
        return self._both.get(message)[1]

    def chain(self, history: Sequence[Message]) -> tuple[str, ...]:
        """Return the hash of every prefix; the one made last is gone on with where it fits.

        A history that grew by some messages, or lost some, is hashed from where it differs.
        """
        first = id(history[0]) if history else 0
        messages, hashes = self._chains.get(first, ([], [CHAIN_START.hex()]))
        same = sum(takewhile(bool, map(is_, messages, history)))
        hashes = hashes[: same + 1]
        link = bytes.fromhex(hashes[-1])
        for message in islice(history, same, None):
            link = hashlib.sha256(link + self.stored(message)).digest()
            hashes.append(link.hex())
        self._chains[first] = (list(history), hashes)
        while len(self._chains) > CHAINS:
            self._chains.popitem(last=False)
        return tuple(hashes)


def prefix_hashes(history: Sequence[Message], digests: Digests | None = None) -> tuple[str, ...]:
    """Return the hash, in hex, of every prefix: item n stands for the first n messages."""
    return (digests or Digests()).chain(history)


def references(history: Sequence[Message]) -> tuple[int | None, ...]:
    """Return the number behind `#` of each message; None for one that repair made up."""
    out: list[int | None] = []
    number = 0
    for message in history:
        number += message.id is not None
        out.append(number if message.id is not None else None)
    return tuple(out)


def reference_text(ref: int | None) -> str:
    """Return a reference as texts show it, without the `#`."""
    return "-" if ref is None else str(ref)


def is_made_up(message: Message) -> bool:
    """Say whether repair made this message up for a view."""
    return message.id is None


def _call(call: ToolCall) -> dict[str, Any]:
    out: dict[str, Any] = {"id": call.id, "name": call.name}
    if call.raw is not None:
        out["raw"] = call.raw
    else:
        out["args"] = dict(call.args or {})
    return out


def _read_call(value: Mapping[str, Any]) -> ToolCall:
    if "raw" in value:
        return parse_call(value["id"], value["name"], value["raw"])
    return ToolCall(value["id"], value["name"], dict(value["args"]))


def _json(value: Any) -> str:
    try:
        return canonical_json(value)
    except (TypeError, ValueError):
        # Values that are not JSON can only come from code that builds messages by hand; a form
        # that is merely stable serves there, and planning never raises.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)


def _sha(version: bytes, text: str) -> bytes:
    return hashlib.sha256(version + text.encode("utf-8", "surrogatepass")).digest()
