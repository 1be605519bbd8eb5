"""Frames: an entry of the log, or a prelude, as the text that goes to one kind of reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from backscroll.agui.join import Prelude
from backscroll.store.entry import Entry

DialectName = Literal["bare", "durable", "sse"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of reader is written to; texts of one `form` are the same for all of them."""

    name: DialectName
    thread_id: str
    epoch: str
    is_older: bool = False

    @property
    def form(self) -> str:
        """The key under which a text may be shared with other readers of the thread."""
        raise NotImplementedError

    def frame(self, entry: Entry) -> str:
        """Return an entry of kind `event` as a frame."""
        raise NotImplementedError

    def fitted(self, entry: Entry, max_frame: int) -> str | None:
        """Return a frame that is within the reader's limit, or None when only a resync helps."""
        raise NotImplementedError

    def prelude(self, prelude: Prelude) -> list[str]:
        """Return the frames of a prelude; its last one carries the cursor where one can."""
        raise NotImplementedError

    def synthetic(self, text: str) -> str:
        """Return a synthetic event as a frame without a cursor."""
        raise NotImplementedError
