"""Why compaction warned, or did less than was wanted: a closed list with one sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Reason = Literal[
    "window_assumed",
    "overhead_too_large",
    "pins_over_budget",
    "nothing_to_summarise",
    "summariser_failed",
    "summariser_timeout",
    "paused_after_failures",
    "no_summariser",
    "lease_wait_over",
    "thrashing",
    "store_unavailable",
    "count_unavailable",
    "swap_lost",
    "sliding_prefix",
    "cannot_fit",
    "invariant",
    "unclaimed",
    "suspected_truncation",
    "limit_learned",
    "output_lowered",
    "clipped",
    "ungrounded",
    "write_back_refused",
    "write_back_failed",
    "uncompacted",
]

REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        "window_assumed": "The model's context window is not known, so a default was used.",
        "overhead_too_large": "System texts and tools leave too little room for the messages.",
        "pins_over_budget": "Pinned messages take more than their share, so the oldest are cut.",
        "nothing_to_summarise": "No part of the conversation could be summarised safely.",
        "summariser_failed": "The summariser gave nothing that could be used.",
        "summariser_timeout": "The summariser did not answer in time.",
        "paused_after_failures": "Summaries are paused because the summariser failed repeatedly.",
        "no_summariser": "There is no summariser, so messages are left out without a summary.",
        "lease_wait_over": "Another worker was still making the summary when time was up.",
        "thrashing": "Summaries bring too little, so none is made for the rest of this run.",
        "store_unavailable": "The compaction store could not be read or written.",
        "count_unavailable": "The provider did not count the request, so it was estimated.",
        "swap_lost": "Another worker stored its result first.",
        "sliding_prefix": "The history loses its beginning, so no summary of it stays valid.",
        "cannot_fit": "What must be kept is larger than the window.",
        "invariant": "Our own check of the view failed, so the capped history was sent.",
        "unclaimed": "A message is missing from the request and no layer said why.",
        "suspected_truncation": "The provider seems to have cut the prompt without saying so.",
        "limit_learned": "The provider stated a smaller limit than the one configured.",
        "output_lowered": "The maximum output was lowered to what the window leaves.",
        "clipped": "The summary was cut to its limit.",
        "ungrounded": "The summary names identifiers that its material does not contain.",
        "write_back_refused": "The stored history had changed, so nothing was written back.",
        "write_back_failed": "Writing the compacted history back failed.",
        "uncompacted": "A larger window brought earlier messages back.",
    }
)
"""The sentence an operator reads for each reason."""


@dataclass(frozen=True, slots=True)
class Warned:
    """One warning: its reason, and the numbers that belong to it."""

    reason: Reason
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentence for operators."""
        return REASONS[self.reason]
