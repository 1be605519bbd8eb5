"""Mistakes of assembly are named before any turn runs."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agent.assembly import (
    chat_order,
    check_compaction,
    check_limit,
    check_memory_filters,
    check_model,
    check_options,
    check_pausing,
    check_slots,
    check_tool_choice,
    check_tool_search,
    check_window,
    texts_of,
)
from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import Filter
from backscroll.kernel.model import ModelOptions, Named, Retry
from backscroll.kernel.tool import Slot, ToolSet, client_tool
from played_model import PlayedModel

PICK = client_tool("pick", "Pick something.")


async def _pass(request: Any, chain: Any) -> Any:
    return await chain(request)


CHAT, TURN = Filter.of("chat", chat=_pass), Filter.of("turn", turn=_pass)


def memory() -> MemoryFilter:
    """Return a memory filter."""
    return MemoryFilter(InMemoryChatMemory())


def test_a_memory_filter_in_the_list() -> None:
    """The first chat filter may be a memory; filters without a chat hook do not count."""
    found = memory()

    assert check_memory_filters([TURN, found, CHAT]) is found
    assert check_memory_filters([TURN, CHAT]) is None


@pytest.mark.parametrize(
    ("filters", "kind", "where"),
    [
        ([CHAT, memory()], "memory_filter_first", "filters[1]"),
        ([memory(), CHAT, memory()], "memory_filter_twice", "filters[2]"),
        ([Compaction(), memory()], "compaction_before_memory", "filters[0]"),
        ([CHAT, Compaction(), memory()], "compaction_before_memory", "filters[1]"),
        ([CHAT, {}], "not_a_filter", "filters[1]"),
        ([Filter()], "filter_without_hooks", "filters[0]"),
    ],
)
def test_wrong_lists(filters: Any, kind: str, where: str) -> None:
    """AG1: the kind of mistake and the place are named."""
    with pytest.raises(AssemblyError, match=rf"^{where.replace('[', '.').replace(']', '.')}") as e:
        check_memory_filters(filters)

    assert (e.value.kind, e.value.where) == (kind, where)


@pytest.mark.parametrize(
    ("check", "value", "kind"),
    [
        (check_limit, -1, "invalid_option"),
        (check_limit, "3", "invalid_option"),
        (check_limit, True, "invalid_option"),
        (check_model, object(), "invalid_option"),
        (check_model, PlayedModel([], options=ModelOptions(retry="yes")), "invalid_retry"),  # type: ignore[arg-type]
        (check_options, {"temperature": 0}, "invalid_option"),
        (check_options, ModelOptions(retry="yes"), "invalid_retry"),  # type: ignore[arg-type]
        (check_compaction, CHAT, "invalid_option"),
        (check_tool_search, CHAT, "invalid_option"),
        (check_slots, {"x": list}, "invalid_option"),
        (check_slots, [Slot(list, max)], "invalid_option"),
        (lambda v: texts_of(v, "system"), 7, "invalid_option"),
        (lambda v: texts_of(v, "system"), ["a", 7], "invalid_option"),
        (lambda v: check_tool_choice(v, ToolSet([PICK])), "sometimes", "invalid_option"),
        (lambda v: check_tool_choice(v, ToolSet([PICK])), Named("pcik"), "invalid_option"),
        (lambda v: check_tool_choice(v, ToolSet()), Named("pick"), "invalid_option"),
    ],
)
def test_wrong_values(check: Any, value: Any, kind: str) -> None:
    """AG1, AG2: what was expected and what was given are told."""
    with pytest.raises(AssemblyError, match="expected") as caught:
        check(value)

    assert caught.value.kind == kind


def test_a_window_and_compaction() -> None:
    """AG1: a window under compaction is refused; one that shows all is not."""
    inner = InMemoryChatMemory()

    with pytest.raises(AssemblyError) as caught:
        check_window(WindowedChatMemory(inner, 4), [CHAT, Compaction()])

    assert caught.value.kind == "window_with_compaction"
    check_window(WindowedChatMemory(inner, None), [Compaction()])
    check_window(inner, [Compaction()])
    check_window(WindowedChatMemory(inner, 4), [None, CHAT])


@pytest.mark.parametrize(
    ("gate", "pause_expires_s", "word"),
    [("ask me", None, "ask"), (None, 0, "ask"), (None, "60", "ask"), (None, True, "ask")]
    + [(None, None, "always")],
)
def test_wrong_pausing(gate: Any, pause_expires_s: Any, word: str) -> None:
    """AG1: a gate that is none, a lifetime that is none, and a word nobody expects."""
    with pytest.raises(AssemblyError) as caught:
        check_pausing(gate, pause_expires_s, sensitive_tools=(word, "ask run"))

    assert caught.value.kind == "invalid_option"


def test_right_values() -> None:
    """What is right comes back in the form it is used in."""
    model = PlayedModel([])
    options = ModelOptions(retry=Retry(1))

    compaction = Compaction()

    assert check_compaction(compaction) is compaction
    assert check_compaction(None) is None
    assert check_tool_search(None) is None
    assert check_model(model) is model
    assert check_options(options) is options
    assert check_options(None) == ModelOptions()
    assert check_limit(0) == 0
    check_pausing(print, 60.0, sensitive_tools=("run", "ask run"))
    assert check_slots({"x": Slot(list, max)})
    assert texts_of(None, "x") == texts_of("", "x") == ()
    assert texts_of("a", "x") == texts_of(["a"], "x") == ("a",)
    for choice in ("auto", "none", "required", Named("pick")):
        check_tool_choice(choice, ToolSet([PICK]))


def test_the_order_of_chat_filters() -> None:
    """AG3: memory, what the agent inserts, and then the list in its own order."""
    own, inserted = memory(), Filter.of("inserted", chat=_pass)
    first = memory()

    assert chat_order(first, [inserted], [own, TURN, CHAT]) == [first, inserted, TURN, CHAT]


def test_a_name_stands_for_a_model() -> None:
    """A model may be given by name; a wrong name is refused with the names that are known."""
    assert check_model("demo").name == "demo"

    with pytest.raises(AssemblyError, match="openai:NAME, .*demo"):
        check_model("nobody:x")
