"""The activities of ended runs, as they are kept with their thread."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from backscroll.agui.live_run import Activity
from backscroll.kernel.canon import canonical_json

LARGEST = 64 * 1024


def write_activities(activities: Iterable[Activity], after: str | None) -> list[bytes]:
    """Return activities in the form they are kept in; `after` is the place of those without one.

    Of one that is too large only the numbers are kept, or nothing.
    """
    found = []
    for activity in activities:
        for content in (activity.content, {**activity.content, "text": None}):
            known = {name: value for name, value in content.items() if value is not None}
            body = [activity.id, activity.kind, known, activity.after or after]
            data = canonical_json(body).encode("utf-8", "surrogatepass")
            if len(data) <= LARGEST:
                found.append(data)
                break
    return found


def read_activities(kept: Iterable[bytes], shown: Collection[str]) -> tuple[Activity, ...]:
    """Return the activities behind messages that are shown; the others have lost their place."""
    found = (Activity(*json.loads(data.decode("utf-8", "surrogatepass"))) for data in kept)
    return tuple(activity for activity in found if activity.after in shown)
