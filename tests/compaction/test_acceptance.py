"""Judging what a summariser answered: by structure, and by what its material holds."""

from __future__ import annotations

import pytest
from backscroll.compaction.acceptance import Accepted, Rejected, accept, clip, ground
from backscroll.compaction.pieces import PieceCounter
from backscroll.compaction.summariser import SummaryDraft
from backscroll.kernel.usage import FinishReason

COUNT = PieceCounter().count
GOOD = "## Goal\n- The user wants the parts checked, one after the other, without haste."
ERRORS = (
    "## Errors and fixes\n- The call failed with ERROR 503; the model refused, saying it cannot "
    "do that. An error object was returned: see the log."
)


def judge(draft: SummaryDraft | str, source: int = 1_000, material: str = "") -> object:
    """Return the judgement of an answer to material of so many tokens."""
    given = SummaryDraft(draft) if isinstance(draft, str) else draft
    return accept(given, material + ERRORS, source, 400, COUNT)


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        ("", "blank"),
        ("   \n", "blank"),
        (SummaryDraft(GOOD, has_calls=True), "tool call"),
        (SummaryDraft("", has_calls=True), "tool call"),
        (SummaryDraft(GOOD, refused=True), "refused"),
        ('{"error": {"message": "no"}}', "error object"),
        ("word " * 1_000, "not smaller"),
    ],
)
def test_an_unusable_answer_is_rejected_with_the_reason(
    draft: SummaryDraft | str, why: str
) -> None:
    """SUM1: blank, calls, an error object, a text as long as its source."""
    found = judge(draft)
    assert isinstance(found, Rejected)
    assert why in found.why


def test_a_summary_may_talk_about_errors() -> None:
    """SUM5: failures, codes and refusals in the text say nothing about the answer itself."""
    assert judge(ERRORS) == Accepted(ERRORS)
    assert isinstance(judge('{"goal": "an error was found"}'), Accepted)
    assert isinstance(judge("{ not json, but a sentence about an error"), Accepted)


def test_a_few_words_cannot_stand_for_much() -> None:
    """At least 40 tokens if the source has more than 2,000."""
    assert isinstance(judge("All is well.", source=1_900), Accepted)
    assert isinstance(judge("All is well.", source=2_100), Rejected)


def test_an_answer_cut_by_its_limit_ends_at_its_last_full_line() -> None:
    """It is used, and says that it was clipped."""
    draft = SummaryDraft(GOOD + "\n- and the next one is", FinishReason.MAX_TOKENS)
    assert judge(draft) == Accepted(GOOD, clipped=True)
    one_line = SummaryDraft("The user wants the parts che", FinishReason.MAX_TOKENS)
    assert judge(one_line) == Accepted("The user wants the parts che", clipped=True)


def test_an_answer_above_its_limit_is_cut_at_a_section() -> None:
    """Above 1.2 of the limit; what is left is within it."""
    sections = [f"## Part {n}\n" + "- a line of some length, again\n" * 20 for n in range(5)]
    found = judge("\n".join(sections), source=5_000)
    assert isinstance(found, Accepted)
    assert found.clipped
    assert COUNT(found.text) <= 400
    assert found.text.startswith("## Part 0\n") and found.text.endswith("again")


def test_a_single_section_is_cut_at_a_line() -> None:
    """Half of the text is not given up for the sake of a heading."""
    text = "## Goal\n" + "- a line of some length, again\n" * 100
    assert clip(text, 100, COUNT).endswith("again")
    assert 60 < COUNT(clip(text, 100, COUNT)) <= 100


def test_a_line_longer_than_the_limit_leaves_nothing() -> None:
    """What cannot be cut at a line is no summary."""
    found = accept(SummaryDraft("word " * 200), "", 10_000, 40, COUNT)
    assert isinstance(found, Rejected)


@pytest.mark.parametrize(
    "item",
    [
        "src/queue/worker.py",
        "/etc/app/main.conf",
        "queue/main.go",
        "ORD-10422",
        "dpl_7f3",
        "deadbeef1",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "48213",
        "1,048,576",
    ],
)
def test_an_invented_identifier_is_marked_and_listed(item: str) -> None:
    """SUM11: paths, prefixed ids, hashes, uuids, numbers of four digits and more."""
    text, total, missing = ground(f"We saw {item}. Then {item}, again.", "nothing of that")
    assert text == f"We saw {item} [unverified]. Then {item} [unverified], again."
    assert (total, missing) == (1, (item,))


@pytest.mark.parametrize(
    ("item", "material"),
    [
        ("SRC/Queue/Worker.py", "wrote src/queue/worker.py."),
        ("1048576", "a limit of 1,048,576 bytes"),
        ("1,048,576", "a limit of 1048576 bytes"),
        ("ord-10422", "order ORD-10422!"),
        ("deadbeef1", "at (deadbeef1)"),
    ],
)
def test_what_the_material_holds_is_grounded(item: str, material: str) -> None:
    """Case, thousands separators and closing punctuation aside."""
    assert ground(f"It was {item}.", material)[2] == ()


def test_a_part_of_a_longer_identifier_does_not_ground() -> None:
    """`1234` is not in `812345`, and `c7` is not an identifier at all."""
    assert ground("code 1234", "code 812345")[2] == ("1234",)
    assert ground("code 8123", "812345, and 8123 too")[2] == ()
    assert ground("and/or, c7, e.g., in 2 of 30 cases", "")[1] == 0


def test_too_many_invented_identifiers_are_a_failure() -> None:
    """SUM11: more than 30 % and at least three; two are only marked."""
    three = judge(GOOD + " See a_1001, b_1002 and c_1003.")
    assert isinstance(three, Rejected)
    assert three.ungrounded == ("a_1001", "b_1002", "c_1003")

    two = judge(GOOD + " See a_1001 and b_1002.")
    assert isinstance(two, Accepted)
    assert two.ungrounded == ("a_1001", "b_1002")

    known = " ".join(f"k_{n}" for n in range(2_000, 2_010))
    many = judge(f"{GOOD} {known} a_1001, b_1002, c_1003.", material=known)
    assert isinstance(many, Accepted)
