"""What a request meets and what it comes to: the facts of a thread, and the plan of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from backscroll.agent.answers import PauseAnswer
from backscroll.agui.input import RunInput
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.message import Message, ToolCall, tool_result
from backscroll.kernel.ports import Ids
from backscroll.kernel.request import Note
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSet
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.pause_record import PauseChange, PauseRecord

Action = Literal["run", "continue", "nothing"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a thread remembers of its pauses, and what answers to them are checked with.

    `now` is the time in seconds, `tools` are the agent's, `by` is who sends the request.
    """

    record: PauseRecord = field(default_factory=PauseRecord)
    now: float = 0.0
    tools: ToolSet = field(default_factory=ToolSet)
    by: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a thread holds when a request comes in; `history` is its live messages, in order."""

    history: tuple[Message, ...] = ()
    is_known: bool = False
    waiting: Waiting = field(default_factory=Waiting)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request comes to.

    `store` is to be added to the history in this order; `echo` is the part of it that came from
    the client, `settled` the results among it that we made. `supersede_from` is the index in the
    live history from which on everything is superseded, before `store` is added; `history` is
    what stays live before it. With action `nothing` the run ends at once; `pending` are the calls
    that wait for the client then, `questions` what people are asked. `held` is set when the client
    is behind: how many of the leading messages of `history` and `store` its list holds.

    `resumes` is the pause that the turn goes on with, `answers` those to its items, and `said`
    user messages that are stored behind its results. `pause` is what becomes of the thread's pause.
    `refused` is a question that is answered by a refusal and not stored.
    """

    action: Action
    history: tuple[Message, ...] = ()
    store: tuple[Message, ...] = ()
    echo: tuple[Message, ...] = ()
    settled: tuple[Message, ...] = ()
    supersede_from: int | None = None
    pending: tuple[str, ...] = ()
    questions: tuple[PauseItem, ...] = ()
    expires_at: float | None = None
    is_import: bool = False
    held: int | None = None
    notes: tuple[Note, ...] = ()
    resumes: Pause | None = None
    answers: Mapping[str, PauseAnswer] = field(default_factory=dict)
    said: tuple[Message, ...] = ()
    pause: PauseChange | None = None
    refused: tuple[Message, ...] = ()


def abandoned(calls: Iterable[ToolCall], ids: Ids, texts: Texts) -> tuple[Message, ...]:
    """Return the results of calls that nobody answered before the conversation went on."""
    return tuple(
        tool_result(call.id, call.name, texts.abandoned, id=ids.new("msg"), outcome="cancelled")
        for call in calls
    )


def answer_of(call: ToolCall, sent: Message, texts: Texts) -> Message:
    """Return a client's result as it is stored; an empty one says that it is empty."""
    is_empty = not sent.content or (isinstance(sent.content, str) and not sent.content.strip())
    content = texts.client_empty if is_empty else sent.content
    return sent.replace(content=content, name=call.name)


def refusal_of(request: RunInput, code: str, message: str, **details: object) -> RequestRefused:
    """Return the refusal of a request, with its ids."""
    refusal = RequestRefused(code, message)
    return refusal.about(threadId=request.thread_id, runId=request.run_id, **details)
