"""The client's list against the stored history: what to store, what to supersede, what to run.

The store is the authority. Nothing here is read or written: the history comes in, a plan goes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from backscroll.agui.input import RunInput
from backscroll.agui.options import AgentRules
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids
from backscroll.kernel.request import Note
from backscroll.kernel.texts import Texts

Action = Literal["run", "continue", "nothing"]


@dataclass(frozen=True, slots=True)
class Stored:
    """What a thread holds when a request comes in; `history` is its live messages, in order."""

    history: tuple[Message, ...] = ()
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request comes to.

    `store` is to be added to the history in this order; `echo` is the part of it that came from
    the client, `settled` the results among it that we made. `supersede_from` is the index in the
    live history from which on everything is superseded, before `store` is added. With action
    `nothing` the run ends at once, `pending` being the calls that wait for the client. `held` is
    set when the client is behind: how many of the leading messages of `history` its list holds.
    """

    action: Action
    history: tuple[Message, ...]
    store: tuple[Message, ...] = ()
    echo: tuple[Message, ...] = ()
    settled: tuple[Message, ...] = ()
    supersede_from: int | None = None
    pending: tuple[str, ...] = ()
    is_import: bool = False
    held: int | None = None
    notes: tuple[Note, ...] = ()


def reconcile(request: RunInput, stored: Stored, ids: Ids, texts: Texts, rules: AgentRules) -> Plan:
    """Return what the request comes to; raises RequestRefused when it comes to nothing."""
    raise NotImplementedError
