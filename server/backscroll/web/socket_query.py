"""What the address of a WebSocket or a watch asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from backscroll.agui.cursor import Cursor, parse_cursor
from backscroll.agui.ids import id_problem
from backscroll.agui.input import is_older
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.web.services import MAX_FRAME, MIN_FRAME

SUBPROTOCOLS: Mapping[str, Literal["bare", "durable"]] = {
    "backscroll.bare.v1": "bare",
    "backscroll.durable.v1": "durable",
}
_CREDENTIAL = "bearer."


@dataclass(frozen=True, slots=True)
class SocketQuery:
    """The query of a connection, checked."""

    dialect: Literal["bare", "durable"] = "bare"
    thread_id: str | None = None
    run_id: str | None = None
    offset: Cursor | None = None
    max_frame: int | None = None
    protocol_version: str | None = None

    @property
    def is_older(self) -> bool:
        """Say whether the peer declared no version that we speak."""
        return is_older(self.protocol_version)


def read_query(query: Mapping[str, str], offered: Sequence[str] = ()) -> SocketQuery:
    """Check a query and the offered subprotocols; raises `invalid_input` naming the parameter."""
    for name in ("threadId", "runId"):
        wrong = id_problem(query[name]) if name in query else None
        if wrong is not None:
            raise RequestRefused.of_problems([Problem(name, wrong)])
    offset = parse_cursor(query["offset"]) if "offset" in query else None
    return SocketQuery(
        _dialect(query, offered),
        query.get("threadId"),
        query.get("runId"),
        offset,
        _max_frame(query.get("max_frame")),
        query.get("protocolVersion"),
    )


def answer_subprotocol(offered: Sequence[str]) -> str | None:
    """Return the subprotocol to answer with: ours, else the first that is no credential."""
    ours = next((name for name in offered if name in SUBPROTOCOLS), None)
    return ours or next((name for name in offered if not name.startswith(_CREDENTIAL)), None)


def _dialect(query: Mapping[str, str], offered: Sequence[str]) -> Literal["bare", "durable"]:
    asked = query.get("dialect")
    if asked is not None:
        if asked in ("bare", "durable"):
            return "bare" if asked == "bare" else "durable"
        raise RequestRefused.of_problems([Problem("dialect", "must be bare or durable")])
    if "offset" in query or "runId" in query:
        return "durable"
    return next((SUBPROTOCOLS[name] for name in offered if name in SUBPROTOCOLS), "bare")


def _max_frame(text: str | None) -> int | None:
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_FRAME))
    if not is_number or not MIN_FRAME <= int(text) <= MAX_FRAME:
        message = f"must be a number from {MIN_FRAME} to {MAX_FRAME}"
        raise RequestRefused.of_problems([Problem("max_frame", message)])
    return int(text)
