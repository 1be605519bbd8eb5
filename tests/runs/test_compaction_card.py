"""What operators see of a thread's compaction store."""

from __future__ import annotations

from backscroll.compaction.canon_forms import prefix_hashes
from backscroll.compaction.report import text_hash
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import EMPTY, Cache
from backscroll.kernel.message import assistant, user
from backscroll.runs.compaction_card import compaction_card

LIVE = [user("a", "u1"), assistant("b", id="a1"), user("c", "u2")]
SETTINGS = Settings(failures_open=3, cooldown=60)
NOW = 1_000_000


def test_nothing_is_kept() -> None:
    """An unknown conversation has no cache and no failures."""
    assert compaction_card(EMPTY, LIVE, SETTINGS, NOW) == {"failures": 0, "paused": False}


def test_a_cache_that_fits() -> None:
    """What it stands for, when it was made, how large it is."""
    cache = Cache(2, prefix_hashes(LIVE)[2], "摘要", {"kind": "model", "at": 123})

    card = compaction_card(EMPTY.replace(cache=cache), LIVE, SETTINGS, NOW)

    assert card["cache"] == {
        "prefix_n": 2,
        "prefix_hash": cache.prefix_hash,
        "matches": True,
        "sha256": text_hash("摘要"),
        "made": 123,
        "kind": "model",
    }
    assert card["bytes"] == 6


def test_what_operators_chose_is_named() -> None:
    """Pins, settings of the thread, and the summaries that can be gone back to."""
    entry = EMPTY.replace(ring=(Cache(2, prefix_hashes(LIVE)[2], "old"), Cache(9, "x", "gone")))

    card = compaction_card(entry, LIVE, SETTINGS, NOW, {"u2", "a1"}, {"enabled": False})

    assert card["pins"] == ["a1", "u2"] and card["settings"] == {"enabled": False}
    assert [(old["sha256"], old["matches"]) for old in card["ring"]] == [
        (text_hash("old"), True),
        (text_hash("gone"), False),
    ]


def test_a_cache_that_no_longer_fits() -> None:
    """The history is another one, or shorter: it is not in use, and shown so."""
    other = EMPTY.replace(cache=Cache(2, "else", "x"))
    longer = EMPTY.replace(cache=Cache(9, "x", "x", {"at": "yesterday"}))

    for entry in (other, longer):
        card = compaction_card(entry, LIVE, SETTINGS, NOW)
        assert card["cache"]["matches"] is False and "made" not in card["cache"]


def test_paused_after_failures() -> None:
    """Only as many failures as open the breaker pause, and only for the cooldown."""
    failing = EMPTY.replace(failures=3, opened_ms=NOW - 59_000)

    assert compaction_card(failing, LIVE, SETTINGS, NOW)["paused"] is True
    assert compaction_card(failing, LIVE, SETTINGS, NOW + 1_000)["paused"] is False
    assert compaction_card(failing.replace(failures=2), LIVE, SETTINGS, NOW) == {
        "failures": 2,
        "paused": False,
    }
