"""What a turn is given, as messages with ids."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agent.inputs import Given, input_messages
from backscroll.kernel.content import TextPart, file_part
from backscroll.kernel.errors import InputError, ModelError
from backscroll.kernel.message import Role, user
from backscroll.kernel.ports import RandomIds
from played_model import PlayedModel

MODEL = PlayedModel([])
IDS = RandomIds()


def test_text_and_messages() -> None:
    """Text, one message, or several become messages; an id that is there is kept."""
    (text,) = input_messages("hi", MODEL, IDS)
    one = input_messages(user("hi", "u1"), MODEL, IDS)
    two = input_messages([user("a"), user((TextPart("b"),), "u2")], MODEL, IDS)

    assert (text.role, text.content) == (Role.USER, "hi")
    assert (text.id or "").startswith("msg_")
    assert one == (user("hi", "u1"),)
    assert two[0].id and two[1].id == "u2"
    assert input_messages((), MODEL, IDS) == ()


@pytest.mark.parametrize("wrong", [["hi"], [None], [{"role": "user"}]])
def test_what_is_no_message(wrong: Any) -> None:
    """The place of what is no message is named."""
    with pytest.raises(InputError, match=r"\[0\]: expected a message, got"):
        input_messages(wrong, MODEL, IDS)


def test_a_part_the_model_cannot_take() -> None:
    """PART2: the part's place and media type are named, and trying again does not help."""
    content = (TextPart("hear"), file_part(b"x", "audio/flac"))

    with pytest.raises(ModelError, match=r"messages\[1\].content\[1\] \(audio/flac\)") as caught:
        input_messages([user("a"), user(content)], MODEL, IDS)

    assert (caught.value.kind, caught.value.retryable) == ("unsupported_content", False)


def test_unknown_options() -> None:
    """An option that does not exist is a TypeError, as with any function."""
    with pytest.raises(TypeError, match="tepmerature"):
        Given(tepmerature=1)  # type: ignore[call-arg]
