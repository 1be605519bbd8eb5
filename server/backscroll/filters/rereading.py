"""ReReading: asks the model to read the question twice."""

from __future__ import annotations

from backscroll.filters.options import check_template
from backscroll.filters.questions import is_question, rewritten
from backscroll.kernel.filter import Filter, TurnHandler
from backscroll.kernel.turn import TurnRequest, TurnResult


class ReReading(Filter):
    """Rewrites each question of a turn for the model; people go on seeing what was said."""

    name = "rereading"

    def __init__(self, template: str | None = None) -> None:
        check_template("template", template, {"question"})
        self._template = template

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Rewrite the questions once per turn."""
        template = self._template or request.texts.rereading
        messages = tuple(
            rewritten(message, self.name, template.format(question=message.for_model()))
            if is_question(message, self.name)
            else message
            for message in request.messages or ()
        )
        if request.messages is None or messages == request.messages:
            return await chain(request)
        return await chain(request.replace(messages=messages))
