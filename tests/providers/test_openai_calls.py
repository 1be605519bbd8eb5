"""Which call a streamed fragment belongs to."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from backscroll.kernel.message import ToolCall
from backscroll.kernel.model import CallArgs, CallClosed, CallOpened, Delta
from backscroll.providers.openai_calls import Calls
from deadlines import growth

OFFERED = ("add", "get", "get_weather", "read", "x", "y", "now")


class Stream:
    """Calls fed by short fragments: (index, id, name, arguments), None for what is left out."""

    def __init__(self, *fragments: tuple[Any, ...]) -> None:
        numbers = count()
        self.calls = Calls(OFFERED, lambda: f"minted_{next(numbers)}")
        self.deltas: list[Delta] = []
        for fragment in fragments:
            self.deltas += self.feed(*fragment)
        self.deltas += self.calls.finish()

    def feed(self, index: Any, call_id: Any, name: Any, args: Any) -> list[Delta]:
        """Feed one fragment as servers write them."""
        function = {k: v for k, v in (("name", name), ("arguments", args)) if v is not None}
        whole = {"index": index, "id": call_id, "function": function}
        return list(self.calls.feed({k: v for k, v in whole.items() if v is not None}))

    def read(self) -> list[tuple[str, str, Any]]:
        """Return the calls as (id, name, args)."""
        return [(call.id, call.name, call.args) for call in self.calls.read()]


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [(0, "c1", "add", ""), (0, None, None, '{"a":'), (0, None, None, '1,"b":2}')],
            [("c1", "add", {"a": 1, "b": 2})],
            id="OAI2: later fragments have an index and no id",
        ),
        pytest.param(
            [(0, None, "x", ""), (0, None, None, "{}"), (1, None, "y", "{}")],
            [("minted_0", "x", {}), ("minted_1", "y", {})],
            id="OAI3: no ids at all",
        ),
        pytest.param(
            [(0, "c1", "read", '{"p":"a"}'), (0, "c2", "read", '{"p":"b"}')],
            [("c1", "read", {"p": "a"}), ("c2", "read", {"p": "b"})],
            id="OAI4: one index for every call",
        ),
        pytest.param(
            [(None, None, "x", '{"a":1}'), (None, None, "x", '{"a":1}')],
            [("minted_0", "x", {"a": 1}), ("minted_1", "x", {"a": 1})],
            id="OAI5: neither ids nor indices, two complete calls of one name",
        ),
        pytest.param(
            [(0, "c1", "add", '{"a"'), (0, "c1", "add", ":1}"), (0, "c1", None, None)],
            [("c1", "add", {"a": 1})],
            id="OAI5: the same id and name in every fragment",
        ),
        pytest.param(
            [(0, "c1", "get", ""), (0, None, "_weather", ""), (0, None, None, "{}")],
            [("c1", "get_weather", {})],
            id="OAI5: a name in two pieces",
        ),
        pytest.param(
            [(0, "c1", "get", ""), (0, "c1", "_weather", "{}")],
            [("c1", "get_weather", {})],
            id="OAI5: a name in two pieces, with its id",
        ),
        pytest.param(
            [(0, None, "add", ""), (0, None, "add", '{"a":'), (0, None, "add", "1}")],
            [("minted_0", "add", {"a": 1})],
            id="OAI5: a whole name in every fragment is not doubled",
        ),
        pytest.param(
            [(0, "c1", "now", None)],
            [("c1", "now", {})],
            id="OAI6: no arguments",
        ),
        pytest.param(
            [(0, None, "add", '{"a":'), (0, "late", None, "1}"), (0, "late", None, None)],
            [("minted_0", "add", {"a": 1})],
            id="a late id is ignored",
        ),
        pytest.param(
            [(0, "c1", "add", '{"a":1}'), (0, "c2", None, '{"b":2}')],
            [("c1", "add", {"a": 1}), ("c2", "", {"b": 2})],
            id="a new id without a name is a new call",
        ),
        pytest.param(
            [(None, None, None, '{"a":1}')],
            [("minted_0", "", {"a": 1})],
            id="nothing but arguments",
        ),
        pytest.param(
            [(0, "c1", "x", '{"a"'), (None, None, None, ":1}")],
            [("c1", "x", {"a": 1})],
            id="neither id nor index goes to the newest call",
        ),
        pytest.param(
            [(0, None, "x", '{"a"'), (0, None, "y", "{}")],
            [("minted_0", "x", None), ("minted_1", "y", {})],
            id="another name behind argument text is a new call",
        ),
        pytest.param(
            [(0, None, "x", ""), (0, None, "y", "{}")],
            [("minted_0", "x", {}), ("minted_1", "y", {})],
            id="another name that no tool joins is a new call",
        ),
        pytest.param(
            [(0, "c1", "", None), (0, None, "made_up", "{}")],
            [("c1", "made_up", {})],
            id="a name that comes late",
        ),
        pytest.param(
            [(0, "c1", "x", '{"a":1}'), (0, "c1", None, '{"a":1}')],
            [("c1", "x", {"a": 1})],
            id="a complete argument text repeated whole is ignored",
        ),
        pytest.param(
            [(0, "c1", "x", {"a": 1}), (1, "c2", "y", None)],
            [("c1", "x", {"a": 1}), ("c2", "y", {})],
            id="arguments as an object",
        ),
        pytest.param(
            [(0, "c1", "x", '"}'), (0, None, "x", "}")],
            [("c1", "x", None)],
            id="text that only ends like an object is not complete",
        ),
    ],
)
def test_fragments_are_gathered(fragments: list[Any], expected: list[Any]) -> None:
    """OAI2 to OAI6: each way in which servers cut calls into fragments is put together right."""
    assert Stream(*fragments).read() == expected


def test_name_and_arguments_in_one_fragment() -> None:
    """OAI13: opened, arguments, closed, nothing lost (protocol-12)."""
    found = Stream((0, "c1", "add", '{"a":1,"b":2}'))

    assert found.deltas == [
        CallOpened("c1", "add"),
        CallArgs("c1", '{"a":1,"b":2}'),
        CallClosed("c1"),
    ]


def test_a_call_opens_as_soon_as_its_name_cannot_grow() -> None:
    """`add` opens at once; `get` waits, since `get_weather` is offered too."""
    stream = Stream()

    assert stream.feed(0, "c1", "add", "") == [CallOpened("c1", "add")]
    assert stream.feed(1, "c2", "get", "") == []
    assert stream.feed(1, None, None, "{") == [CallOpened("c2", "get"), CallArgs("c2", "{")]


def test_a_waiting_call_opens_when_another_begins() -> None:
    """A new call says that the name before it is whole."""
    stream = Stream()
    stream.feed(0, "c1", "get", "")

    assert stream.feed(1, "c2", "x", None) == [CallOpened("c1", "get"), CallOpened("c2", "x")]


def test_a_call_without_a_name_waits_for_it() -> None:
    """Arguments that come before the name are delivered after it."""
    stream = Stream()

    assert stream.feed(0, "c1", None, '{"a"') == []
    assert stream.feed(0, "c1", "x", ":1}") == [CallOpened("c1", "x"), CallArgs("c1", '{"a":1}')]
    assert stream.calls.read() == (ToolCall("c1", "x", {"a": 1}),)


def test_calls_keep_the_order_of_their_first_fragments() -> None:
    """Interleaved fragments do not change the order; all calls are closed at the end."""
    found = Stream((1, "b", "x", ""), (0, "a", "y", ""), (1, None, None, "{}"))

    assert [call.id for call in found.calls.read()] == ["b", "a"]
    assert found.deltas[-2:] == [CallClosed("b"), CallClosed("a")]


def test_half_a_character_waits_for_its_other_half() -> None:
    """i18n-03: a surrogate pair cut between two fragments is joined; a lone half is replaced."""
    found = Stream(
        (0, "c1", "x", '{"a":"\ud83c'), (0, None, None, '\udf0d"}'), (1, "c2", "y", "\ud83c")
    )

    assert found.read()[0] == ("c1", "x", {"a": "🌍"})
    assert found.calls.read()[1].raw == "\ufffd"


def test_what_had_arrived_is_told_for_people() -> None:
    """Names and raw argument texts of a reply that broke off."""
    stream = Stream((0, "c1", "x", '{"a'), (1, "c2", "y", ""))

    assert bool(stream.calls) and stream.calls.raw() == ('x {"a', "y")
    assert not Calls((), str)


def test_long_arguments_cost_what_they_are_long() -> None:
    """Ten times the fragments take about ten times the work, not a hundred times."""

    def read(number: int) -> None:
        calls = Calls(["add"], lambda: "minted")
        list(calls.feed({"index": 0, "id": "c1", "function": {"name": "add"}}))
        for _ in range(number):
            list(calls.feed({"index": 0, "function": {"arguments": "some text " * 20}}))

    assert growth(lambda: read(3_000), lambda: read(30_000)) < 30
