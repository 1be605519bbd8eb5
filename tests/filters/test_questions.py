"""Which messages are questions, and how they are rewritten."""

from __future__ import annotations

from backscroll.filters.questions import is_question, rewritten
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import assistant, user


def test_questions() -> None:
    """A user's text is one, until this filter has rewritten it."""
    done = rewritten(user("hi"), "a", "HI")

    assert is_question(user("hi"), "a")
    assert not is_question(done, "a")
    assert is_question(done, "b")
    for other in (user(" "), user((TextPart("hi"),)), assistant("hi"), user(None)):
        assert not is_question(other, "a")


def test_rewriting() -> None:
    """What was said stays; the filters that rewrote are named in order."""
    twice = rewritten(rewritten(user("hi", "u1"), "a", "HI"), "b", "HI!")

    assert (twice.content, twice.model_content) == ("hi", "HI!")
    assert (twice.rewritten_by, twice.id) == (("a", "b"), "u1")
