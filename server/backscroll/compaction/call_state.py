"""What a process remembers of a conversation between its calls; losing it costs accuracy only."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from backscroll.compaction.plan_value import Plan
from backscroll.compaction.prefix import SentView
from backscroll.compaction.store import LRU, ModelFact

THIN_SHARE = 0.10
BELOW_REFUSED = 0.90
THIN_IN_A_ROW = 3
SLIDING_AFTER = 3


@dataclass(slots=True)
class RunState:
    """What holds for one run: what was known of its models when it began, and its summaries.

    `token` tells runs apart: each has its own wish to stop. `counted` are the models whose provider
    was asked for a count. `refused` is the smallest view that
    each model refused.
    """

    token: object
    facts: dict[str, ModelFact] = field(default_factory=dict)
    store_noted: bool = False
    counted: set[str] = field(default_factory=set)
    thrashing: bool = False
    refused: dict[str, int] = field(default_factory=dict)
    _summarised_at: int | None = None
    _thin: int = 0

    def was_refused(self, key: str, planned: Plan) -> None:
        """Note that a model refused a view of this size."""
        if planned.state is not None:
            view = planned.state.view.tokens
            self.refused[key] = min(view, self.refused.get(key, view))

    def ceiling(self, key: str) -> int | None:
        """Return what a view may take so that it is not refused again, if one was."""
        found = self.refused.get(key)
        return None if found is None else int(BELOW_REFUSED * found)

    def wants_summary(self, before: int, available: int) -> None:
        """Note that a summary is wanted when the whole history has this size.

        The third one in a row with hardly anything new since the last ends summaries of this run.
        """
        if self._summarised_at is not None:
            grown = before - self._summarised_at
            self._thin = self._thin + 1 if grown < THIN_SHARE * available else 0
        self.thrashing = self.thrashing or self._thin >= THIN_IN_A_ROW

    def summarised(self, before: int) -> None:
        """Note that a summary was made."""
        self._summarised_at = before


@dataclass(slots=True)
class CallState:
    """What the last calls of one conversation left behind."""

    run: RunState | None = None
    sent: SentView | None = None
    goal_ratio: float | None = None
    shortened: frozenset[str] = frozenset()
    _missed: str | None = None
    _misses: int = 0

    def run_of(self, token: object) -> RunState:
        """Return the state of the run that this token belongs to."""
        if self.run is None or self.run.token is not token:
            self.run = RunState(token)
        return self.run

    @property
    def is_sliding(self) -> bool:
        """Say whether one summary after the other lost its prefix."""
        return self._misses >= SLIDING_AFTER

    def saw_cache(self, planned: Plan) -> None:
        """Note whether the stored summary could be used; the same miss counts once."""
        cache, state = planned.given.entry.cache, planned.state
        if cache is None or state is None:
            return
        if state.choice.result == "miss":
            self._misses += cache.prefix_hash != self._missed
            self._missed = cache.prefix_hash
        else:
            self._misses, self._missed = 0, None


class CallStates:
    """The states of the conversations used last."""

    def __init__(self, limit: int = LRU) -> None:
        self._limit = limit
        self._states: OrderedDict[str, CallState] = OrderedDict()

    def of(self, conversation_id: str | None) -> CallState:
        """Return the state of a conversation; a fresh one without an id."""
        if conversation_id is None:
            return CallState()
        state = self._states.setdefault(conversation_id, CallState())
        self._states.move_to_end(conversation_id)
        while len(self._states) > self._limit:
            self._states.popitem(last=False)
        return state

    def forget(self, conversation_id: str) -> None:
        """Forget a conversation."""
        self._states.pop(conversation_id, None)
