"""What the demo model says by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import Message, assistant, tool_call, tool_result, user
from backscroll.kernel.model import ModelRequest, Named
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.demo_answers import TOPICS, Answer, answer, as_calls, cut, infer


def schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    """Make the schema of a tool."""
    return {"type": "object", "properties": properties, "required": list(required)}


WEATHER = ToolSpec("weather", "Tell the weather.", schema(["city"], city={"type": "string"}))
COUNT = ToolSpec("slow_count", "Count slowly.", schema(["to"], to={"type": "integer"}))
BOOK = ToolSpec("read_handbook", "Read it.", schema([]))
ORDER = ToolSpec("get_order", "Look up.", schema(["number"], number={"type": "string"}))
STOCK = ToolSpec(
    "check_stock",
    "Ask.",
    schema(["item"], item={"type": "string"}, seconds={"type": "number", "default": 3}),
)
TOOLS = (WEATHER, COUNT, BOOK, ORDER, STOCK)


def ask(*messages: Message | str, **more: Any) -> Answer:
    """Ask for the answer to these messages."""
    said = tuple(user(item) if isinstance(item, str) else item for item in messages)
    return answer(ModelRequest(said, **{"tools": TOOLS, **more}), 100, 6000)


def test_equal_requests_get_equal_answers() -> None:
    """The model is deterministic."""
    assert ask("anything") == ask("anything")


def test_the_introduction_names_the_tools() -> None:
    """A greeting, a cry for help and silence show what can be tried."""
    for text in ("hello", "Help!", " "):
        assert '`use weather {"city":"…"}`' in ask(text).text
        assert "`read_handbook`: Read it." in ask(text).text
    assert "My tools" not in ask("hi", tools=()).text


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('use weather {"city": "Rome"}', (("weather", '{"city": "Rome"}'),)),
        ('Please use the weather {"city":"Rome"} now', (("weather", '{"city":"Rome"}'),)),
        ("use weather {broken\nnext", (("weather", "{broken"),)),
        ("use slow_count", (("slow_count", {"to": 1}),)),
        ("What's the weather in Oslo?", (("weather", {"city": "Oslo"}),)),
        ("a slow count to 7, please", (("slow_count", {"to": 7}),)),
        ("Read the handbooks", (("read_handbook", {}),)),
        (
            'use weather {"city":"A"} and use slow_count {"to":2}',
            (("weather", '{"city":"A"}'), ("slow_count", '{"to":2}')),
        ),
        ("use nothing of it", ()),
        ('use weather_map {"city":"Rome"}', (("weather_map", '{"city":"Rome"}'),)),
        ("Where is order A-1042?", (("get_order", {"number": "A-1042"}),)),
        ("Are there any lamps in stock?", (("check_stock", {"item": "lamps"}),)),
        (
            "the stock of 'red lamps', in 2.5 seconds",
            (("check_stock", {"item": "red lamps", "seconds": 2.5}),),
        ),
        ("whether it rains", ()),
    ],
)
def test_tools_are_called_by_name_or_by_plain_words(text: str, calls: Any) -> None:
    """`use <tool> <json>` calls it as written; a tool's own words call it too."""
    assert ask(text).calls == calls


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        ("none", ()),
        ("required", (("weather", {"city": "plain words"}),)),
        (Named("slow_count"), (("slow_count", {"to": 1}),)),
    ],
)
def test_the_tool_choice_is_obeyed(choice: Any, calls: Any) -> None:
    """none calls nothing, required the first tool, a name that tool."""
    assert ask("plain words", tool_choice=choice).calls == calls


def test_arguments_are_taken_from_the_sentence() -> None:
    """Each kind of parameter finds its value, or a plain one; optional ones are left out."""
    tool = ToolSpec(
        "t",
        "d",
        schema(
            ["size", "n", "x", "on", "tags", "map", "name", "any"],
            size={"enum": ["small", "big"]},
            n={"type": "integer"},
            x={"type": "number"},
            on={"type": "boolean", "default": True},
            tags={"type": "array"},
            map={"type": "object"},
            name={"type": "string"},
            any=True,
            left={"type": "string"},
        ),
    )

    assert infer(tool, 'Big, 3 and 2.5 "quoted words"') == {
        "size": "big", "n": 3, "x": 2.5, "on": True, "tags": [], "map": {},
        "name": "quoted words", "any": "quoted words",
    }  # fmt: skip
    assert infer(COUNT, "none") == {"to": 1}


def test_results_are_told() -> None:
    """After tools, each result is repeated: short ones whole, large ones by size and beginning."""
    calls = (tool_call("c1", "weather"), tool_call("c2", "read_handbook"), tool_call("c3", "x"))
    found = ask(
        "q",
        assistant(None, calls),
        tool_result("c1", "weather", "sunny"),
        tool_result("c2", "read_handbook", "word " * 1000),
        tool_result("c3", "x", "no such thing", outcome="error"),
        Message(user("").role, "a reminder", origin="note"),
    ).text

    assert "`weather` says: sunny" in found
    assert "`read_handbook` returned 4,999 characters. It begins: word word" in found
    assert "`x` did not work: no such thing" in found


def test_it_reasons_when_asked_to() -> None:
    """The words think and reason give readable reasoning, with the plan."""
    assert "I will answer." in ask("think about life").reasoning
    assert "I will call weather." in ask("reason, then tell the weather").reasoning
    assert ask("plain").reasoning == ""


def test_it_says_what_it_was_sent() -> None:
    """An answer shows how much of the window its request took; attachments are named."""
    image = FilePart("image/png", data="aGk=")

    assert "This request held 1 messages, about 100 of the 6,000 tokens" in ask("plain").text
    assert "a file of type image/png" in ask(user((TextPart("see"), image))).text
    assert "a file of type image/png" in ask(user((image,))).text


def test_it_remembers_what_it_can_see() -> None:
    """Asked what it remembers, it quotes the first message it was sent."""
    assert '"the beginning"' in ask("the beginning", assistant("a"), "what do you remember?").text
    assert 'is: ""' in answer(ModelRequest((assistant("remember"),)), 1, 2).text


def test_it_counts_and_tells_long_stories() -> None:
    """Long answers to try Stop on."""
    assert ask("count to 5", tools=()).text == "1 2 3 4 5"
    assert all(topic in ask("tell me a long story").text for topic in TOPICS)


def test_an_empty_request_is_answered() -> None:
    """No message at all gets the introduction."""
    assert answer(ModelRequest(()), 0, 10).text.startswith("Hello!")


def test_calls_get_ids_in_order() -> None:
    """Ids come from outside; text is read as argument text, objects as they are."""
    ids = (f"id_{number}" for number in count())

    first, second = as_calls(Answer(calls=(("a", "{broken"), ("b", {"x": 1}))), ids)

    assert (first.id, first.args, first.raw) == ("id_0", None, "{broken")
    assert (second.id, second.args) == ("id_1", {"x": 1})


def test_long_texts_are_cut() -> None:
    """One line, with an ellipsis where it was longer."""
    assert cut("a\n b", 10) == "a b"
    assert cut("abcdef", 4) == "abc…"
