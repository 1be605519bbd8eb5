"""Options merge without overriding by silence; a model is what behaves like one."""

from __future__ import annotations

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import assistant, tool_call
from backscroll.kernel.model import (
    ChatModel,
    ModelOptions,
    ModelProfile,
    ModelResponse,
    Retry,
    retry_policy,
)


def test_options_merge_from_the_outside_in() -> None:
    """None means not given and never overrides."""
    lower = ModelOptions(temperature=0.5, top_p=0.9)

    merged = ModelOptions(temperature=0).over(lower)

    assert merged == ModelOptions(temperature=0, top_p=0.9)
    assert ModelOptions().over(None) == ModelOptions()
    assert merged.replace(seed=1).seed == 1


def test_the_first_retry_policy_counts() -> None:
    """MOD1: None inherits, True is the default, False is off, anything else is refused."""
    assert retry_policy(None, Retry(5)) == Retry(5)
    assert retry_policy(True, Retry(5)) == Retry()
    assert retry_policy(False, True) is None
    assert retry_policy(None, None) == Retry()
    with pytest.raises(AssemblyError, match="retry"):
        retry_policy("yes")  # type: ignore[arg-type]


def test_a_profile_says_why_a_part_is_refused() -> None:
    """A type that is listed, by itself or by its kind, is taken."""
    profile = ModelProfile(parts={"user": ("image/*", "application/pdf")})

    assert profile.accepts("image/png", "user") is None
    assert profile.accepts("application/pdf", "user") is None
    assert "audio/wav" in (profile.accepts("audio/wav", "user") or "")
    assert profile.accepts("image/png", "tool") is not None


def test_a_response_shows_its_message() -> None:
    """Text, calls and reasoning are those of the message."""
    response = ModelResponse(assistant("hi", [tool_call("c", "f")]).replace(reasoning="r"))

    assert (response.text, response.reasoning) == ("hi", "r")
    assert response.tool_calls[0].id == "c"


def test_a_model_is_recognised_by_its_members() -> None:
    """Any object with the members of ChatModel is one."""

    class Mine:
        name, provider, profile = "m", "p", ModelProfile()

        async def generate(self, request: object) -> None: ...
        async def aclose(self) -> None: ...

    assert isinstance(Mine(), ChatModel)
    assert not isinstance(object(), ChatModel)
