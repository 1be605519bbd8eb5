"""Stand-ins for long arguments and for media."""

from __future__ import annotations

from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.stubs import stub_call, stub_media
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.content import TextPart, VendorPart
from backscroll.kernel.message import ToolCall, parse_call, tool_call
from compaction.histories import PNG
from hypothesis import given
from hypothesis import strategies as st

TEXTS = CompactionTexts()
LONG = "some words " * 40
STUB = "(left out here: 440 characters, #7; the call itself carried the full text)"


def stubbed(call: ToolCall) -> ToolCall:
    """Return a call with stubs that refer to message 7."""
    return stub_call(call, 7, TEXTS, PieceCounter())


def test_long_texts_become_stubs() -> None:
    """Every text above 160 characters is replaced, at any depth; the shape stays."""
    args = {"path": "a.py", "n": 5, "content": LONG, "edits": [{"old": LONG, "new": "x"}]}

    found = stubbed(tool_call("c1", "write", args))

    assert (found.id, found.name) == ("c1", "write")
    assert found.args == {
        "path": "a.py", "n": 5, "content": STUB, "edits": [{"old": STUB, "new": "x"}]
    }  # fmt: skip


def test_short_texts_stay() -> None:
    """A call without long texts is returned as it is, with its raw text."""
    call = parse_call("c1", "write", '{"a": "b"}')

    assert stubbed(call) is call
    assert stubbed(tool_call("c", "f", {"a": "x" * 160})).args == {"a": "x" * 160}


def test_arguments_that_are_no_object() -> None:
    """The text of a call that is not JSON is shortened as one text."""
    found = stubbed(ToolCall("c1", "write", None, LONG))

    assert (found.args, found.raw) == (None, STUB)


def test_a_stub_that_saves_nothing_is_not_used() -> None:
    """Blanks take few tokens, so a stub for them would be no gain."""
    call = tool_call("c1", "write", {"a": " " * 500})

    assert stubbed(call) is call


def test_very_deep_arguments_are_left_alone() -> None:
    """Below 40 levels nothing is looked at."""
    value: object = LONG
    for _ in range(60):
        value = [value]

    call = tool_call("c1", "f", {"a": value})

    assert stubbed(call) is call


LEAVES = st.none() | st.integers() | st.text() | st.just(LONG)
NAMES = st.text(max_size=4)


@given(st.dictionaries(NAMES, LEAVES | st.lists(LEAVES) | st.dictionaries(NAMES, LEAVES)))
def test_is_idempotent_and_keeps_the_shape(args: dict[str, object]) -> None:
    """MIC2: stubs are never stubbed again, and names of members stay."""
    once = stubbed(tool_call("c1", "f", args))

    assert stubbed(once) == once
    assert once.args is not None and list(once.args) == list(args)
    assert len(once.args_text) <= len(tool_call("c1", "f", args).args_text)


def test_media_become_texts() -> None:
    """A file is replaced by a text that names its type; the rest stays."""
    vendor = VendorPart("openai", {})

    assert stub_media((TextPart("see"), PNG, vendor), None, TEXTS) == (
        TextPart("see"), TextPart("[image/png left out here, #-]"), vendor
    )  # fmt: skip
    assert stub_media("text", 1, TEXTS) == "text"
    assert stub_media(None, 1, TEXTS) is None
