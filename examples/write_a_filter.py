"""A filter of one's own: it keeps numbers of bank cards from the model, and counts its calls."""

from __future__ import annotations

import asyncio
import re

from backscroll import Agent, ChatRequest, ChatResponse, DemoModel, Filter

CARD = re.compile(r"\b(?:\d[ -]?){12,18}\d\b")


class HideCards(Filter):
    """Replaces card numbers in what one model call is sent; the stored history keeps them."""

    def __init__(self) -> None:
        self.calls = 0

    async def chat(self, request: ChatRequest, chain) -> ChatResponse:
        """Change a copy of the request, then let the call go on."""
        self.calls += 1
        hidden = [
            message.replace(content=CARD.sub("[card]", message.text))
            for message in request.messages
        ]
        return await chain(request.replace(messages=tuple(hidden)))


async def main() -> None:
    """Show what was said, and what the model was told."""
    model, filter_ = DemoModel(), HideCards()
    agent = Agent(model=model, filters=[filter_])

    await agent.invoke("My card is 4111 1111 1111 1111, is that right?")

    print("the model saw:", model.requests[0].messages[-1].text)
    print("calls:", filter_.calls)


asyncio.run(main())
