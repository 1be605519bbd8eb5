"""A scripted model at the edge, and conversations held with it through the filter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backscroll.compaction.decision import CompactionFinished, CompactionStarted
from backscroll.compaction.filter import Compaction
from backscroll.kernel.client import ChatClient
from backscroll.kernel.errors import ModelError, Refusal
from backscroll.kernel.message import Message, assistant
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest, ModelResponse
from backscroll.kernel.ports import CancelToken
from backscroll.kernel.request import (
    CallEnd,
    CallRetry,
    CallStart,
    ChatRequest,
    ChatResponse,
    Note,
    Stream,
    ViewPlanned,
)

NOTES = """## Goal
- keep going with the parts, as was asked at the beginning of all this, one after the other
## Done
- the parts that were asked about were read, and every one of them was found to be fine so far"""


class EdgeModel:
    """Answers from a list, its last answer again and again; an exception is raised.

    A request of a summariser, told by its prompt, is answered from `notes`.
    """

    name, provider = "edge", "test"

    def __init__(
        self,
        *answers: Any,
        notes: Sequence[Any] = (NOTES,),
        window: int | None = 8_000,
        options: ModelOptions | None = None,
        **profile: Any,
    ) -> None:
        self.profile = ModelProfile(window, "configured", **profile)
        self.options = options
        self.answers, self.notes = list(answers) or ["fine"], list(notes)
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Give the next answer."""
        asks_notes = request.messages[-1].text.endswith("Write the new notes now.")
        kept, answers = (
            (self.summaries, self.notes) if asks_notes else (self.requests, self.answers)
        )
        kept.append(request)
        answer = answers[min(len(kept), len(answers)) - 1]
        if callable(answer):
            answer = answer(request)
            answer = await answer if inspect.isawaitable(answer) else answer
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, ModelResponse) else ModelResponse(assistant(answer))

    async def aclose(self) -> None:
        """Do nothing."""


def overflow(**numbers: Any) -> ModelError:
    """Return a refusal for size, with the numbers it names."""
    refusal = Refusal(numbers.pop("cls", "overflow"), **numbers)
    return ModelError("context_overflow", "the prompt is too long", refusal=refusal)


@dataclass
class Watcher:
    """Keeps what operators would be told."""

    reports: list[Any] = field(default_factory=list)
    starts: list[CallStart] = field(default_factory=list)

    async def started(self, start: CallStart) -> None:
        """A request leaves."""
        self.starts.append(start)

    async def retried(self, retry: CallRetry) -> None:
        """A request is sent again."""

    async def finished(self, end: CallEnd) -> None:
        """A call is over."""

    async def report(self, report: Any) -> None:
        """Keep it."""
        self.reports.append(report)

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The decisions, in order."""
        return [dict(r.decision) for r in self.reports if isinstance(r, CompactionFinished)]

    @property
    def views(self) -> list[ViewPlanned]:
        """The planned views, in order."""
        return [r for r in self.reports if isinstance(r, ViewPlanned)]

    @property
    def notes(self) -> list[str]:
        """The kinds of notes, in order."""
        return [r.kind for r in self.reports if isinstance(r, Note)]

    @property
    def begun(self) -> int:
        """How many summaries were announced."""
        return sum(isinstance(r, CompactionStarted) for r in self.reports)


@dataclass
class Talk:
    """A model behind a compaction filter; each `ask` is one call, each token one run."""

    model: EdgeModel
    compaction: Compaction
    watcher: Watcher = field(default_factory=Watcher)
    conversation: str | None = "t"
    run: CancelToken = field(default_factory=CancelToken)

    async def ask(self, history: Sequence[Message], **changes: Any) -> ChatResponse:
        """Make one call over a history."""
        context = {"conversation_id": self.conversation} if self.conversation else {}
        request = ChatRequest(
            tuple(history), context=context, observer=self.watcher, cancel=self.run
        )
        client = ChatClient(self.model, filters=[self.compaction])
        return await client.chat(request.replace(**changes))

    def next_run(self) -> None:
        """Begin another run."""
        self.run = CancelToken()

    @property
    def sent(self) -> tuple[Message, ...]:
        """What the model got last."""
        return self.model.requests[-1].messages


def talk_with(*answers: Any, summariser: Any = "own", **options: Any) -> Talk:
    """Return a conversation with a model; options of the model go by its names, others on."""
    known = ("notes", "window", "options", "max_input_tokens")
    of_model = {name: options.pop(name) for name in known if name in options}
    return Talk(EdgeModel(*answers, **of_model), Compaction(summariser, **options))


def stream_of(started: bool = False) -> Stream:
    """Return a stream into nothing."""

    async def drop(delta: Any) -> None:
        return None

    stream = Stream(drop)
    stream.started = started
    return stream


class FakeClock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float = 1_764_465_600.0) -> None:
        self.time = now
        self.slept: list[float] = []
        self.on_sleep: Callable[[], None] | None = None

    def now(self) -> float:
        """Return the time set."""
        return self.time

    def monotonic(self) -> float:
        """Return the time set."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Go on by that much."""
        self.time += seconds
