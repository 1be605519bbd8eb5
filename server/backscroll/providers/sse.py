"""Server-sent events as a provider streams them: bytes in, the data of whole events out."""

from __future__ import annotations

from backscroll.kernel.errors import ModelError

MAX_EVENT_BYTES = 8 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class SseParser:
    """Cuts a body into events, however its bytes are split; knows no network."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._tail: list[bytes] = []  # the pieces of a line that has not ended yet
        self._data: list[bytes] = []
        self._size = 0
        self._skip_lf = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of each event these bytes complete; raises `parse` for one too large."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            self._hold(chunk)
            return []
        # A CR ends its line at once; an LF that follows in the next chunk belongs to it.
        self._skip_lf = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        if self._tail:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail = []
        out = [data for line in lines if (data := self._line(line)) is not None]
        self._size = sum(map(len, self._data))
        self._hold(rest)
        return out

    def finish(self) -> list[str]:
        """Return the data of an event that the end of the body cut off before its blank line."""
        last = b"".join(self._tail)
        self._tail = []
        out = [] if (first := self._line(last)) is None else [first]
        pending = self._event() if self._data else None
        return out if pending is None else [*out, pending]

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._tail.append(piece)
            self._size += len(piece)
        if self._size > self._max:
            message = f"expected an event of at most {self._max} bytes, got more"
            raise ModelError("parse", message)

    def _line(self, line: bytes) -> str | None:
        """Take one line; return the data of the event that it ends, if it ends one."""
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if line.startswith(b"data: "):
            self._data.append(line[6:])
        elif not line:
            return self._event() if self._data else None
        elif line.startswith(b"data:"):
            self._data.append(line[5:])
        elif line == b"data":
            self._data.append(b"")
        return None

    def _event(self) -> str | None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        return data.decode("utf-8", "replace") if data.strip() else None
