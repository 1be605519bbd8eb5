"""Write-back: a developer's hook that gets the compacted history after a fresh summary."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from backscroll.compaction.plan_value import Plan
from backscroll.compaction.reasons import Warned
from backscroll.compaction.store import EMPTY
from backscroll.compaction.store_access import StoreAccess
from backscroll.compaction.stored_summary import compacted_history, stored_summary
from backscroll.compaction.view import last_reference
from backscroll.kernel.errors import AssemblyError, Never
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids

WriteBack = Callable[[str, list[Message], list[Message]], Awaitable[Any] | Any]
"""Gets a conversation id, the compacted history and the original; True says that it is stored."""


class ReplacingMemory(Protocol):
    """A memory that can put a shorter history in place of one, in one step."""

    async def replace(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        expected: int,
        ids: Sequence[str],
        archive: bool,
    ) -> bool:
        """Put messages in place of the first `expected`; what was appended since stays behind.

        False, and nothing changed, when those are not the ones with these ids, which the messages
        were made from. With `archive` the replaced ones stay readable for call records.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreBack:
    """A hook that stores the compacted history in place of the original one."""

    memory: ReplacingMemory | None
    archive: bool = True

    async def __call__(
        self, conversation_id: str, compacted: list[Message], original: list[Message]
    ) -> bool:
        """Say whether the shorter history is stored."""
        if self.memory is None:
            raise _cannot_replace(None)
        return await self.memory.replace(
            conversation_id,
            compacted,
            expected=len(original),
            ids=[message.id or "" for message in original],
            archive=self.archive,
        )

    def bind(self, memory: object) -> StoreBack:
        """Return the hook on a host's memory, if it was given none of its own."""
        return self if self.memory is not None else _checked(memory, self.archive)


def write_back_to(memory: ReplacingMemory | None = None, archive: bool = True) -> StoreBack:
    """Return a hook that stores the compacted history in place of the original one.

    People see the shorter history, too. Without a memory it is the agent's own. Raises
    `invalid_option` for a memory that cannot replace.
    """
    return StoreBack(None, archive) if memory is None else _checked(memory, archive)


def _checked(memory: object, archive: bool) -> StoreBack:
    if not hasattr(memory, "replace"):
        raise _cannot_replace(memory)
    return StoreBack(cast("ReplacingMemory", memory), archive)


def _cannot_replace(memory: object) -> AssemblyError:
    message = f"write_back_to: expected a memory with replace(), got {memory!r}"
    return AssemblyError("invalid_option", message, "memory")


@dataclass(frozen=True, slots=True)
class WritingBack:
    """Calls the hook once for a summary that comes into use, and forgets it when it was stored."""

    hook: WriteBack
    access: StoreAccess
    ids: Ids

    async def after(self, planned: Plan, conversation_id: str) -> Plan:
        """Return the plan with what came of the hook; what the hook raises is only reported."""
        reading, cache = planned.reading, planned.entry.cache
        if reading is None or cache is None or planned.decision is None:
            return planned
        ref = last_reference(reading, cache.prefix_n)
        message = stored_summary(cache.summary, ref, self.ids.new("msg"), planned.given.means.texts)
        # What repair made up or changed for the view is no part of what is stored.
        original = [m for m in planned.given.history if m.id is not None]
        compacted = compacted_history(reading.history, cache.prefix_n, reading.kept, message)
        try:
            found = self.hook(conversation_id, [m for m in compacted if m.id is not None], original)
            stored = await found if inspect.isawaitable(found) else found
        except Never.CONTAINED:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:300]
            return _told(planned, "failed", Warned("write_back_failed", {"why": why}))
        if stored is False:
            return _told(planned, "refused", Warned("write_back_refused"))
        if stored is True:
            entry = await self.access.get(conversation_id)
            await self.access.swap(
                conversation_id, EMPTY.replace(failures=entry.failures), entry.generation
            )
        return _told(planned, "done", stored=stored is True)


def _told(
    planned: Plan, result: str, warning: Warned | None = None, *, stored: bool = False
) -> Plan:
    decision, warnings = planned.decision, list(planned.warnings)
    told: dict[str, Any] = {"result": result, **({"stored": True} if stored else {})}
    if decision is None:
        return planned
    shown = list(decision.warnings)
    if warning is not None:
        warnings.append(warning)
        shown.append({"reason": warning.reason, **warning.data})
    decision = decision.replace(write_back=told, warnings=tuple(shown))
    return dataclasses.replace(planned, decision=decision, warnings=tuple(warnings))
