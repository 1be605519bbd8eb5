"""Retrieval puts passages beside the question."""

from __future__ import annotations

from typing import Any

import pytest
from agent.agents import Events, agent_of, model_of
from backscroll.agent.answers import Approve
from backscroll.agent.events import Reported
from backscroll.filters.rereading import ReReading
from backscroll.filters.retrieval import Document, Retrieval
from backscroll.kernel.content import TextPart
from backscroll.kernel.errors import AssemblyError, LeaseLost
from backscroll.kernel.message import user
from backscroll.kernel.tool import tool
from played_model import call, calls, sent


class Handbook:
    """Finds the same passages for everything, and keeps what was looked for."""

    def __init__(self, *texts: str, error: Exception | None = None) -> None:
        self.texts, self.error = texts, error
        self.asked: list[tuple[str, int]] = []

    async def retrieve(self, query: str, k: int) -> list[Document]:
        """Return the passages."""
        self.asked.append((query, k))
        if self.error is not None:
            raise self.error
        return [Document(text) for text in self.texts]


@tool(sensitive=True)
async def look() -> str:
    """Look."""
    return "seen"


async def test_the_last_question() -> None:
    """RR2: asked once per turn with the question as said; only the last question changes."""
    handbook = Handbook("one", " ", "two")
    rounds = [calls(call("look", id="c")), "ok"]
    agent = agent_of(*rounds, tools=[look], filters=[Retrieval(handbook, k=2)])

    paused = await agent.invoke([user("first"), user("where?")], conversation_id="t")
    await agent.resume({"c": Approve()}, pause=paused.pause)

    assert handbook.asked == [("where?", 2)]
    for request in model_of(agent).requests:
        first, second = sent(request)[:2]
        assert first == "user: first"
        assert second.startswith("user: where?\n\nThe following passages were found")
        assert "<context>\none\n\ntwo\n</context>" in second
    assert (await agent.memory.get("t"))[1].content == "where?"


async def test_nothing_found() -> None:
    """RR3: the message is left alone, or gets the instruction all the same."""
    plain = agent_of("ok", filters=[Retrieval(Handbook(" "))])
    always = agent_of("ok", filters=[Retrieval(Handbook(), inject_when_empty=True)])

    await plain.invoke("where?")
    await always.invoke("where?")

    assert sent(model_of(plain).requests[0]) == ["user: where?"]
    assert "Answer from these passages only" in sent(model_of(always).requests[0])[0]


async def test_both_filters_together() -> None:
    """RR4: they rewrite in order, the query is what was said, and both are named."""
    handbook = Handbook("one")
    agent = agent_of(
        "ok", filters=[ReReading(), Retrieval(handbook, template="{question} [{context}]")]
    )

    await agent.invoke("where?", conversation_id="t")

    assert handbook.asked == [("where?", 4)]
    text = "where?\nRead the question again: where? [one]"
    (stored, _) = await agent.memory.get("t")
    assert (stored.model_content, stored.rewritten_by) == (text, ("rereading", "retrieval"))


async def test_what_is_left_alone() -> None:
    """RR4: a question in parts, a blank one, and one that was rewritten in an earlier turn."""
    handbook = Handbook("one")
    agent = agent_of("ok", "ok", "ok", filters=[Retrieval(handbook)])
    before = user("where?").replace(model_content="x", rewritten_by=("retrieval",))

    await agent.invoke(user((TextPart("where?"),)), conversation_id="t")
    await agent.invoke(" ", conversation_id="t")
    await agent.memory.add("t", [before])
    await agent.invoke((), conversation_id="t")

    assert handbook.asked == []


async def test_a_retriever_that_fails() -> None:
    """The turn ends with `retrieval_failed`, or goes on with a note; a lost lease comes out."""
    failing = Handbook(error=ValueError("no index"))
    strict = agent_of(filters=[Retrieval(failing)])
    lax = agent_of("ok", filters=[Retrieval(failing, on_error="skip")])
    events = Events()

    failed = await strict.invoke("where?", conversation_id="t")
    skipped = await lax.invoke("where?", on_event=events)

    assert failed.error is not None and failed.error.code == "retrieval_failed"
    assert str(failed.error) == "nothing could be looked up: no index"
    assert await strict.memory.get("t") == []
    assert skipped.text == "ok"
    assert [e.report.kind for e in events.of(Reported)] == ["retrieval_failed"]
    with pytest.raises(LeaseLost):
        lost = Handbook(error=LeaseLost("t", 1, 2))
        await agent_of(filters=[Retrieval(lost)]).invoke("where?")


@pytest.mark.parametrize(
    ("retriever", "options"),
    [
        (object(), {}),
        (Handbook, {}),
        (Handbook(), {"k": 0}),
        (Handbook(), {"on_error": "retry"}),
        (Handbook(), {"template": "{passages}"}),
    ],
)
def test_wrong_options(retriever: Any, options: Any) -> None:
    """Mistakes are raised when the filter is made."""
    with pytest.raises(AssemblyError):
        Retrieval(retriever, **options)
