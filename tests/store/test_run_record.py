"""What is remembered of a run."""

from __future__ import annotations

from backscroll.store.history import StoredHistory
from backscroll.store.keys import ThreadKey
from backscroll.store.run_record import RunInfo, StartRequest, pack_end, pack_start, read_record

T = ThreadKey("local", "t")


def packed_start() -> bytes:
    """Return the record the start script writes."""
    request = StartRequest(
        *(T, "r1", "agent ü", "f 1", [], StoredHistory().change(), 30.0), parent_run="r 0"
    )
    return b"3 10 12 1000 batch " + pack_start(request)


def test_a_running_run() -> None:
    """It has no end yet; its last number is that of its start."""
    info, batch = read_record(T, "r1", packed_start(), None)

    assert info == RunInfo("r1", T, "agent ü", "f 1", "r 0", "running", 3, 10, 12, 1000)
    assert batch == "batch"


def test_an_ended_run() -> None:
    """Status, error and details of its end; blanks in the packed part do no harm."""
    end = b"40 2000 " + pack_end("error", "model  gone", {"usage": {"a b": 1}})

    info, _ = read_record(T, "r1", packed_start(), end)

    assert (info.status, info.error, info.last, info.ended) == ("error", "model  gone", 40, 2000)
    assert info.details == {"usage": {"a b": 1}}
    assert (info.first, info.started) == (10, 1000)
