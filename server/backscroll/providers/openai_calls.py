"""Which call does a streamed fragment belong to? Servers disagree; this is the one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from backscroll.kernel.canon import SurrogateJoiner, parse_json
from backscroll.kernel.message import ToolCall, parse_call
from backscroll.kernel.model import CallArgs, CallClosed, CallOpened, Delta
from backscroll.providers.openai_response import arguments_text


class Draft:
    """A call that is still arriving."""

    def __init__(self, call_id: str, minted: bool, index: int | None, name: str) -> None:
        self.id, self.minted, self.index, self.name = call_id, minted, index, name
        self.opened = False
        self.size = 0  # of the argument text; joining it for each fragment would be quadratic
        self._taken: list[str] = []
        self._unsent: list[str] = []
        self._joiner = SurrogateJoiner()

    @property
    def args(self) -> str:
        """The argument text so far."""
        if len(self._taken) > 1:
            self._taken = ["".join(self._taken)]
        return self._taken[0] if self._taken else ""

    def add(self, text: str) -> None:
        """Take a piece of argument text."""
        self._keep(self._joiner.feed(text))

    def end(self) -> None:
        """Take what was held back for a partner that did not come."""
        self._keep(self._joiner.finish())

    def is_complete(self) -> bool:
        """Say whether the argument text is a whole JSON object already."""
        if not self.args.rstrip().endswith("}"):
            return False
        try:
            return isinstance(parse_json(self.args), dict)
        except (ValueError, RecursionError):
            return False

    def news(self) -> Iterator[Delta]:
        """Yield what can be delivered and was not, now that the name cannot grow any more."""
        if not self.opened:
            self.opened = True
            yield CallOpened(self.id, self.name)
        if self._unsent:
            yield CallArgs(self.id, "".join(self._unsent))
            self._unsent = []

    def _keep(self, text: str) -> None:
        if text:
            self.size += len(text)
            self._taken.append(text)
            self._unsent.append(text)


class Calls:
    """The calls of one reply, in the order of their first fragments."""

    def __init__(self, offered: Iterable[str], mint: Callable[[], str]) -> None:
        self._offered, self._mint = tuple(offered), mint
        self._drafts: list[Draft] = []
        self._by_id: dict[str, Draft] = {}

    def __bool__(self) -> bool:
        """Say whether there is any call."""
        return bool(self._drafts)

    def feed(self, fragment: Mapping[str, Any]) -> Iterator[Delta]:
        """Take one fragment of a delta's `tool_calls` and yield what it makes deliverable."""
        found = fragment.get("function")
        function = found if isinstance(found, Mapping) else {}
        name, text = function.get("name"), arguments_text(function.get("arguments"))
        name = name if isinstance(name, str) else ""
        draft, is_new = self._place(fragment, name)
        if is_new:
            yield from self._settle_others(draft)
        elif text and len(text) == draft.size and text == draft.args and draft.is_complete():
            text = ""
        draft.add(text)
        if draft.opened or (draft.name and (text or not self._can_grow(draft.name))):
            yield from draft.news()

    def finish(self) -> Iterator[Delta]:
        """Yield what is left, then the end of every call."""
        for draft in self._drafts:
            draft.end()
            yield from draft.news()
        for draft in self._drafts:
            yield CallClosed(draft.id)

    def read(self) -> tuple[ToolCall, ...]:
        """Return the calls as they stand."""
        return tuple(parse_call(draft.id, draft.name, draft.args) for draft in self._drafts)

    def raw(self) -> tuple[str, ...]:
        """Return names and argument texts, for people."""
        return tuple(f"{draft.name} {draft.args}".strip() for draft in self._drafts)

    def _place(self, fragment: Mapping[str, Any], name: str) -> tuple[Draft, bool]:
        """Return the call a fragment belongs to, and whether it has just begun."""
        call_id, index = fragment.get("id"), fragment.get("index")
        index = index if isinstance(index, int) else None
        if isinstance(call_id, str) and call_id:
            known = self._by_id.get(call_id)
            if known is None and not name:
                known = self._late_id(call_id, index)
            if known is None:
                return self._begin(call_id, False, index, name), True
            self._name(known, name)
            return known, False
        newest = self._newest(index)
        if newest is None or (name and not self._continues(newest, name)):
            return self._begin(self._mint(), True, index, name), True
        return newest, False

    def _late_id(self, call_id: str, index: int | None) -> Draft | None:
        """Return the call whose id we had made up before its own came; ours stays."""
        newest = self._newest(index)
        if newest is None or not newest.minted:
            return None
        self._by_id[call_id] = newest
        return newest

    def _continues(self, draft: Draft, name: str) -> bool:
        """Say whether a named fragment without an id goes on with this call."""
        if draft.name and draft.is_complete():
            return False
        return name == draft.name or self._name(draft, name)

    def _name(self, draft: Draft, name: str) -> bool:
        """Let a call's name begin or grow, where it can; say whether it did."""
        if not name or draft.opened or (draft.name and draft.size):
            return False
        grown = self._grown(draft.name, name) if draft.name else name
        draft.name = grown or draft.name
        return grown is not None

    def _grown(self, start: str, more: str) -> str | None:
        """Return the joined name, if it is the beginning of an offered tool's."""
        joined = start + more
        return joined if any(name.startswith(joined) for name in self._offered) else None

    def _can_grow(self, start: str) -> bool:
        return any(name != start and name.startswith(start) for name in self._offered)

    def _newest(self, index: int | None) -> Draft | None:
        if index is None:
            return self._drafts[-1] if self._drafts else None
        return next((d for d in reversed(self._drafts) if d.index == index), None)

    def _begin(self, call_id: str, minted: bool, index: int | None, name: str) -> Draft:
        draft = Draft(call_id, minted, index, name)
        self._drafts.append(draft)
        self._by_id[call_id] = draft
        return draft

    def _settle_others(self, newest: Draft) -> Iterator[Delta]:
        """Deliver calls whose names were still open: another call has begun."""
        for draft in self._drafts:
            if draft is not newest and draft.name:
                yield from draft.news()
