"""Folded rows of threads, kept between requests so that only what is new is folded."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from backscroll.runs.entry_json import entry_for_fold
from backscroll.runs.fold import Fold
from backscroll.store.keys import ThreadKey
from backscroll.store.thread_log import ThreadLog

THREADS = 32
PAGE = 2000


class _Folded:
    def __init__(self, epoch: str, floor: int) -> None:
        self.epoch, self.floor = epoch, floor
        self.fold = Fold(floor)


class RowBook:
    """The rows of any thread, up to the present head; a few threads are remembered."""

    def __init__(self, log: ThreadLog) -> None:
        self._log = log
        self._folded: OrderedDict[ThreadKey, _Folded] = OrderedDict()
        self._turn = asyncio.Lock()

    async def rows(self, thread: ThreadKey) -> Fold:
        """Return the fold of a thread, which holds its rows and the last seq folded."""
        async with self._turn:
            head = await self._log.head(thread)
            folded = self._folded.get(thread)
            if folded is None or (folded.epoch, folded.floor) != (head.epoch, head.floor):
                folded = self._folded[thread] = _Folded(head.epoch, head.floor)
            self._folded.move_to_end(thread)
            while len(self._folded) > THREADS:
                self._folded.popitem(last=False)
            fold = folded.fold
            while fold.head < head.seq:
                entries = await self._log.read(thread, fold.head, PAGE)
                if not entries:
                    break
                fold.extend(map(entry_for_fold, entries))
            return fold
