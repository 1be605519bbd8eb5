"""How a request came from a history: one span per run of equal fate, bodies only where they differ.

Claims of filters give reasons; what was sent decides. A recipe is rebuilt at once, and when that
does not give the sent list byte for byte, the list itself is kept.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN, as_said, canon_sent, form_digest
from backscroll.compaction.memo import ObjectMemo
from backscroll.compaction.rebuild import Rebuilt, rebuild, sent_bytes
from backscroll.compaction.record_items import Item, spans, store_blob, store_bodies
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import Message, Role
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.request import Claim

SYSTEM_ORIGIN = "system"
NOTE_ORIGIN = "note"

Positioned = tuple[int, Message]
"""A message of a history with its position in the store, from 1."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A recipe with the blobs it names."""

    recipe: Mapping[str, Any]
    blobs: Mapping[str, bytes]
    items: tuple[Item, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def sent_list(request: ModelRequest) -> tuple[Message, ...]:
    """Return all that a model reads as messages: system texts first, notes last."""
    systems = (Message(Role.SYSTEM, text, origin=SYSTEM_ORIGIN) for text in request.system)
    return (*systems, *request.messages)


def explain(
    history: Sequence[Positioned],
    sent: Sequence[Message],
    claims: Sequence[Claim],
    size: Callable[[Message], int],
) -> Explained:
    """Return the recipe of a sent list; `rebuild` with it gives that list byte for byte."""
    work = _Explaining(history, sent, claims, size)
    items = [work.sent_item(number) for number in range(len(sent))]
    left_out = [work.left_out(position, message) for position, message in work.unsent()]
    blobs = dict(work.blobs)
    bodies = store_bodies(items, blobs)
    recipe: dict[str, Any] = {
        "view": spans(items),
        "left_out": spans(left_out),
        "bodies": bodies,
    }
    warnings = ["unclaimed"] if any(item.why == "unclaimed" for item in left_out) else []
    if not _is_exact(recipe, history, blobs, work):
        # A form that JSON does not give back as it was; the list itself is always exact.
        recipe["whole"] = store_blob(blobs, canonical_json(work.canon))
        warnings.append("whole")
    data = sent_bytes(work.canon)
    recipe["sent"] = {
        "messages": len(sent),
        "tokens": sum(item.after for item in items),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return Explained(recipe, blobs, tuple(items), tuple(warnings))


def _is_exact(
    recipe: Mapping[str, Any],
    history: Sequence[Positioned],
    blobs: Mapping[str, bytes],
    work: _Explaining,
) -> bool:
    try:
        return rebuild(recipe, history, blobs, work.form) == Rebuilt(tuple(work.canon))
    except ValueError:
        return False


class _Explaining:
    def __init__(
        self,
        history: Sequence[Positioned],
        sent: Sequence[Message],
        claims: Sequence[Claim],
        size: Callable[[Message], int],
    ) -> None:
        self._history, self._sent, self._size = history, sent, size
        # A message is written once, however often its form is asked for: it may be large.
        self.form = ObjectMemo(canon_sent).get
        self.canon = [self.form(message) for message in sent]
        self.blobs: dict[str, bytes] = {}
        self._of_message: defaultdict[str, list[Claim]] = defaultdict(list)
        self._of_digest: dict[str, Claim] = {}
        self._others: list[Claim] = []
        for claim in claims:
            if claim.message_id is not None:
                self._of_message[claim.message_id].append(claim)
            elif claim.digest is None:
                self._others.append(claim)
            if claim.digest is not None:
                self._of_digest[claim.digest] = claim
        self._original = _originals(history, sent, self.canon)

    def unsent(self) -> Iterator[Positioned]:
        """Yield what of the history is not in the sent list."""
        used = set(self._original)
        for index, positioned in enumerate(self._history):
            if index not in used:
                yield positioned

    def sent_item(self, number: int) -> Item:
        """Return the item of one sent message."""
        message, original = self._sent[number], self._original[number]
        digest = form_digest(self.canon[number])
        if original is None:
            return self._injected(message, self.canon[number], digest)
        position, stored = self._history[original]
        item = self._compared(stored, self.canon[number], digest)
        item.position, item.repaired = position, self._repair_of(stored)
        item.before = self._size(as_said(stored))
        item.after = self._after(message, digest)
        return item

    def left_out(self, position: int, message: Message) -> Item:
        """Return the item of a history message that was not sent."""
        before = self._size(as_said(message))
        repaired = self._repair_of(message)
        for claim in reversed(self._claims_of(message)):
            if claim.fate in ("summarised", "dropped"):
                return Item(claim.fate, position, claim.why, claim.by, None, repaired, None,
                            None, None, before)  # fmt: skip
        return Item("dropped", position, "unclaimed", before=before)

    def _compared(self, stored: Message, canon: str, digest: str) -> Item:
        """Return fate and reason of a sent message that has an original."""
        claims = self._claims_of(stored)
        if canon == self.form(as_said(stored)):
            why = next((c.why for c in reversed(claims) if c.fate == "kept" and c.why), "")
            return Item("kept", why=why)
        if stored.model_content is not None and canon == self.form(stored):
            return Item("rewritten", by=", ".join(stored.rewritten_by), store="model_content")
        changed = [claim for claim in reversed(claims) if claim.fate not in ("kept", "dropped")]
        for claim in changed:
            if claim.digest == digest:
                return Item(claim.fate, why=claim.why, by=claim.by, body=canon)
        for claim in changed:
            if claim.fate == "rewritten" and claim.digest is None:
                return Item("rewritten", why=claim.why, by=claim.by, body=canon)
        return Item("rewritten", body=canon)

    def _injected(self, message: Message, canon: str, digest: str) -> Item:
        claim = self._of_digest.get(digest)
        if claim is None and message.role is Role.TOOL:
            claim = next((c for c in self._others if c.fate == "injected"), None)
        item = Item("injected", role=message.role.value, what="message", by=_maker(message))
        if message.origin == SYSTEM_ORIGIN:
            item.what, item.by = "system", "agent"
        elif message.origin == NOTE_ORIGIN:
            item.what, item.by = "note", None
        elif claim is not None and claim.fate == "injected":
            item.what, item.why, item.by = claim.what or "message", claim.why, claim.by
            item.of = self._places(claim.of)
        item.blob = store_blob(self.blobs, canon)
        item.after = self._after(message, digest)
        return item

    def _places(self, ids: Sequence[str]) -> list[int] | None:
        """Return the positions of the messages that are quoted, if any are."""
        if not ids:
            return None
        return [position for position, message in self._history if message.id in ids]

    def _after(self, message: Message, digest: str) -> int:
        claim = self._of_digest.get(digest)
        if claim is not None and claim.tokens is not None:
            return claim.tokens[1]
        return self._size(message)

    def _claims_of(self, message: Message) -> list[Claim]:
        return self._of_message.get(message.id, []) if message.id is not None else []

    def _repair_of(self, message: Message) -> str | None:
        found = (claim.what for claim in self._claims_of(message) if claim.by == "memory")
        return next((what for what in found if what), None)


def _originals(
    history: Sequence[Positioned], sent: Sequence[Message], canon: Sequence[str]
) -> list[int | None]:
    """Return which history message each sent one is: by id, by call id, by equal form in order."""
    by_id = {message.id: at for at, (_, message) in enumerate(history) if message.id is not None}
    found: list[int | None] = [None] * len(sent)
    used: set[int] = set()
    for number, message in enumerate(sent):
        at = None if message.id is None else by_id.get(message.id)
        if at is not None and at not in used:
            found[number] = at
            used.add(at)
    left = [number for number, at in enumerate(found) if at is None]
    if not any(_may_be_stored(sent[number]) for number in left):
        return found
    by_call: defaultdict[str, list[int]] = defaultdict(list)
    by_form: defaultdict[str, list[int]] = defaultdict(list)
    for at in range(len(history) - 1, -1, -1):
        if at not in used:
            message = history[at][1]
            by_call[message.tool_call_id or ""].append(at)
            by_form[canon_sent(as_said(message))].append(at)
    for number in left:
        message = sent[number]
        if _may_be_stored(message):
            is_result = message.role is Role.TOOL
            key = message.tool_call_id or "" if is_result else canon[number]
            places = (by_call if is_result else by_form).get(key, [])
            found[number] = places.pop() if places else None
    return found


def _may_be_stored(message: Message) -> bool:
    """Say whether a message without a known id can be one of the history."""
    made = (SYSTEM_ORIGIN, NOTE_ORIGIN, SUMMARY_ORIGIN)
    return message.id is None and message.origin not in made


def _maker(message: Message) -> str | None:
    origin = message.origin or ""
    return origin.removeprefix("filter:") if origin.startswith("filter:") else None
