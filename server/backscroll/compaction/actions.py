"""What an operator does about the compaction of one conversation.

Each action changes something and returns what is to be logged of it, or raises ActionRefused and
has changed nothing. Those that plan take the request that the next call would make.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

from backscroll.compaction.call_state import CallStates
from backscroll.compaction.choosing import (
    ActionRefused,
    edited,
    gone_back,
    group_ids,
    pinned_tokens,
)
from backscroll.compaction.decision import Amount, CompactionFinished, Decision
from backscroll.compaction.inputs import Call, Inputs
from backscroll.compaction.making import Making
from backscroll.compaction.overrides import changed, is_enabled
from backscroll.compaction.plan import Plan, plan
from backscroll.compaction.reading import Reading
from backscroll.compaction.rehearsal import rehearsed
from backscroll.compaction.report import text_hash
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import CompactionEntry
from backscroll.kernel.request import ChatRequest

TRIES = 3


class Actions:
    """The actions of the filter, on any conversation."""

    enabled: bool
    settings: Settings
    _inputs: Inputs
    _making: Making
    _states: CallStates

    async def dry_run(
        self,
        request: ChatRequest,
        *,
        window: int | None = None,
        settings: Mapping[str, Any] | None = None,
        forced: bool = False,
        pending: Collection[str] = (),
    ) -> Plan:
        """Return what the next call would do, or its second attempt; no model is called.

        `pending` are the ids of calls that a paused turn waits for; they are never covered.
        """
        overrides = await self._inputs.overridden(request.conversation_id)
        overrides = changed(self.settings, overrides, settings or {})
        call = await self._call(request, overrides)
        given = dataclasses.replace(call.given, pending=frozenset(pending))
        if window is not None:
            given = dataclasses.replace(given, settings=given.settings.replace(window=window))
        on = is_enabled(self.enabled, overrides)
        return await rehearsed(given, call.summariser, self._inputs.clock, on=on, forced=forced)

    async def compact(
        self,
        request: ChatRequest,
        *,
        focus: str = "",
        by: str | None = None,
        pending: Collection[str] = (),
    ) -> CompactionFinished:
        """Make a summary of what is new, whatever trigger and breaker say; one try.

        `pending` are the ids of calls that a paused turn waits for; they are never covered.
        """
        call = await self._call(request)
        withheld = None if call.summariser is not None else call.given.withheld
        given = dataclasses.replace(
            call.given, manual=True, focus=focus, withheld=withheld, pending=frozenset(pending)
        )
        planned = plan(given)
        done = await self._making.carry_out(planned, request, call.run, call.summariser)
        decision = done.decision or _nothing()
        ms = round((self._inputs.clock.monotonic() - call.began) * 1000)
        decision = decision.replace(ms=ms, health=self._inputs.health(done.entry))
        more = {"action": "compact", **({"focus": focus} if focus else {}), **_by(by)}
        return CompactionFinished({**decision.to_dict(), **more}, done.blobs)

    async def pin(
        self, request: ChatRequest, message_id: str, *, by: str | None = None
    ) -> CompactionFinished:
        """Keep the group of a message whole in every view."""
        call = await self._call(request)
        ids = group_ids(call.given, message_id)
        if not ids:
            raise _no_message(message_id)
        if not ids & call.given.pins:
            tokens, limit = pinned_tokens(call.given, call.given.pins | {message_id})
            if tokens > limit:
                message = f"Pinned messages would take {tokens} tokens, {limit} are allowed."
                raise ActionRefused("pins_over_budget", message, tokens=tokens, limit=limit)
            await self._inputs.pins.pin(_conversation(request), message_id)
        return told("pin", f"pinned message {message_id}", by, message=message_id)

    async def unpin(
        self, request: ChatRequest, message_id: str, *, by: str | None = None
    ) -> CompactionFinished:
        """Take the pins off the group of a message."""
        call = await self._call(request)
        ids = group_ids(call.given, message_id) | {message_id}
        found = ids & call.given.pins
        if not found:
            raise ActionRefused("not_found", f"Message {message_id} is not pinned.")
        for name in sorted(found):
            await self._inputs.pins.unpin(_conversation(request), name)
        return told("unpin", f"unpinned message {message_id}", by, message=message_id)

    async def edit(
        self, request: ChatRequest, text: str, sha256: str, *, by: str | None = None
    ) -> CompactionFinished:
        """Replace the core of the summary whose text has this hash."""
        call = await self._call(request)
        reading = Reading(call.given)
        made = {"at": round(self._inputs.clock.now() * 1000), **_by(by)}
        entry = await self._change(
            _conversation(request), lambda entry: edited(reading, entry, text, sha256, made)
        )
        return _chosen("edit", "edited the summary", by, entry, previous=sha256)

    async def undo(
        self, request: ChatRequest, to: str | None = None, *, by: str | None = None
    ) -> CompactionFinished:
        """Use an older summary, or the whole history, until the trigger is passed again."""
        call = await self._call(request)
        reading = Reading(call.given)
        conversation_id = _conversation(request)
        entry = await self._change(
            conversation_id, lambda entry: gone_back(reading, entry, to), tries=1
        )
        back = "an older summary" if entry.cache is not None else "the whole history"
        return _chosen("undo", f"went back to {back}", by, entry)

    async def forget(self, conversation_id: str, *, by: str | None = None) -> CompactionFinished:
        """Forget summaries and marks; the next call starts from the history."""
        await self._change(
            conversation_id, lambda entry: entry.replace(cache=None, ring=(), marks=None)
        )
        self._states.forget(conversation_id)
        self._inputs.access.let_go(conversation_id)
        return told("forget", "forgot summaries and marks", by)

    async def clear(self, conversation_id: str) -> None:
        """Forget all that is known of a conversation, failures too: it is gone itself."""
        await self._inputs.access.clear(conversation_id)
        self._states.forget(conversation_id)

    async def reset(self, conversation_id: str, *, by: str | None = None) -> CompactionFinished:
        """Forget the failures of the summariser, so that it is asked again."""
        await self._change(conversation_id, lambda entry: entry.replace(failures=0, opened_ms=None))
        return told("reset", "reset the failures of the summariser", by)

    async def configure(
        self, conversation_id: str, changes: Mapping[str, Any], *, by: str | None = None
    ) -> CompactionFinished:
        """Set what holds for this conversation alone; None takes a value back to the agent's."""
        known = await self._inputs.overrides.overrides(conversation_id)
        found = changed(self.settings, known, changes)
        await self._inputs.overrides.override(conversation_id, found)
        words = ", ".join(f"{name} {value}" for name, value in sorted(changes.items()))
        return told("settings", f"set {words}", by, settings=found)

    async def _call(self, request: ChatRequest, overrides: Mapping[str, Any] | None = None) -> Call:
        """Return the next call as it would be planned; the runs under way do not notice."""
        if request.model is None:
            raise ActionRefused("not_found", "The request has no model.")
        if overrides is None:
            overrides = await self._inputs.overridden(request.conversation_id)
        state = copy.copy(self._states.of(request.conversation_id))
        return await self._inputs.of(request, request.model, state, overrides)

    async def _change(
        self,
        conversation_id: str,
        make: Callable[[CompactionEntry], CompactionEntry],
        tries: int = TRIES,
    ) -> CompactionEntry:
        """Write over the entry as it is; who comes second is refused, or judged by what is new."""
        store = self._inputs.access.store
        swap = getattr(store, "swap", None)
        for _ in range(tries):
            entry = await store.get(conversation_id)
            new = make(entry)
            if swap is None:
                await store.put(conversation_id, new)
                return new
            if await swap(conversation_id, new, entry.generation):
                return new
        raise ActionRefused("summary_changed", "Somebody else changed it just now; look again.")


def told(action: str, because: str, by: str | None, **more: Any) -> CompactionFinished:
    """Return what is logged of an action that made no plan."""
    body: dict[str, Any] = {"trigger": "manual", "action": action, "because": because}
    return CompactionFinished({**body, "stages": [], **more, "result": "done", **_by(by)})


def _chosen(
    action: str, because: str, by: str | None, entry: CompactionEntry, **more: Any
) -> CompactionFinished:
    """Return what is logged of a summary being put in use, with its text."""
    cache = entry.cache
    if cache is None:
        return told(action, because, by, **more)
    data = cache.summary.encode("utf-8", "surrogatepass")
    name = text_hash(cache.summary)
    kept = {key: cache.made[key] for key in ("kind", "model") if cache.made.get(key)}
    summary = {"sha256": name, "chars": len(cache.summary), "source": "cache", **kept, **more}
    place = {"result": "hit", "prefix_n": cache.prefix_n, "prefix_hash": cache.prefix_hash}
    made = told(action, because, by, summary=summary, cache=place)
    return CompactionFinished(made.decision, {name: data})


def _by(by: str | None) -> dict[str, str]:
    return {"by": by} if by is not None else {}


def _nothing() -> Decision:
    none = Amount(0, 0)
    return Decision("manual", "asked for by an operator", (), none, none, result="skipped",
                    reason="nothing_to_summarise")  # fmt: skip


def _conversation(request: ChatRequest) -> str:
    if request.conversation_id is None:
        raise ActionRefused("not_found", "The request belongs to no conversation.")
    return request.conversation_id


def _no_message(message_id: str) -> ActionRefused:
    return ActionRefused("not_found", f"There is no message {message_id} in the history.")
