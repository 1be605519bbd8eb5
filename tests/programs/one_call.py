"""One call of the compaction filter, or one summary ahead of need, in a process of its own.

Arguments: Redis, key prefix, provider, `filter` or `ahead`, a name. It says a line when it is
ready, waits for one, says a line when it begins, and one with what came of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.filter import Compaction
from backscroll.kernel.client import ChatClient
from backscroll.kernel.message import assistant, user
from backscroll.kernel.model import ModelProfile, ModelRequest, ModelResponse
from backscroll.kernel.request import ChatRequest, Note
from backscroll.providers.openai import OpenAIModel
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import connect
from backscroll.store.keys import Keys
from backscroll.store.thread_log import ThreadLog


class Model:
    """Keeps what it is sent."""

    name, provider = "edge", "test"
    profile = ModelProfile(8_000, "configured")
    options = None
    sent: list[str]

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Answer."""
        self.sent = [message.text for message in request.messages]
        return ModelResponse(assistant("fine"))

    async def aclose(self) -> None:
        """Do nothing."""


class Reports(list[Any]):
    """An observer that keeps what is reported."""

    async def started(self, start: Any) -> None:
        """Pass over."""

    finished = retried = started

    async def report(self, report: Any) -> None:
        """Keep it."""
        self.append(report)


async def main(redis_url: str, prefix: str, base_url: str, role: str, name: str) -> None:
    """Do it."""
    clients, keys, model, reports = connect(redis_url), Keys(prefix), Model(), Reports()
    memory = RedisChatMemory(ThreadLog(clients, keys, name))
    small = OpenAIModel("small", base_url=base_url, api_key="k", profile=Model.profile)
    compaction = Compaction(small, store=RedisCompactionStore(clients, keys))
    history = await memory.get("t")
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    say("begins")
    await memory.add("t", [user(f"before {name}", f"before-{name}")])
    request = ChatRequest(
        tuple(history), context={"conversation_id": "t"}, observer=reports, profile=model.profile
    )
    if role == "ahead":
        done = await compaction.prepare(request.replace(model=model))
        told: dict[str, Any] = {"made": done is not None}
    else:
        await ChatClient(model, filters=[compaction]).chat(request)
        decisions = [r.decision for r in reports if isinstance(r, CompactionFinished)]
        notes = [r.kind for r in reports if isinstance(r, Note)]
        told = {"sent": model.sent, "decisions": decisions, "notes": notes}
    await memory.add("t", [user(f"after {name}", f"after-{name}")])
    say(json.dumps(told))
    await small.aclose()
    await clients.close()


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
