"""Paths and words of what is wrong with a request."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui import core as ag
from backscroll.agui.problems import path_of, problems_of
from pydantic import ValidationError


def found(value: Any, origins: Any = None) -> list[str]:
    """Return what is wrong with a request, as sentences."""
    with pytest.raises(ValidationError) as caught:
        ag.RunAgentInput.model_validate(value)
    return [str(problem) for problem in problems_of(caught.value, value, origins or {})]


def of(*messages: Any, **members: Any) -> list[str]:
    """Return what is wrong with a list of messages."""
    return found({"threadId": "t", "runId": "r", "messages": list(messages), **members})


def user(content: Any) -> dict[str, Any]:
    """Return a user message."""
    return {"id": "u", "role": "user", "content": content}


def test_members_of_messages() -> None:
    """The path leads to the member, without what pydantic calls the branches of a union."""
    assert of({"role": "user", "content": "x"}) == ["messages[0].id is missing"]
    assert of({"id": "a"}) == ["messages[0].role is missing"]
    assert of({"id": "a", "role": 7}) == ["messages[0].role is not a known role"]
    assert of(5) == ["messages[0] must be an object"]
    assert of({"id": "t", "role": "tool", "content": "x"}) == ["messages[0].toolCallId is missing"]


def test_content_is_text_or_parts() -> None:
    """One problem for one member, in words for both branches."""
    for wrong in (5, None, {"a": 1}):
        assert of(user(wrong)) == ["messages[0].content must be text or a list of parts"]


def test_members_of_parts() -> None:
    """Parts and sources are named by their place."""
    source = {"type": "data", "value": 4}
    parts = [{"type": "text"}, {"type": "text", "text": 5}, {"type": "image", "source": source}]

    assert of(user([*parts, {"x": 1}, {"type": "image", "source": {"type": "x"}}])) == [
        "messages[0].content[0].text is missing",
        "messages[0].content[1].text must be text",
        "messages[0].content[2].source.value must be text",
        "messages[0].content[2].source.mimeType is missing",
        "messages[0].content[3].type is missing",
        "messages[0].content[4].source.type is not a known type",
    ]


def test_members_of_calls_tools_and_answers() -> None:
    """Everything else a request has is named the same way."""
    call = {"id": "c", "type": "x", "function": {"name": "f"}}

    assert of(
        {"id": "a", "role": "assistant", "toolCalls": [call, 5]},
        tools=[{"name": 5, "description": "d"}],
        context=5,
        resume=[{"interruptId": "x", "status": "no"}],
    ) == [
        "messages[0].toolCalls[0].type must be 'function'",
        "messages[0].toolCalls[0].function.arguments is missing",
        "messages[0].toolCalls[1] must be an object",
        "tools[0].name must be text",
        "context must be a list",
        "resume[0].status must be 'resolved' or 'cancelled'",
    ]


def test_other_faults_keep_their_words() -> None:
    """What pydantic says of a fault we have no words for is a part of a sentence."""
    value = {"type": "STEP_STARTED", "stepName": "a", "timestamp": 0.5}
    with pytest.raises(ValidationError) as caught:
        ag.StepStartedEvent.model_validate(value)

    (told,) = problems_of(caught.value, value, {})

    assert str(told).startswith("timestamp input should be a valid integer")


def test_places_are_counted_as_the_peer_counted() -> None:
    """Where items were removed, paths name the places of the original lists."""
    origins = {("messages",): [3], ("messages", 0, "content"): [7]}

    assert path_of(("messages", 0, "content", 0, "text"), origins) == "messages[3].content[7].text"
    assert path_of(("a", 1, "b")) == "a[1].b"
