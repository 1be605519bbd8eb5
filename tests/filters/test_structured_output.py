"""StructuredOutput lets a turn end with a value of a given shape."""

from __future__ import annotations

from typing import Any

import pytest
from agent.agents import agent_of, model_of
from backscroll.agent.agent import Agent
from backscroll.agent.answers import Approve
from backscroll.filters.structured_output import StructuredOutput
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from played_model import PlayedModel, call, calls
from pydantic import BaseModel


class Answer(BaseModel):
    """An answer."""

    value: int


@tool(sensitive=True)
async def look() -> str:
    """Look."""
    return "seen"


async def test_the_value_is_the_output() -> None:
    """SO2: invalid, then valid: two calls, and the parsed value; the text is the model's own."""
    agent = agent_of('{"value": "x"}', '{"value": 7}', filters=[StructuredOutput(Answer)])

    result = await agent.invoke("hi", conversation_id="t")

    assert (result.output, result.text) == (Answer(value=7), '{"value": 7}')
    feedback = (await agent.memory.get("t"))[2]
    assert "value: expected integer, got string" in feedback.text
    assert feedback.origin == "filter:structured_output"


async def test_never_valid() -> None:
    """SO3: the last answer is returned, the output is None, nothing is raised."""
    agent = agent_of(*["no"] * 3, filters=[StructuredOutput({"type": "object"})])

    result = await agent.invoke("hi")

    assert (result.status, result.text, result.output) == ("completed", "no", None)
    assert len(model_of(agent).requests) == 3


async def test_a_paused_turn() -> None:
    """SO4: a paused result passes, the answer after the resume is checked."""
    agent = agent_of(
        calls(call("look", id="c")), "no", '{"value": 7}',
        tools=[look], filters=[StructuredOutput(Answer)],
    )  # fmt: skip

    paused = await agent.invoke("hi", conversation_id="t")
    result = await agent.resume({"c": Approve()}, pause=paused.pause)

    assert (paused.status, paused.output) == ("paused", None)
    assert result.output == Answer(value=7)


CLOSED = {
    "title": "An answer!",
    "type": "object",
    "properties": {"value": {"type": "integer"}},
    "required": ["value"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("kind", "native", "asked"),
    [
        (
            "json_schema",
            "auto",
            {
                "type": "json_schema",
                "json_schema": {"name": "An_answer", "schema": CLOSED, "strict": True},
            },
        ),
        ("json_object", "auto", {"type": "json_object"}),
        ("none", "auto", None),
        ("json_schema", False, None),
    ],
)
async def test_models_are_asked_for_the_shape(kind: Any, native: Any, asked: Any) -> None:
    """SO5: as far as the profile goes, unless switched off; the result is the same."""
    model = PlayedModel(['{"value": 7}'], profile=ModelProfile(response_format=kind))
    agent = Agent(model=model, filters=[StructuredOutput(CLOSED, native=native)])

    result = await agent.invoke("hi")

    assert model.requests[0].options.response_format == asked
    assert result.output == {"value": 7}


async def test_open_schemas_are_not_strict() -> None:
    """Only schemas whose objects are closed and complete are asked for strictly."""
    profile = ModelProfile(response_format="json_schema")
    model = PlayedModel(['{"value": 7}'], profile=profile)

    await Agent(model=model, filters=[StructuredOutput({"type": "object"})]).invoke("hi")

    asked = model.requests[0].options.response_format or {}
    assert (asked["json_schema"]["name"], asked["json_schema"]["strict"]) == ("answer", False)


@pytest.mark.parametrize(
    "wrong", [{"schema": {"type": "x"}}, {"native": "yes"}, {"max_retries": -1}]
)
def test_wrong_options(wrong: Any) -> None:
    """SO6: mistakes are raised when the filter is made."""
    with pytest.raises(AssemblyError):
        StructuredOutput(**{"schema": Answer, **wrong})
