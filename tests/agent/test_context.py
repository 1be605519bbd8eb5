"""What tools write is folded into the context, in call order."""

from __future__ import annotations

from typing import Any

from backscroll.agent.context import apply_writes
from backscroll.kernel.tool import Slot
from hypothesis import given
from hypothesis import strategies as st

ITEMS = {"items": Slot(list, lambda seen, new: [*seen, new])}
WRITES = st.lists(
    st.none() | st.dictionaries(st.sampled_from(["items", "a", "b"]), st.integers(), max_size=3)
)


def test_a_slot_gathers() -> None:
    """CTX1: writes of one batch are reduced in call order; unrelated names stay."""
    context, conflicts = apply_writes({"n": 1}, [{"items": "book"}, {"items": "pen"}], ITEMS)

    assert context == {"n": 1, "items": ["book", "pen"]}
    assert conflicts == ()


def test_the_last_writer_wins() -> None:
    """CTX2: a name without a slot has the last call's value and is a conflict."""
    assert apply_writes({}, [{"x": 0}, None, {"x": 1}, {"y": 2}], {}) == ({"x": 1, "y": 2}, ("x",))


def test_a_counter_over_rounds() -> None:
    """CTX4: the reducer starts from `init()` and goes on from what is there."""
    slots = {"n": Slot(int, lambda seen, new: seen + new)}
    context: dict[str, Any] = {}
    for _ in range(3):
        context, _ = apply_writes(context, [{"n": 1}], slots)

    assert context == {"n": 3}


def test_reserved_names_are_not_written() -> None:
    """Nobody moves a turn to another conversation by a write."""
    context, conflicts = apply_writes({"conversation_id": "t"}, [{"conversation_id": "x"}] * 2, {})

    assert (context, conflicts) == ({"conversation_id": "t"}, ())


@given(WRITES)
def test_folding_is_pure_and_complete(writes: list[dict[str, int] | None]) -> None:
    """The given context is not changed; a slot has every write, a name its last one."""
    before: dict[str, Any] = {"a": -1}

    context, conflicts = apply_writes(before, writes, ITEMS)

    assert before == {"a": -1}
    rows = [row for row in writes if row]
    assert context.get("items", []) == [row["items"] for row in rows if "items" in row]
    for name in ("a", "b"):
        values = [row[name] for row in rows if name in row]
        assert context.get(name) == (values[-1] if values else before.get(name))
        assert (name in conflicts) == (len(values) > 1)
