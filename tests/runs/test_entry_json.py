"""Entries as operators are shown them."""

from __future__ import annotations

import json
from typing import Any

from backscroll.runs.entry_json import (
    CUT_CHARS,
    entry_for_fold,
    entry_full,
    entry_head,
    entry_live,
    read_body,
)
from backscroll.store.entry import Entry


def entry(body: bytes = b"{}", **changes: Any) -> Entry:
    """Return an entry."""
    given: dict[str, Any] = {
        "seq": 7,
        "time": 1764465600000,
        "run": "r",
        "kind": "event",
        "type": "STEP_STARTED",
        "audience": "client",
        "ref": "iteration-1",
        "preview": "iteration-1",
        "worker": "w",
        "body": body,
    }
    return Entry(**{**given, **changes})


def test_a_head_has_no_body() -> None:
    """Sizes and what it is; what is empty is left out."""
    assert entry_head(entry(b'{"a":1}')) == {
        "seq": 7,
        "time": 1764465600000,
        "run": "r",
        "kind": "event",
        "type": "STEP_STARTED",
        "audience": "client",
        "ref": "iteration-1",
        "preview": "iteration-1",
        "bytes": 7,
        "worker": "w",
    }
    assert not {"run", "ref"} & entry_head(entry(run="", ref="")).keys()


def test_long_texts_are_cut_and_named() -> None:
    """Strings above 64 KiB become head and tail, with path and length."""
    long = "a" * CUT_CHARS + "b" * 10
    body = {"one": [{"text": long}], "short": "x", "number": 1}

    full = entry_full(entry(json.dumps(body).encode()))

    assert full["cut"] == [{"path": "one[0].text", "chars": CUT_CHARS + 10}]
    text = full["body"]["one"][0]["text"]
    assert "\n[… 10 characters left out …]\n" in text and text.endswith("b" * 10)
    assert (full["body"]["short"], full["body"]["number"]) == ("x", 1)


def test_what_is_short_is_whole() -> None:
    """A text of exactly the limit is not cut."""
    full = entry_full(entry(json.dumps("x" * CUT_CHARS).encode()))

    assert full["body"] == "x" * CUT_CHARS and "cut" not in full


def test_the_socket_carries_small_bodies() -> None:
    """Bodies up to 2 kB come along, larger ones are asked for."""
    small, large = json.dumps("x" * 1990).encode(), json.dumps("x" * 2010).encode()

    assert entry_live(entry(small))["body"] == "x" * 1990
    assert "body" not in entry_live(entry(large))


def test_the_fold_gets_the_bodies_it_reads() -> None:
    """Parsing the others would cost more than folding them."""
    assert "body" not in entry_for_fold(entry())
    assert entry_for_fold(entry(type="TEXT_MESSAGE_CONTENT"))["body"] == {}
    assert entry_for_fold(entry(kind="message", type="added"))["body"] == {}


def test_a_body_that_is_no_json_is_text() -> None:
    """Whatever is in the log can be shown."""
    assert read_body(entry(b"plain")) == "plain"
    assert read_body(entry(b"\xff")) == "\ufffd"
