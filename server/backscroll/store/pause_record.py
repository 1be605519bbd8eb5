"""What a thread remembers of its pauses: what was asked, what was decided, what still waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.kernel.canon import canonical_json, clean_text, parse_json
from backscroll.kernel.errors import BackscrollError, ResumeProblem, ResumeRefused
from backscroll.kernel.message import Message
from backscroll.kernel.pause_codec import read_pause, write_pause
from backscroll.kernel.turn import Pause, PauseItem
from backscroll.store.thread_log import pack

ItemKind = Literal["approval", "client", "environment"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one item; `run` carried it out, the time is in milliseconds."""

    status: Literal["resolved", "cancelled"]
    payload: Any = None  # Any: the answer's own JSON; None when there was none
    by: str = ""
    time: int = 0
    run: str = ""

    def is_same(self, other: Decision) -> bool:
        """Say whether another decision says the same, whoever made it."""
        # Values of Python are no measure: there, 1 equals true.
        mine, theirs = (json.dumps(each.payload, sort_keys=True) for each in (self, other))
        return self.status == other.status and mine == theirs


@dataclass(frozen=True, slots=True)
class Question:
    """One item of a pause as it was asked, and what was decided about it."""

    id: str
    kind: ItemKind
    tool: str
    input: Mapping[str, Any]
    run: str
    pause_id: str
    asked: int
    reason: str = ""
    expires: int | None = None
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class PauseRecord:
    """The pause of a thread, if one is open, and every question the thread was ever asked.

    `revision` counts its changes. `said` are user messages that wait behind the results. `lost` is
    the id of an open pause that cannot be read and that whoever asks gives up.
    """

    pause: Pause | None = None
    questions: Mapping[str, Question] = field(default_factory=dict)
    revision: int = 0
    said: tuple[Message, ...] = ()
    lost: str = ""

    @property
    def decisions(self) -> dict[str, Decision]:
        """What was decided about items of the open pause."""
        items = self.pause.items if self.pause else ()
        found = {item.id: self.questions[item.id].decision for item in items}
        return {name: decision for name, decision in found.items() if decision is not None}

    @property
    def open_items(self) -> tuple[PauseItem, ...]:
        """The items of the open pause that nobody decided about; calls of the client included."""
        items = self.pause.items if self.pause else ()
        return tuple(item for item in items if self.questions[item.id].decision is None)

    @property
    def open_questions(self) -> tuple[PauseItem, ...]:
        """The items of the open pause that people are asked about and did not answer."""
        return tuple(item for item in self.open_items if item.kind != "client")


@dataclass(frozen=True, slots=True)
class PauseChange:
    """What a step does to a thread's pause: decide about items, take it away, put one in place.

    `taken_by` is the run that goes on with the pause, or leaves it. `revision` is the one that was
    decided on; None changes whatever there is.
    """

    revision: int | None = None
    decided: Mapping[str, Decision] = field(default_factory=dict)
    taken: str = ""
    taken_by: str = ""
    asked: Pause | None = None
    asked_by: str = ""
    said: tuple[Message, ...] = ()
    open_items: int = 0

    def pack(self) -> bytes:
        """Return the change for the scripts: revision, fields to set, to stamp, to remove."""
        fields: dict[str, str] = {}
        gone: list[str] = []
        if self.taken:
            gone += ["open", "id", "said"]
            fields[f"t:{self.taken}"] = self.taken_by
        if self.asked is not None:
            fields |= {"open": write_pause(self.asked), "id": self.asked.id}
            gone = [f"d:{item.id}" for item in self.asked.items]
        if self.said:
            fields["said"] = write_said(self.said).decode()
        stamped = {f"d:{name}": _write_decision(each) for name, each in self.decided.items()}
        stamped |= {f"q:{item.id}": self._question(item) for item in self._asked_items()}
        revision = -1 if self.revision is None else self.revision
        return pack([revision, fields, stamped, gone])

    @property
    def due(self) -> int | None:
        """When the asked pause expires, in milliseconds; None when it never does."""
        expires = None if self.asked is None else self.asked.expires_at
        return None if expires is None else round(expires * 1000)

    def meta(self) -> dict[str, str]:
        """Return what heads of threads say of the pause after the change."""
        if self.asked is not None:
            return {"pause": self.asked.id, "questions": str(len(self.asked.items))}
        if self.taken:
            return {"pause": "", "questions": "0"}
        return {"questions": str(self.open_items)}

    def _asked_items(self) -> Iterable[PauseItem]:
        return self.asked.items if self.asked is not None else ()

    def _question(self, item: PauseItem) -> str:
        assert self.asked is not None
        expires = self.asked.expires_at
        return _text(
            {
                "kind": item.kind,
                "tool": item.tool,
                "input": dict(item.args),
                "reason": item.reason,
                "run": self.asked_by,
                "pause": self.asked.id,
                "expires": None if expires is None else round(expires * 1000),
            }
        )


def read_pauses(fields: Mapping[bytes, bytes], *, gives_up: bool = False) -> PauseRecord:
    """Read a thread's pauses from its hash; raises `pause_unreadable`, never guesses.

    For whoever gives up what the thread waits for, an open pause need not be readable.
    """
    texts = {name.decode("utf-8", "surrogatepass"): value for name, value in fields.items()}
    pause, lost = None, ""
    try:
        questions = {name[2:]: _question(name[2:], texts) for name in texts if name[:2] == "q:"}
        said = read_said(texts.get("said"))
        pause = _open(texts, questions)
    except ResumeRefused:
        if not gives_up:
            raise
        lost = texts.get("id", b"lost").decode("utf-8", "surrogatepass")
    except (KeyError, TypeError, ValueError, BackscrollError) as error:
        raise _unreadable(f"{type(error).__name__}: {error}") from error
    return PauseRecord(pause, questions, int(texts.get("rev", b"0")), said, lost)


def write_said(messages: Iterable[Message]) -> bytes:
    """Return messages that wait behind results as they are kept; nothing for none."""
    values = [message.to_dict() for message in messages]
    return _text(values).encode() if values else b""


def read_said(data: bytes | None) -> tuple[Message, ...]:
    """Return the messages that were kept."""
    return tuple(Message.from_dict(value) for value in parse_json(data)) if data else ()


def _open(texts: Mapping[str, bytes], questions: Mapping[str, Question]) -> Pause | None:
    """Return the open pause, whose items were all asked."""
    packed = texts.get("open")
    pause = None if packed is None else read_pause(packed)
    for item in pause.items if pause is not None else ():
        if item.id not in questions:
            raise _unreadable(f"nothing is known of its item {item.id}")
    return pause


def _unreadable(reason: str) -> ResumeRefused:
    message = f"the stored pause cannot be read: {reason}"
    return ResumeRefused([ResumeProblem("pause_unreadable", message)])


def _question(name: str, texts: Mapping[str, bytes]) -> Question:
    asked, value = _stamped(texts[f"q:{name}"])
    decision = None
    if (packed := texts.get(f"d:{name}")) is not None:
        time, told = _stamped(packed)
        run = texts.get(f"t:{value['pause']}", b"").decode("utf-8", "surrogatepass")
        decision = Decision(told["status"], told.get("payload"), told["by"], time, run)
    return Question(
        name,
        value["kind"],
        value["tool"],
        value["input"],
        value["run"],
        value["pause"],
        asked,
        value["reason"],
        value["expires"],
        decision,
    )


def _write_decision(decision: Decision) -> str:
    told: dict[str, Any] = {"status": decision.status, "by": decision.by}
    if decision.payload is not None:
        told["payload"] = decision.payload
    return _text(told)


def _stamped(data: bytes) -> tuple[int, Any]:  # Any: what `_text` was given
    time, text = data.split(b" ", 1)
    return int(time), parse_json(text)


def _text(value: Any) -> str:
    return clean_text(canonical_json(value))
