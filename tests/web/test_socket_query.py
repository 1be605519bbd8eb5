"""What the address of a connection asks for."""

from __future__ import annotations

import pytest
from backscroll.agui.cursor import START, Cursor
from backscroll.agui.refusal import RequestRefused
from backscroll.web.socket_query import answer_subprotocol, read_query

DURABLE, BARE = "backscroll.durable.v1", "backscroll.bare.v1"


def test_nothing_asked() -> None:
    """A conversation socket, bare, of an older peer until it says otherwise."""
    asked = read_query({})

    assert (asked.dialect, asked.thread_id, asked.run_id, asked.offset) == (
        "bare",
        None,
        None,
        None,
    )
    assert asked.is_older and asked.max_frame is None


def test_everything_asked() -> None:
    """Each parameter is read."""
    asked = read_query(
        {
            "dialect": "durable",
            "threadId": "t",
            "runId": "r",
            "offset": "57.k3f0",
            "max_frame": "65536",
            "protocolVersion": "1.7",
        }
    )

    assert (asked.dialect, asked.thread_id, asked.run_id) == ("durable", "t", "r")
    assert asked.offset == Cursor(57, "k3f0") and asked.max_frame == 65_536
    assert not asked.is_older
    assert read_query({"offset": "-1"}).offset == START


@pytest.mark.parametrize(
    ("query", "offered", "dialect"),
    [
        ({"dialect": "bare", "offset": "1"}, (DURABLE,), "bare"),
        ({"dialect": "durable"}, (BARE,), "durable"),
        ({"offset": "1"}, (), "durable"),
        ({"runId": "r"}, (BARE,), "durable"),
        ({"threadId": "t"}, (DURABLE,), "durable"),
        ({}, ("other", BARE), "bare"),
        ({"threadId": "t"}, (), "bare"),
    ],
)
def test_the_dialect(query: dict[str, str], offered: tuple[str, ...], dialect: str) -> None:
    """The word decides, then offset or runId, then the subprotocol."""
    assert read_query(query, offered).dialect == dialect


@pytest.mark.parametrize(
    "query",
    [
        {"dialect": "odd"},
        {"threadId": ""},
        {"threadId": "x" * 257},
        {"runId": "a\nb"},
        {"offset": "abc"},
        {"offset": "1.K3F0"},
        {"max_frame": "65535"},
        {"max_frame": "99999999999"},
        {"max_frame": "many"},
        {"max_frame": "٦٥٥٣٦"},
    ],
)
def test_what_is_wrong_is_named(query: dict[str, str]) -> None:
    """The parameter is the path of the problem."""
    with pytest.raises(RequestRefused) as error:
        read_query(query)

    assert error.value.details["problems"][0]["path"] == next(iter(query))


@pytest.mark.parametrize(
    ("offered", "answered"),
    [
        ((), None),
        (("bearer.abc",), None),
        (("bearer.abc", "other"), "other"),
        (("other", DURABLE, BARE), DURABLE),
        (("bearer.abc", BARE), BARE),
    ],
)
def test_the_subprotocol_that_is_answered(offered: tuple[str, ...], answered: str | None) -> None:
    """Ours, else the first that is no credential: a browser drops a socket otherwise."""
    assert answer_subprotocol(offered) == answered
