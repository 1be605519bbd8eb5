"""Groups of messages that nothing separates, and what of a history is always sent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import is_

from backscroll.compaction.canon_forms import is_made_up
from backscroll.kernel.content import text_of
from backscroll.kernel.message import Message, Role


@dataclass(frozen=True, slots=True)
class Group:
    """A run of messages, H[start:end], that stands or falls together.

    `is_open` says that one of its calls still waits for its result; `results` are the indexes of
    the tool messages that answer calls of the group.
    """

    start: int
    end: int
    is_open: bool = False
    results: tuple[int, ...] = ()


@dataclass(slots=True)
class _Bond:
    """An assistant message, the results of its calls, and the calls without a real one."""

    start: int
    results: list[int]
    missing: list[str]


def find_groups(
    history: Sequence[Message], pending: Collection[str] = frozenset()
) -> tuple[Group, ...]:
    """Partition a history into groups; `pending` are the ids of calls that wait for answers."""
    return _find(history, 0, pending)[0]


class GroupFinder:
    """Finds groups, and goes on from those it found last where a history only grew."""

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._known: OrderedDict[int, tuple[list[Message], tuple[Group, ...]]] = OrderedDict()

    def find(
        self, history: Sequence[Message], pending: Collection[str] = frozenset()
    ) -> tuple[Group, ...]:
        """Return the same as `find_groups`."""
        first = id(history[0]) if history else 0
        messages, settled = self._known.get(first, ([], ()))
        if len(history) < len(messages) or not all(map(is_, messages, history)):
            messages, settled = [], ()
        start = settled[-1].end if settled else 0
        found, whole = _find(history, start, pending)
        # The last group may grow, and one that lacks a result may still get it.
        certain = min(whole, max(len(found) - 1, 0))
        known = (*settled, *found[:certain])
        end = known[-1].end if known else 0
        self._known[first] = (list(history[:end]), known)
        while len(self._known) > self._limit:
            self._known.popitem(last=False)
        return (*settled, *found)


def _find(
    history: Sequence[Message], first: int, pending: Collection[str]
) -> tuple[tuple[Group, ...], int]:
    """Return the groups from an index on, and how many of them come before a missing result."""
    bonds = _bind(history, first)
    last_user = _newest(history, lambda message: message.role is Role.USER)
    groups: list[Group] = []
    whole: int | None = None
    for start, end in _spans(history, bonds, first):
        if start not in bonds and end == start + 1:
            groups.append(Group(start, end))
            continue
        inside = [bonds[i] for i in range(start, end) if i in bonds]
        results = tuple(sorted(i for bond in inside for i in bond.results))
        missing = [bond for bond in inside if bond.missing]
        if missing and whole is None:
            whole = len(groups)
        is_open = any(_waits(bond, pending, last_user) for bond in missing)
        groups.append(Group(start, end, is_open, results))
    return tuple(groups), len(groups) if whole is None else whole


def always_kept(
    history: Sequence[Message], groups: Sequence[Group], pinned: Collection[str] = frozenset()
) -> Mapping[int, str]:
    """Return the indexes of what is always sent, each with the reason; `pinned` are message ids."""
    kept: dict[int, str] = {}
    last = groups[-1] if groups else None
    for group in groups if pinned else [g for g in groups if g.is_open or g is last]:
        span = range(group.start, group.end)
        if pinned and any(history[i].id in pinned for i in span):
            kept.update(dict.fromkeys(span, "pinned"))
        elif group.is_open:
            kept.update(dict.fromkeys(span, "waits for a result"))
        elif group is last:
            kept.update(dict.fromkeys(span, "newest"))
    for index in newest_user_messages(history):
        kept.setdefault(index, "newest user message")
    systems = [index for index, message in enumerate(history) if message.role is Role.SYSTEM]
    kept.update(dict.fromkeys(systems, "system message"))
    return kept


def newest_user_messages(history: Sequence[Message]) -> tuple[int, ...]:
    """Return the index of the newest user message, and of the newest that a person sent.

    They differ where a filter answered for the user, as validation does with its feedback.
    """
    newest = _newest(history, lambda message: message.role is Role.USER)
    said = _newest(history, lambda message: message.role is Role.USER and message.origin is None)
    return tuple(sorted({index for index in (newest, said) if index >= 0}))


def _bind(history: Sequence[Message], first: int) -> dict[int, _Bond]:
    """Give each result to the nearest earlier assistant message that still needs it."""
    bonds: dict[int, _Bond] = {}
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(islice(history, first, None), first):
        if message.tool_calls:
            ids = [call.id for call in message.tool_calls]
            bonds[index] = _Bond(index, [], list(ids))
            for call_id in ids:
                waiting.setdefault(call_id, []).append(index)
        elif message.role is Role.TOOL and waiting.get(message.tool_call_id or ""):
            call_id = message.tool_call_id or ""
            bond = bonds[waiting[call_id].pop()]
            bond.results.append(index)
            if not is_made_up(message):
                bond.missing.remove(call_id)
    return bonds


def _spans(
    history: Sequence[Message], bonds: Mapping[int, _Bond], start: int
) -> Iterator[tuple[int, int]]:
    """Yield the runs from an index on that are closed under all bonds, in order."""
    while start < len(history):
        end, index = start + 1, start
        while index < end:
            bond = bonds.get(index)
            if bond is not None and bond.results:
                end = max(end, bond.results[-1] + 1)
            if _leads(history, index):
                end = max(end, index + 2)
            index += 1
        yield start, end
        start = end


def _leads(history: Sequence[Message], index: int) -> bool:
    """Say whether a message holds only reasoning and the calling one comes right after it."""
    message = history[index]
    if not (message.reasoning or message.blocks) or message.tool_calls:
        return False
    if index + 1 == len(history) or not history[index + 1].tool_calls:
        return False
    return message.role is Role.ASSISTANT and not text_of(message.for_model()).strip()


def _waits(bond: _Bond, pending: Collection[str], last_user: int) -> bool:
    """Say whether a call of this message has no real result yet and may still get one."""
    return any(call_id in pending or last_user < bond.start for call_id in bond.missing)


def _newest(history: Sequence[Message], matches: Callable[[Message], bool]) -> int:
    """Return the index of the newest message that matches, -1 if there is none."""
    return next((i for i in range(len(history) - 1, -1, -1) if matches(history[i])), -1)
