"""Filters of the text that is delivered."""

from __future__ import annotations

from typing import Any

import pytest
from agent.agents import Events, agent_of, model_of
from backscroll.agent.events import ReasoningDelta, TextDelta
from backscroll.filters.tokens import HoldUntilChecked, Redact
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.model import Reasoning, Text
from hypothesis import given
from hypothesis import strategies as st
from played_model import Said, Streamed, sent


def through(transform: Any, *deltas: Any) -> list[Any]:
    """Return what comes out of a transform, its end included."""
    out = [piece for delta in deltas for piece in transform.feed(delta)]
    return [*out, *transform.finish()]


def told(events: Events) -> str:
    """Return the text that was delivered."""
    return "".join(event.delta for event in events.of(TextDelta))


async def test_redacting() -> None:
    """FIL12: delivered text is redacted, requests have the original, the store shows both."""
    agent = agent_of("code 1234 ok", "bye", filters=[Redact(r"\d{4}", "****")])
    events = Events()

    await agent.invoke("hi", conversation_id="t", on_event=events)
    await agent.invoke("and?", conversation_id="t")

    stored = (await agent.memory.get("t"))[1]
    assert told(events) == stored.content == "code **** ok"
    assert (stored.model_content, stored.rewritten_by) == ("code 1234 ok", ("redact",))
    assert sent(model_of(agent).requests[1])[1] == "assistant: code 1234 ok"


def test_matches_that_are_split() -> None:
    """They are missed without a window, and found with one."""
    deltas = [Text("a 12"), Text("34 b"), Text(" c")]

    missed = through(Redact(r"\d{4}", "****").tokens(), *deltas)
    found = through(Redact(r"\d{4}", "****", window_chars=4).tokens(), *deltas)

    assert "".join(piece.delta for piece in missed) == "a 1234 b c"
    assert "".join(piece.delta for piece in found) == "a **** b c"


def test_reasoning_goes_before_text() -> None:
    """What is held of the reasoning goes out when the text begins, redacted as well."""
    transform = Redact(r"\d{4}", "****", window_chars=8).tokens()

    out = through(transform, Reasoning("so 12"), Reasoning("34"), Text("it is"), Text(" 1234"))

    assert [type(piece) for piece in out] == sorted((type(p) for p in out), key=lambda k: k is Text)
    assert "".join(p.delta for p in out if isinstance(p, Reasoning)) == "so ****"
    assert "".join(p.delta for p in out if isinstance(p, Text)) == "it is ****"


@given(st.text("ab1 ", max_size=30), st.lists(st.integers(1, 6)), st.integers(3, 9))
def test_any_cutting(text: str, sizes: list[int], window: int) -> None:
    """With a window as long as a match, it does not matter how a text is cut into deltas."""
    pieces, rest = [], text
    for size in sizes:
        pieces.append(Text(rest[:size]))
        rest = rest[size:]

    out = through(Redact("1a1", "#", window).tokens(), *pieces, Text(rest))

    assert "".join(piece.delta for piece in out) == text.replace("1a1", "#")


async def test_holding() -> None:
    """SM3: what passes is delivered unchanged; reasoning is not held."""
    hold = HoldUntilChecked(lambda _: None)
    agent = agent_of(Said("all is well", reasoning="hm"), filters=[hold])
    events = Events()

    await agent.invoke("hi", conversation_id="t", on_event=events)

    assert [event.delta for event in events.of(TextDelta)] == ["all ", "is ", "well"]
    assert len(events.of(ReasoningDelta)) == 1
    assert (await agent.memory.get("t"))[1].model_content is None


async def test_replacing() -> None:
    """SM3: one replacement is delivered and stored; the model goes on with its own text."""
    hold = HoldUntilChecked(lambda text: "I'd rather not." if "bomb" in text else None)
    agent = agent_of("a bomb", "ok", filters=[hold])
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)
    shown = [event.delta for event in events.of(TextDelta)]
    await agent.invoke("and?", conversation_id="t", on_event=events)

    assert shown == ["I'd rather not."]
    assert result.text == "a bomb"
    assert (await agent.memory.get("t"))[1].content == "I'd rather not."
    assert sent(model_of(agent).requests[1])[1] == "assistant: a bomb"


async def test_a_broken_stream() -> None:
    """FIL13, SM3: of a reply that breaks off, nothing that was held is delivered."""
    broken = ModelError("incomplete_stream", "it broke off")
    agent = agent_of(
        Streamed([Text("a bo"), broken]), filters=[HoldUntilChecked(lambda text: None)]
    )
    events = Events()

    result = await agent.invoke("hi", conversation_id="t", on_event=events)

    assert result.status == "error"
    assert told(events) == ""
    assert len(await agent.memory.get("t")) == 1


def test_a_reply_without_text() -> None:
    """Nothing is checked when there is no text."""
    assert through(HoldUntilChecked(lambda text: 1 / 0).tokens()) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"pattern": "("}, {"replacement": r"\9"}, {"window_chars": -1}])
def test_wrong_options(wrong: Any) -> None:
    """Mistakes are raised when the filter is made."""
    with pytest.raises(AssemblyError):
        Redact(**{"pattern": "x", **wrong})
    with pytest.raises(AssemblyError):
        HoldUntilChecked("x")  # type: ignore[arg-type]
