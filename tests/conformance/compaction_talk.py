"""What the cases of compaction share: an agent on the scripted provider, and turns of a client."""

from __future__ import annotations

import json
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelProfile
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Recorded, Reply, ScriptedProvider
from served import Served, request, sse_events

SUMMARISER = "Write the new notes now."
FRAME, DIGEST = "<earlier-conversation>", "<earlier-messages-left-out>"
PROSE = "The weather was as fine as ever and nothing else of importance happened in the town. "
NOTES = """## Done
The assistant answered a number of questions about the weather, one after another, and all was fine.
Nothing else of importance happened, and no decision was made that would have to be remembered.
"""


def agent_for(
    provider: ScriptedProvider,
    window: int,
    **settings: Any,
) -> Agent:
    """Return an agent on the OpenAI wire with a window of that size."""
    profile = ModelProfile(context_window=window, window_source="configured")
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k", profile=profile)
    return Agent(
        name="a",
        model=model,
        compaction=Compaction(**settings),
    )


def asks_notes(record: Recorded) -> bool:
    """Say whether a request is one for a summary."""
    return SUMMARISER in json.dumps(record.messages)


class Scripted:
    """Answers summaries from a list, its last one repeating, and all else in a word."""

    def __init__(self, provider: ScriptedProvider, notes: list[Reply]) -> None:
        self.notes, self.asked = notes, 0
        provider.script.answer = self._answer

    def _answer(self, record: Recorded) -> Reply:
        if not asks_notes(record):
            return Reply(text="fine")
        self.asked += 1
        return self.notes[min(self.asked, len(self.notes)) - 1]


async def turn(server: Served, number: int, text: str) -> dict[str, Any]:
    """Send one more message as a client does and return the last event of its run."""
    message = {"id": f"u{number}", "role": "user", "content": text}
    props = {"backscroll.snapshot": "never"}
    body = request("t", f"r{number}", message, forwardedProps=props)
    answer = await server.http.post("/agui", json=body)
    assert answer.status_code == 200, answer.text
    last: dict[str, Any] = sse_events(answer.text)[-1]
    return last


async def compactions(server: Served) -> list[dict[str, Any]]:
    """Return all decisions of the thread."""
    page = await server.get("/console/api/threads/t/compactions")
    found: list[dict[str, Any]] = page["compactions"]
    return found
