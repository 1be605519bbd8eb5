"""A request rebuilt from its record: messages, tools, options, and what is gone."""

from __future__ import annotations

from typing import Any

from backscroll.compaction.call_record import CallPlace, make_record
from backscroll.compaction.canon_forms import canon_sent
from backscroll.compaction.rebuild import (
    choice_from_json,
    options_from_json,
    options_to_json,
    rebuild,
    rebuild_request,
    sent_bytes,
)
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.message import Message, Role, ToolCall, assistant
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.kernel.request import CallStart, ViewPlanned
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from compaction.histories import a, t, u


class Model:
    """A model that is only named."""

    name, provider = "m", "p"
    profile = ModelProfile()


TOOL = ToolSpec("read", "Read a file.", {"type": "object", "properties": {}})
OPTIONS = ModelOptions(
    model="other",
    temperature=0.5,
    stop=("END",),
    cache=Cache("stable", "1h", (0, 3)),
    extra_body={"x": [1, {"y": None}]},
    retry=False,
    extra_headers={"authorization": "secret"},
)


def record_of(request: ModelRequest, history: list[tuple[int, Message]]) -> Any:
    """Return a record of a request, with its blobs."""
    start = CallStart("msg_1", Model(), request, True)  # type: ignore[arg-type]  # never called
    return make_record(CallPlace(1), start, ViewPlanned(()), history, Sizes())


def test_a_request_comes_back_as_it_was() -> None:
    """REC1: messages, system texts, tools, choice, options and texts."""
    odd = assistant(None, [ToolCall("c1", "read", None, '{"a":[1,')], "m2")
    history = [(1, u(1)), (2, odd), (3, t(3, "c1", "short"))]
    sent = (u(1), odd, t(3, "c1", "cut"), Message(Role.USER, "note", origin="note"))
    texts = Texts(empty_message="(nothing)")
    request = ModelRequest(sent, ("A", "B"), (TOOL,), Named("read"), OPTIONS, texts)

    made = record_of(request, history)
    back = rebuild_request(made.record, history, made.blobs)

    assert back.missing == ()
    assert [canon_sent(m) for m in back.request.messages] == [canon_sent(m) for m in sent]
    assert back.request.system == ("A", "B")
    assert back.request.tools == (TOOL,)
    assert back.request.tool_choice == Named("read")
    assert back.request.options == OPTIONS.replace(extra_headers=None, retry=None)
    assert back.request.texts == texts


def test_headers_are_in_no_record() -> None:
    """REC9: what may hold a key is left out."""
    made = record_of(ModelRequest((u(1),), options=OPTIONS), [(1, u(1))])
    assert "secret" not in str(made.record)
    assert all(b"secret" not in blob for blob in made.blobs.values())


def test_a_history_that_went_on_changes_nothing() -> None:
    """Later and superseded messages are passed over."""
    made = record_of(ModelRequest((u(1), u(2))), [(1, u(1)), (2, u(2))])
    later = [(1, u(1)), (2, u(2)), (3, u(3)), (4, a(4))]
    assert rebuild(made.record, later, made.blobs).sent == (canon_sent(u(1)), canon_sent(u(2)))


def test_what_is_gone_is_named_and_the_rest_is_shown() -> None:
    """REC10: a lost blob, a lost body, and a message that is no longer stored."""
    history = [(1, u(1)), (2, u(2, "long")), (3, u(3))]
    request = ModelRequest((u(1), u(2, "short"), u(3)), ("system",), (TOOL,))
    made = record_of(request, history)
    tools, body = made.record["request"]["tools"], made.record["bodies"][0][1]
    left = {name: data for name, data in made.blobs.items() if name not in (tools, body)}

    back = rebuild_request(made.record, history[1:], left)

    assert back.missing == ("message at position 1", body, tools)
    assert [m.text for m in back.request.messages] == ["go on"]
    assert back.request.tools == ()


def test_a_whole_list_that_is_gone_is_named() -> None:
    """REC10: nothing is shown, and the record says which blob it was."""
    record = {"whole": "aa", "view": []}
    rebuilt = rebuild(record, [], {})
    assert (rebuilt.sent, rebuilt.missing) == ((), ("aa",))


def test_a_body_without_its_block_is_missing() -> None:
    """REC10: a record that names no block for a changed message shows the rest."""
    view = [{"fate": "truncated", "from": 1, "to": 1}]
    assert rebuild({"view": view, "bodies": []}, [(1, u(1))], {}).sent == (None,)


def test_the_array_is_canonical_json() -> None:
    """`sent_sha256` is over one JSON array, characters as they are."""
    assert sent_bytes([canon_sent(u(1, "雪")), canon_sent(u(2, "x"))]) == (
        '[{"role":"user","content":"雪"},{"role":"user","content":"x"}]'.encode()
    )


def test_options_that_a_later_version_wrote_are_passed_over() -> None:
    """What is not known is not guessed; nothing given is nothing recorded."""
    assert options_from_json({"temperature": 1, "mood": "fine"}) == ModelOptions(temperature=1)
    assert options_to_json(ModelOptions()) == {}
    assert choice_from_json("none") == "none"
