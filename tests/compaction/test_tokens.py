"""Sizes of what a request holds, and the calibration by real answers."""

from __future__ import annotations

import pytest
from backscroll.compaction.memo import Memo
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.tokens import Sizes, calibrate, estimate, estimate_message
from backscroll.kernel.content import FilePart, TextPart, VendorPart
from backscroll.kernel.message import Blocks, Message, assistant, tool_call, user
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import ToolSpec

PROFILE = ModelProfile()
COUNTER = PieceCounter()


class Characters:
    """Counts characters, so that sizes can be read off."""

    name = "characters"

    def count(self, text: str) -> int:
        """Return the length."""
        return len(text)


def size(message: Message, profile: ModelProfile = PROFILE) -> int:
    """Return the size of a message in characters."""
    return estimate_message(message, profile, Characters())


def test_a_message_is_frame_text_and_calls() -> None:
    """A message is 6 and its text, a call 8 and its name and argument text."""
    call = tool_call("c1", "read", {"path": "a"})

    assert size(user("hello")) == 6 + 5
    assert size(user(None)) == 6
    assert size(assistant("hi", [call])) == 6 + 2 + 8 + 4 + len('{"path":"a"}')


def test_counts_what_a_view_sends() -> None:
    """The text that a filter wrote counts, not the one that people see."""
    message = user("short").replace(model_content="much longer", rewritten_by=("retrieval",))

    assert size(message) == 6 + len("much longer")


def test_reasoning_counts_where_it_is_replayed() -> None:
    """Reasoning takes room only on models to which it is sent again."""
    told = assistant("hi").replace(reasoning="because")
    asked = told.replace(tool_calls=(tool_call("c", "f"),))

    assert size(told) == 8
    assert size(told, ModelProfile(replay_reasoning="always")) == 8 + 7
    assert size(told, ModelProfile(replay_reasoning="tool_calls")) == 8
    assert size(asked, ModelProfile(replay_reasoning="tool_calls")) == size(asked) + 7


def test_opaque_blocks_count_by_characters() -> None:
    """What nothing interprets is a token per 3 characters; what is readable counts once."""
    text = {"type": "text", "text": "hi"}
    blocks = Blocks("anthropic-content", (text, {"type": "thinking", "s": "x" * 100}), "a")

    assert size(assistant("hi").replace(blocks=blocks)) == 8 + (25 + 100 + 2) // 3


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (FilePart("image/png", url="https://x"), 1_200),
        (FilePart("image/png", data="A" * 400_000), 1_200),
        (FilePart("application/pdf", data="A" * 4), 1_200),
        (FilePart("application/pdf", url="https://x"), 1_200),
        (FilePart("application/pdf", data="A" * 4 * 1_024 * 100), 25 * 300),
        (VendorPart("openai", {"a": 1}), len('{"a":1}')),
        (TextPart("text"), 4),
    ],
)
def test_media_have_a_size(part: FilePart, tokens: int) -> None:
    """An image is 1,200, any other file 25 per KiB and at least 1,200."""
    assert size(user((part,))) == 6 + tokens


def test_media_sizes_can_be_set_by_type() -> None:
    """A media type has its own setting, or one for its kind."""
    given = {"image/*": 500, "image/gif": 7}
    sizes = Sizes(Characters(), given)

    assert sizes.message(user((FilePart("image/png", url="u"),))) == 506
    assert sizes.message(user((FilePart("image/gif", url="u"),))) == 13


def test_sizes_of_the_rest() -> None:
    """A system text is 6 and its text; a tool is 8, name, description and schema."""
    sizes = Sizes(Characters())
    tool = ToolSpec("read", "Reads.", {"type": "object"})

    assert sizes.system("abc") == 9
    assert sizes.tool(tool) == 8 + len('read\nReads.\n{"type":"object"}')
    assert sizes.response_format({"type": "json_object"}) == len('{"type":"json_object"}')
    assert sizes.response_format(None) == 0
    assert sizes.text("abc") == 3


def test_sizes_are_remembered_by_digest() -> None:
    """An equal message is counted once, on another model by what is replayed there."""
    counted: list[str] = []

    class Counting(Characters):
        def count(self, text: str) -> int:
            counted.append(text)
            return len(text)

    sizes = Sizes(Counting())
    message = assistant("hi").replace(reasoning="why")

    assert sizes.messages([message, assistant("hi").replace(reasoning="why")]) == 16
    assert counted == ["hi"]
    assert sizes.under(ModelProfile(replay_reasoning="always")).message(message) == 11


def test_counts_by_pieces_without_a_vocabulary() -> None:
    """Without a counter and a known vocabulary, texts are counted by pieces."""
    sizes = Sizes().under(ModelProfile(vocabulary="unheard-of"))

    assert sizes.counter.name == "pieces"
    assert sizes.under(ModelProfile(vocabulary="unheard-of", context_window=9)) is sizes
    assert Sizes(Characters()).under(ModelProfile(vocabulary="o200k")).counter.name == "characters"


def test_calibration_finds_the_ratio() -> None:
    """TOK3: a provider that counts 1.3 times the estimate is met within 5 % after ten calls."""
    ratio = 1.0
    for _ in range(10):
        ratio = calibrate(ratio, 10_000, 13_000)

    assert ratio == pytest.approx(1.3, rel=0.05)


@pytest.mark.parametrize(
    ("raw", "reported"), [(10_000, 0), (10_000, 40_001), (10_000, 2_499), (1_999, 2_500)]
)
def test_useless_reports_change_nothing(raw: int, reported: int) -> None:
    """TOK3: reports of 0, far off, or for small requests are ignored."""
    assert calibrate(1.0, raw, reported) == 1.0


def test_the_ratio_has_bounds() -> None:
    """The ratio stays between 0.7 and 2.0."""
    assert calibrate(0.7, 10_000, 3_000) == 0.7
    assert calibrate(2.0, 10_000, 60_000) == 2.0


def test_estimates_are_rounded_up() -> None:
    """An estimate is the raw size times the ratio, rounded up."""
    assert estimate(10, 1.1) == 11
    assert estimate(10, 1.01) == 11
    assert estimate(0, 1.5) == 0


def test_counts_may_be_shared() -> None:
    """What one has counted, another with the same memory does not count again."""
    counted: list[str] = []

    class Keeping(Characters):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    counts: Memo[int] = Memo()

    found = [Sizes(Keeping(), counts=counts).message(user("hello", "u1")) for _ in range(2)]

    assert found == [6 + 5] * 2 and counted == ["hello"]
