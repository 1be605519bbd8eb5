"""What a live run has shown, folded from its events."""

from __future__ import annotations

from agui_stories import (
    Log,
    args,
    called,
    encoder,
    folded,
    iteration,
    opened,
    played,
    replied,
    returned,
    said,
    thought,
)
from backscroll.agui.live_run import LiveRun
from backscroll.agui.run_end import CANCELLED
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import assistant, tool_result, user


def test_what_is_open() -> None:
    """The step, and of what streams everything since its last start."""
    run = folded(
        played([iteration(0), *said("m", "a", "b"), opened("m", "c"), args("m", "c", "{")])
    )

    assert (run.run_id, run.steps, run.texts) == ("r1", ["iteration-1"], {})
    assert run.calls["c"].whole == "{" and run.calls["c"].name == "add"
    assert [m.content for m in run.unstored([])] == ["ab"]


def test_reasoning_is_folded_in_two_layers() -> None:
    """The span and its message open and close apart."""
    entries = played([*thought("m", "a"), *said("m", "b")])

    runs = [folded(entries[:n]) for n in range(1, 7)]

    assert [(run.spans, list(run.reasoning)) for run in runs] == [
        ([], []),
        (["m.r"], []),
        (["m.r"], ["m.r"]),
        (["m.r"], ["m.r"]),
        (["m.r"], []),
        ([], []),
    ]
    assert folded(entries).reasoning_sent() == ["m.r"]


def test_what_was_sent_whole_but_is_not_stored() -> None:
    """Texts, ended calls and results, as messages; what is stored is left out."""
    result = tool_result("c1", "add", "3", id="t1", outcome="error")
    steps = [*said("m", "Hi"), *called("m", "c1", '{"a": 1}'), opened("m", "c2"), returned(result)]

    run = folded(played(steps))

    reply, answer = run.unstored([])
    assert (reply.content, reply.tool_calls[0].args_text) == ("Hi", '{"a": 1}')
    assert len(reply.tool_calls) == 1 and reply.id == "m"
    assert (answer.id, answer.tool_call_id, answer.outcome) == ("t1", "c1", "error")
    assert run.unstored([assistant("Hi", id="m"), result]) == []
    assert run.made() == {"m", "t1"}


def test_text_cut_short_keeps_its_mark() -> None:
    """A message that broke off is incomplete in snapshots too."""
    run = folded(played([*said("m", "Half"), replied("m", error=ModelError("network", "x"))]))

    assert run.unstored([])[0].incomplete


def test_nothing_sent_is_no_message() -> None:
    """A reply of which nothing is whole has no place in a snapshot."""
    assert folded(played(said("m", "Hi"))).unstored([]) == []


def test_activities_keep_their_first_place() -> None:
    """Stated again they change, and stay where they appeared."""
    by = encoder()
    entries = [*by.start([user("q", "u1")]), *by.activity("cmp_1", "k", {"status": "running"})]
    entries += [*(e for step in said("m", "Hi") for e in by.feed(step))]
    entries += [*by.activity("cmp_1", "k", {"status": "done"}), *by.activity("cmp_2", "k", {})]

    run = folded(entries)

    assert [(a.id, a.after) for a in run.activities.values()] == [("cmp_1", "u1"), ("cmp_2", "m")]
    assert run.activities["cmp_1"].content == {"status": "done"}


def test_custom_events_and_the_end() -> None:
    """A run's prediction is remembered, and how it ended."""
    by = encoder(timeline="full")
    entries = [*by.start(), *by.custom("PredictState", [1]), *by.custom("app.x", 2)]

    run = folded([*entries, *by.close(CANCELLED)])

    assert run.predicts == [1]
    assert run.terminal is not None and run.terminal["type"] == "RUN_FINISHED"


def test_a_logged_snapshot_takes_back_what_it_lacks() -> None:
    """What a correction left out is no longer shown."""
    by = encoder()
    entries = played([*said("m", "Hi"), *called("m", "c", "{}"), replied("m")], by)
    entries += by.close(CANCELLED, [user("q", "u1")], 1)

    assert folded(entries).unstored([user("q", "u1")]) == []


def test_entries_of_other_kinds_are_passed_over() -> None:
    """A run is folded from its events alone."""
    log = Log()
    log.store([user("q", "u1")])
    log.append(played(said("m", "Hi")))

    assert LiveRun.of(log.entries).texts["m"].whole == "Hi"
