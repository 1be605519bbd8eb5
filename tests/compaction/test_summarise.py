"""The summariser that asks a model: its request, its answer, its errors."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.compaction.summarise import ModelSummariser, prompt_texts, summary_request
from backscroll.compaction.summariser import SummaryPart
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import Role, assistant, tool_call
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, ModelResponse
from backscroll.kernel.usage import FinishReason, Usage

PART = SummaryPart("old notes", "[#1 user] hi", 400, "Keep the {numbers}.")
TEXTS = CompactionTexts()


class Model:
    """A model that answers from a list and keeps what it was asked."""

    name, provider = "small", "p"

    def __init__(self, *answers: Any, options: ModelOptions | None = None, **profile: Any) -> None:
        self.profile, self.options = ModelProfile(**profile), options
        self.answers, self.asked = list(answers), list[ModelRequest]()

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Give the next answer."""
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ModelResponse) else ModelResponse(assistant(answer))

    async def aclose(self) -> None:
        """Do nothing."""


async def test_a_model_is_asked_in_plain_text_without_tools() -> None:
    """SUM8: one system text, one user message, temperature 0, room for the answer."""
    model = Model("notes", options=ModelOptions(seed=7, response_format={"type": "json_object"}))
    await ModelSummariser(model).summarise(PART)
    (asked,) = model.asked
    assert asked.tools == () and len(asked.system) == 1
    assert [message.role for message in asked.messages] == [Role.USER]
    assert "old notes" in asked.messages[0].text and "[#1 user] hi" in asked.messages[0].text
    assert asked.options == ModelOptions(max_output_tokens=600, temperature=0.0, seed=7)


def test_the_focus_is_added_and_replaces_nothing() -> None:
    """The operator's words stand at the end of the instructions."""
    plain = summary_request(SummaryPart("", "", 400), TEXTS).system[0]
    focused = summary_request(PART, TEXTS).system[0]
    assert focused == f"{plain}\nKeep the {{numbers}}."
    assert "At most 400 tokens" in plain


async def test_the_answer_is_handed_on_as_it_is() -> None:
    """SUM1: calls and refusals are told, and judged elsewhere."""
    usage = Usage(100, 20)
    calling = ModelResponse(assistant(None, [tool_call("c1", "f")]), usage)
    refusing = ModelResponse(assistant("no"), None, FinishReason.REFUSAL, model="m2", provider="q")
    model = Model("notes", calling, refusing)
    drafts = [await ModelSummariser(model).summarise(PART) for _ in range(3)]
    assert (drafts[0].text, drafts[0].model, drafts[0].provider) == ("notes", "small", "p")
    assert (drafts[1].has_calls, drafts[1].usage) == (True, usage)
    assert (drafts[2].refused, drafts[2].model, drafts[2].provider) == (True, "m2", "q")


async def test_a_model_without_temperature_is_asked_without_it_from_then_on() -> None:
    """Temperature 0 where it is accepted."""
    refusal = ModelError("invalid_request", "Unsupported value: 'temperature' does not support 0")
    summariser = ModelSummariser(Model(refusal, "one", "two"))
    assert (await summariser.summarise(PART)).text == "one"
    assert (await summariser.summarise(PART)).text == "two"
    temperatures = [asked.options.temperature for asked in summariser.model.asked]  # type: ignore[attr-defined]
    assert temperatures == [0.0, None, None]


async def test_other_errors_are_not_tried_again() -> None:
    """SUM5: one request, one failure."""
    for error in (ModelError("provider", "down"), ModelError("invalid_request", "bad")):
        model = Model(error, "late")
        with pytest.raises(ModelError) as caught:
            await ModelSummariser(model).summarise(PART)
        assert caught.value is error
        assert len(model.asked) == 1


def test_the_window_is_the_smallest_that_is_known() -> None:
    """Of the profile's, its input limit, and the one given; else what is assumed."""
    assert ModelSummariser(Model()).window_tokens == 32_768
    assert ModelSummariser(Model(context_window=9_000)).window_tokens == 9_000
    assert ModelSummariser(Model(context_window=9_000), window=4_000).window_tokens == 4_000
    limited = Model(context_window=9_000, max_input_tokens=5_000)
    assert ModelSummariser(limited).window_tokens == 5_000


def test_the_fixed_texts_are_those_of_the_request() -> None:
    """TXT3: whoever leaves room for them counts what is sent."""
    system, prompt = prompt_texts(TEXTS, "Focus.")
    request = summary_request(SummaryPart("", "", 0, "Focus."), TEXTS)
    assert (system, prompt) == (request.system[0], request.messages[0].text)
