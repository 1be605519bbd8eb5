"""The end of a run whose worker is gone."""

from __future__ import annotations

from agui_checker import assert_valid
from agui_client import Client
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
    said,
    stories,
    thought,
    types,
    values,
)
from agui_stories import Story as Told
from backscroll.agui.closing import close_blocks, close_run
from backscroll.agui.encode import RunIds
from backscroll.agui.live_run import LiveRun
from backscroll.agui.run_end import failed_with
from backscroll.kernel.message import assistant, tool_call, tool_result, user
from hypothesis import given, settings

RUN = RunIds("t", "r1")
LOST = failed_with("worker_lost")


def test_open_blocks_are_closed_and_taken_in() -> None:
    """What was half sent ends, marked, and counts as sent from then on."""
    live = folded(played([iteration(0), *said("m", "Half")]))

    entries = close_blocks(live, RUN)

    assert types(entries) == ["TEXT_MESSAGE_END"]
    assert values(entries)[0]["metadata"] == {"backscroll": {"incomplete": True}}
    assert live.unstored([])[0].text == "Half" and live.unstored([])[0].incomplete


def test_reasoning_and_calls_are_closed_too() -> None:
    """Message and span of reasoning; calls with the arguments they have."""
    thinking = folded(played(thought("m", "Hm")))
    calling = folded(played([opened("m", "c1"), opened("m", "c2"), args("m", "c1", "{")]))

    assert types(close_blocks(thinking, RUN)) == ["REASONING_MESSAGE_END", "REASONING_END"]
    assert types(close_blocks(calling, RUN)) == ["TOOL_CALL_END", "TOOL_CALL_END"]


def test_the_run_ends_with_its_error() -> None:
    """Results for calls without one, the open step, RUN_ERROR."""
    live = folded(played([iteration(0), *called("m", "c", "{}"), replied("m")]))
    made = tool_result("c", "add", "unknown", id="t1", outcome="unknown")

    entries = close_run(live, RUN, LOST, [], [made], is_corrected=False)

    assert types(entries) == ["TOOL_CALL_RESULT", "STEP_FINISHED", "RUN_ERROR"]
    assert values(entries)[-1]["code"] == "worker_lost"


def test_a_correction_takes_back_what_is_not_kept() -> None:
    """Running activities fail, and stale reasoning is stated empty."""
    by = encoder()
    entries = played([*thought("m", "Hm"), *called("m", "c", "{}")], by)
    entries += by.activity("cmp_1", "backscroll.compaction", {"status": "running"})

    ending = values(close_run(folded(entries), RUN, LOST, [user("q", "u")], [], is_corrected=True))

    assert [m["id"] for m in ending[0]["messages"]] == ["u", "m.r"]
    assert ending[1]["content"] == {"status": "failed"}


@given(stories())
@settings(max_examples=60, deadline=None)
def test_a_run_lost_anywhere_ends_validly(story: Told) -> None:
    """Wherever the worker was lost, the closed log passes the checker and matches the history."""
    whole = story.told()
    for seq in range(3, whole.head, 3):
        log = Log(whole.entries[:seq], [item for item in whole.history if item[0] <= seq])
        live = LiveRun.of(log.entries)
        log.append(close_blocks(live, RUN))
        kept = [m for m in live.unstored(log.messages()) if not m.tool_calls and m.text]
        log.store(kept)
        history = log.messages()
        log.append(close_run(live, RUN, LOST, history, [], is_corrected=True))
        assert_valid(log.events())
        held = {message["id"] for message in Client().apply(*log.events()).shown()}
        assert held >= {m.id for m in history if m.text.strip()}


def test_a_stored_call_is_kept_whole() -> None:
    """What is stored needs no correction."""
    live = folded(played([*called("m", "c", "{}"), replied("m")]))
    stored = assistant(None, [tool_call("c", "add")], id="m")

    assert live.unstored([stored]) == []
    assert types(close_run(live, RUN, LOST, [stored], [], is_corrected=False)) == ["RUN_ERROR"]
