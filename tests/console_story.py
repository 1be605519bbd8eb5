"""A long conversation for tests of the console: sixty calls, and an overflow among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from console_pages import api, talk
from processes import PROGRAMS, ServerProcess
from scripted_provider import Call, Reply, ScriptedProcess

TURNS = 30
OVERFLOW_AT = 24
QUESTIONS = (
    "How was week {n}? Is anything late?",
    "Which orders of week {n} are still open?",
    "What did Basel and Lyon order in week {n}?",
)
ANSWERS = (
    "Most of it is shipped. Two parcels are late, both to Torino; the carrier has them since "
    "Tuesday, so I have written to the customers and offered to send the lamps again for free. ",
    "Four orders are open: the saddles to Basel are packed and leave tonight, the chains wait for "
    "a delivery, and the two from Ghent are paid but not yet picked. ",
    "Saddles and bar tapes as usual, a little more than the week before. Nothing is out of the "
    "ordinary, and no order had to be split between two parcels. ",
)


@dataclass(frozen=True, slots=True)
class Story:
    """What was told, and the parts it was told on."""

    server: ServerProcess
    model: ScriptedProcess
    thread: str

    def calls(self) -> list[dict[str, Any]]:
        """Return all calls of the thread with their attempts."""
        heads = api(self.server, f"/threads/{self.thread}/calls")["calls"]
        return [api(self.server, f"/threads/{self.thread}/calls/{h['call']}") for h in heads]

    def attempts(self) -> list[tuple[int, int]]:
        """Return call and attempt of every request that left, in order."""
        return [(call["call"], one["attempt"]) for call in self.calls() for one in call["attempts"]]

    def most_varied(self) -> int:
        """Return the call whose messages have the most different fates."""
        fates = {
            call["call"]: len({span["fate"] for span in call["attempts"][-1]["spans"]})
            for call in self.calls()
        }
        return max(fates, key=lambda number: (fates[number], number))

    def call_with(self, fate: str) -> int:
        """Return the last call that has a message of this fate."""
        having = [
            call["call"]
            for call in self.calls()
            if any(span["fate"] == fate for span in call["attempts"][-1]["spans"])
        ]
        assert having, f"no call has a message that is {fate}"
        return int(having[-1])


@contextmanager
def served(agent: str, data_dir: Path, workers: int = 1) -> Iterator[tuple[Any, ScriptedProcess]]:
    """Serve an agent of `compacting_agent` with a scripted model."""
    with ScriptedProcess() as model:
        env = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none-needed",
            "PYTHONPATH": str(PROGRAMS),
        }
        name = f"compacting_agent:{agent}"
        with ServerProcess(name, data_dir=data_dir, workers=workers, env=env) as server:
            yield server, model


def tell(server: ServerProcess, model: ScriptedProcess, thread: str, turns: int = TURNS) -> None:
    """Have a conversation in which every question asks for a report."""
    for turn in range(turns):
        if turn == OVERFLOW_AT:
            model.configure(window=1500)
        model.add(Reply(calls=(Call("report", {"pages": 2 + 2 * (turn % 4)}),)))
        model.add(Reply(text=ANSWERS[turn % 3]))
        talk(server, thread, QUESTIONS[turn % 3].format(n=turn))
        model.configure(window=None)


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Tell the story once for all tests, on two workers."""
    with served("summarising", tmp_path_factory.mktemp("story"), workers=2) as (server, model):
        tell(server, model, "story")
        yield Story(server, model, "story")
