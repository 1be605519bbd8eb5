"""Safe cuts: where they may be, which one is chosen, and what is said of the others."""

from __future__ import annotations

from typing import Any

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN
from backscroll.compaction.cuts import CutQuestion, _Judge, choose_cut, safe_among
from backscroll.compaction.groups import always_kept, find_groups
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message, Role, tool_result
from compaction.histories import a, histories, rounds, t, u
from hypothesis import given
from hypothesis import strategies as st


def question(history: list[Message], *pending: str, **given: Any) -> CutQuestion:
    """Return a question about a history in which every message has size 100."""
    groups = find_groups(history, pending)
    numbers: dict[str, Any] = {
        "kept": always_kept(history, groups),
        "sizes": [100] * len(history),
        "prefix_n": 0,
        "tail": 300,
        "min_cover": 200,
    }
    return CutQuestion(history, groups, **{**numbers, **given})


def test_leaves_the_tail_behind_the_cut() -> None:
    """The cut is where whole groups of up to `tail` tokens remain."""
    history = [u(0), *rounds(5), a(20), u(21)]

    found = choose_cut(question(history, tail=450))

    assert found.index == 9
    assert found.tokens == 900
    assert found.why == "leaves 400 tokens behind it, up to 450 were wanted"
    assert found.rejected == ()


def test_a_batch_is_not_divided() -> None:
    """GRP1: a tail that ends inside a batch says which call stays with its results."""
    history = [u(0), a(1), a(2, None, "c7", "c8"), t(3, "c7"), t(4, "c8"), u(5)]

    found = choose_cut(question(history, tail=250, min_cover=1))

    assert found.index == 5
    assert [(cut.index, cut.why) for cut in found.rejected] == [
        (4, "calls c7, c8 and 2 results stay together")
    ]
    one = [u(0), a(1), a(2, None, "c7"), t(3, "c7"), u(5)]
    (cut,) = choose_cut(question(one, tail=250, min_cover=1)).rejected
    assert cut.why == "call c7 and its result stay together"


def test_one_turn_of_many_rounds_is_cut_inside() -> None:
    """GRP4: 200 tool rounds of one turn are cut inside the turn, before a call."""
    history = [u(0), *rounds(200)]
    asked = question(history)

    found = choose_cut(asked)

    assert found.index == 399
    assert 0 in asked.kept


def test_stays_before_an_open_call() -> None:
    """GRP5: the pending call and everything behind it are not covered."""
    history = [u(0), *rounds(3), a(30, None, "wait"), u(31), a(32), u(33), a(34)]

    found = choose_cut(question(history, "wait", tail=150))

    assert found.index == 7
    assert found.rejected[0].why == "a call at 7 still waits for its result"


def test_a_cut_covers_enough_that_is_new() -> None:
    """What is kept anyway, made up, or a summary already is not worth a cut."""
    summary = a(1, "notes").replace(origin=SUMMARY_ORIGIN)
    made_up = tool_result("c", "read", "none")
    history = [u(0), summary, a(2, None, "c"), made_up, *rounds(2), u(9)]

    found = choose_cut(question(history, tail=150, min_cover=700))

    assert found.index is None
    assert found.why == "nothing to summarise"
    assert found.rejected[-1].why == "only 600 new tokens before it, 700 are needed"


def test_nothing_new_is_nothing_to_summarise() -> None:
    """SUM12: right behind the last cut there is nothing to cover."""
    history = [u(0), *rounds(4), u(9)]

    assert choose_cut(question(history, prefix_n=9, tail=100)).index is None
    assert choose_cut(question([], tail=100)).index is None
    assert choose_cut(question([u(0)], tail=0)).index is None


def test_says_why_a_place_is_not_safe() -> None:
    """Every index has a reason or is safe."""
    history = [u(0), *rounds(2), t(5, "gone"), u(6), a(7)]
    asked = question(history, prefix_n=1, min_cover=200)
    objection = _Judge(asked).objection

    assert objection(1) == "nothing new before it"
    assert objection(2) == "call c1 and its result stay together"
    assert objection(3) is None
    assert objection(5) == "the rest would begin with a result"
    assert objection(8) == "nothing behind it"
    assert safe_among(asked, range(9)) == {i for i in range(9) if not objection(i)}


def test_reasoning_and_its_call_stay_together() -> None:
    """A call without a result stays with the reasoning that led to it."""
    thought = a(1, None).replace(reasoning="hm")
    asked = question([u(0), thought, a(2, None, "c"), u(3), a(4)])

    assert _Judge(asked).objection(2) == "call c and the reasoning before it stay together"


@given(histories(), st.integers(0, 4_000), st.integers(0, 500), st.integers(0, 9))
def test_a_chosen_cut_is_safe(history: list[Message], tail: int, least: int, prefix: int) -> None:
    """GRP2: whatever the budget, a chosen cut parts no group and begins with no result."""
    sizes = [Sizes().message(message) for message in history]
    asked = question(history, tail=tail, min_cover=least, sizes=sizes, prefix_n=prefix)

    found = choose_cut(asked)

    assert len(found.rejected) <= 3
    if found.index is not None:
        assert _Judge(asked).objection(found.index) is None
        assert found.index in {group.start for group in asked.groups}
        assert history[found.index].role is not Role.TOOL
        assert found.tokens >= least
