"""What operators read in a thread of the requests that were refused there."""

from __future__ import annotations

import logging

from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.errors import StoreError
from backscroll.runs.notes import note_entry, refusal_note
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog

logger = logging.getLogger(__name__)

# What is no fault of the request is not worth a note in its thread.
_UNNOTED = frozenset({"draining", "unavailable"})


class Refusals:
    """Writes refused requests into the logs of the threads they named."""

    def __init__(self, log: ThreadLog) -> None:
        self._log = log

    async def note(self, owner: str, refusal: RequestRefused) -> None:
        """Leave a note for operators in the thread that a refused request named, if it exists."""
        known = {**refusal.details, **refusal.ids}
        if "threadId" not in known or refusal.code in _UNNOTED:
            return
        thread = ThreadKey(owner, known["threadId"])
        entry = note_entry(refusal_note(refusal, known.get("runId")))
        try:
            if (await self._log.head(thread)).exists:
                await self._log.append(thread, [entry], fence=0)
        except StoreError as error:
            logger.warning("a refusal was not noted: %s", error)
