"""How many bad frames a connection may send before it has broken the rules too often."""

from __future__ import annotations

from collections import deque

MOST = 50
WITHIN_S = 60.0


class BadFrames:
    """Counts the bad frames of one connection over the last minute."""

    def __init__(self) -> None:
        self._at: deque[float] = deque()

    def is_one_too_many(self, now: float) -> bool:
        """Count one more, at this time in seconds; say whether the connection is to be closed."""
        self._at.append(now)
        while self._at[0] < now - WITHIN_S:
            self._at.popleft()
        return len(self._at) >= MOST
