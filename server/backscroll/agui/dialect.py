"""Frames: an entry of the log, or a prelude, as the text that goes to one kind of reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ag_ui import core as ag

from backscroll.agui.cursor import Cursor
from backscroll.agui.fit import fit_event, fits
from backscroll.agui.join import Prelude
from backscroll.agui.older import older_json
from backscroll.agui.pages import echo_pages
from backscroll.agui.wire import event_json, read_event
from backscroll.kernel.canon import canonical_json
from backscroll.store.entry import Entry

DialectName = Literal["bare", "durable", "sse"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of reader of a thread is written to; each text is made without parsing."""

    name: DialectName
    thread_id: str
    epoch: str
    is_older: bool = False
    form: str = field(init=False)
    """The key under which a text may be shared with other readers of the thread."""
    _middle: str = field(init=False)

    def __post_init__(self) -> None:
        form = f"{self.name}.{self.epoch}{'.older' if self.is_older else ''}"
        object.__setattr__(self, "form", form)
        middle = f'","threadId":{canonical_json(self.thread_id)},"chunk":'
        object.__setattr__(self, "_middle", middle)

    def frame(self, entry: Entry) -> str:
        """Return an entry of kind `event` as a frame."""
        return self._logged(Cursor(entry.seq, self.epoch), self._told(entry.body.decode()))

    def fitted(self, entry: Entry, max_frame: int) -> list[str] | None:
        """Return frames within the reader's limit, or None when only a resync helps.

        The last one carries the cursor. In front of it an echo that does not fit comes in pages.
        """
        text = self._told(entry.body.decode())
        short = text if fits(text, max_frame) else fit_event(text, max_frame)
        cursor = Cursor(entry.seq, self.epoch)
        if short is not None:
            return [self._logged(cursor, short)]
        event = read_event(entry.body)
        if not isinstance(event, ag.RunStartedEvent) or event.input is None:
            return None
        pages = [
            self.synthetic(event_json(page, entry.time))
            for page in echo_pages(self.thread_id, event.input.messages, max_frame)
        ]
        event.input = None
        return [*pages, self._logged(cursor, self._told(event_json(event, entry.time)))]

    def prelude(self, prelude: Prelude) -> list[str]:
        """Return the frames of a prelude; the last one carries the cursor of the cut."""
        told = [self._told(text) for text in prelude.texts]
        return [*map(self._bare, told[:-1]), self._logged(prelude.cursor, told[-1])]

    def synthetic(self, text: str) -> str:
        """Return a synthetic event as a frame, which has no cursor."""
        return self._bare(self._told(text))

    def _bare(self, text: str) -> str:
        return f"data: {text}\n\n" if self.name == "sse" else text

    def _told(self, text: str) -> str:
        return older_json(text) if self.is_older else text

    def _logged(self, cursor: Cursor, text: str) -> str:
        if self.name == "bare":
            return text
        if self.name == "sse":
            return f"id: {cursor}\ndata: {text}\n\n"
        return f'{{"id":"{cursor}{self._middle}{text}}}'
