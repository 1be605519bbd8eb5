"""Usage adds up without inventing zeros; finish reasons have one vocabulary."""

from __future__ import annotations

from backscroll.kernel.usage import FinishReason, Usage, finish_reason
from hypothesis import given
from hypothesis import strategies as st

NUMBER = st.none() | st.integers(0, 10_000)
USAGES = st.builds(Usage, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER)


def test_absent_is_absent() -> None:
    """USE3: a number nobody reported is not in the dict, a reported 0 is."""
    assert Usage(input_tokens=0).to_dict() == {"input_tokens": 0}
    assert Usage().to_dict() == {}


def test_adding_keeps_what_one_side_knows() -> None:
    """USE5: fields are added one by one; one known side is the sum."""
    total = Usage(10, 5) + Usage(20, 7, cached_input_tokens=3)

    assert total == Usage(30, 12, cached_input_tokens=3)


@given(USAGES, USAGES, USAGES)
def test_adding_is_associative(a: Usage, b: Usage, c: Usage) -> None:
    """The order in which calls are summed does not matter."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a


def test_the_total_needs_both_sides() -> None:
    """A total is known only when input and output are."""
    assert Usage(3, 4).total_tokens == 7
    assert Usage(3).total_tokens is None


def test_finish_reasons_are_translated() -> None:
    """USE4: an unknown word is `unknown`, none stays none."""
    assert finish_reason("end_turn") is FinishReason.STOP
    assert finish_reason("length") is FinishReason.MAX_TOKENS
    assert finish_reason("model_length") is FinishReason.CONTEXT_WINDOW
    assert finish_reason("insufficient_system_resource") is FinishReason.ERROR
    assert finish_reason("weird") is FinishReason.UNKNOWN
    assert finish_reason(None) is None
