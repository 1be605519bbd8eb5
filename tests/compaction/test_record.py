"""Explaining a sent list: fates, reasons, spans, and bodies only where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from backscroll.compaction.canon_forms import canon_sent, sent_digest
from backscroll.compaction.rebuild import rebuild
from backscroll.compaction.record import Explained, Positioned, explain, sent_list
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import Message, Role, ToolCall, assistant, system, user
from backscroll.kernel.model import ModelRequest
from backscroll.kernel.request import Claim
from compaction.histories import a, histories, rounds, t, u
from hypothesis import given
from hypothesis import strategies as st


def placed(messages: Sequence[Message], start: int = 1) -> list[Positioned]:
    """Give messages positions in a row."""
    return list(enumerate(messages, start))


def size(message: Message) -> int:
    """Count characters; good enough to see that sums add up."""
    return len(canon_sent(message))


def explained(
    history: Sequence[Positioned], sent: Sequence[Message], claims: Sequence[Claim] = ()
) -> Explained:
    """Explain, and check that rebuilding gives the sent list back."""
    found = explain(history, sent, claims, size)
    rebuilt = rebuild(found.recipe, history, found.blobs)
    assert list(rebuilt.sent) == [canon_sent(message) for message in sent]
    assert not rebuilt.missing
    return found


def fates(found: Explained) -> list[tuple[object, ...]]:
    """Return fate and place of each span of the view."""
    return [(span["fate"], span.get("from"), span.get("to")) for span in found.recipe["view"]]


def test_an_untouched_history_is_one_span_of_kept_messages() -> None:
    """REC6: nothing compacted means kept only, and no bodies."""
    history = placed([u(1), *rounds(3), u(9)])
    found = explained(history, [message for _, message in history])
    assert fates(found) == [("kept", 1, 8)]
    assert found.recipe["bodies"] == found.recipe["left_out"] == []
    assert not found.blobs and not found.warnings


def test_system_texts_and_notes_are_injected_at_their_places() -> None:
    """REC6: one item each, with its body as a blob."""
    note = Message(Role.USER, "Stop repeating.", origin="note")
    request = ModelRequest((u(1), note), ("Be brief.",))
    found = explained(placed([u(1)]), sent_list(request))
    assert [span.get("what") for span in found.recipe["view"]] == ["system", None, "note"]
    assert [span.get("by") for span in found.recipe["view"]] == ["agent", None, None]
    assert len(found.blobs) == 2


def test_a_claim_with_the_right_digest_gives_fate_and_reason() -> None:
    """Claims supply the reason where they say what was sent."""
    history = placed([u(1), a(2, None, "c1"), t(3, "c1", "long " * 100)])
    short = t(3, "c1", "[short]")
    claim = Claim("placeholder", "old", "compaction", 2, "m3", digest=sent_digest(short))
    found = explained(history, [history[0][1], history[1][1], short], [claim])
    assert fates(found) == [("kept", 1, 2), ("placeholder", 3, 3)]
    assert found.recipe["view"][1]["why"] == "old"
    assert [block for block, _ in found.recipe["bodies"]] == [0]


def test_a_false_claim_is_ignored() -> None:
    """REC3: what was sent decides; kept stays kept, and an edit is rewritten."""
    history = placed([u(1, "hello"), u(2, "world")])
    lies = [
        Claim("summarised", "lie", "compaction", 0, "m1"),
        Claim("kept", "lie", "compaction", 1, "m2"),
    ]
    found = explained(history, [u(1, "hello"), u(2, "WORLD")], lies)
    assert fates(found) == [("kept", 1, 1), ("rewritten", 2, 2)]
    assert "why" not in found.recipe["view"][1]


def test_a_filter_that_claims_without_a_digest_is_named() -> None:
    """REC2: rewritten by the layer that says so."""
    history = placed([u(1, "hello")])
    claim = Claim("rewritten", "part not shown", "memory", message_id="m1")
    found = explained(history, [u(1, "[image not shown]")], [claim])
    assert found.recipe["view"][0] == {
        "fate": "rewritten",
        "from": 1,
        "to": 1,
        "tokens": [size(u(1, "hello")), size(u(1, "[image not shown]"))],
        "by": "memory",
        "why": "part not shown",
    }


def test_what_a_filter_stored_with_the_message_needs_no_body() -> None:
    """Retrieval's text is in the store, so the record names the filter and nothing more."""
    stored = u(1, "where?").replace(model_content="where? (handbook)", rewritten_by=("retrieval",))
    found = explained(placed([stored]), [stored])
    span = found.recipe["view"][0]
    assert (span["fate"], span["by"], span["store"]) == ("rewritten", "retrieval", "model_content")
    assert not found.blobs


def test_a_message_annotated_later_is_still_rebuilt() -> None:
    """A call that sent what was said keeps saying so after the store got the other text."""
    found = explained(placed([u(1, "where?")]), [u(1, "where?")])
    later = u(1, "where?").replace(model_content="where? (handbook)", rewritten_by=("retrieval",))
    rebuilt = rebuild(found.recipe, placed([later]), found.blobs)
    assert rebuilt.sent == (canon_sent(u(1, "where?")),)


def test_a_missing_message_is_dropped_with_a_warning_unless_claimed() -> None:
    """REC2: nobody said why, so the record says just that."""
    history = placed([u(1), u(2), u(3)])
    claim = Claim("summarised", "before the cut", "compaction", 0, "m1")
    found = explained(history, [u(3)], [claim])
    assert [(s["fate"], s["why"]) for s in found.recipe["left_out"]] == [
        ("summarised", "before the cut"),
        ("dropped", "unclaimed"),
    ]
    assert found.warnings == ("unclaimed",)


def test_a_message_sent_twice_is_injected_the_second_time() -> None:
    """REC5: one original, one use."""
    found = explained(placed([u(1)]), [u(1), u(1)])
    assert fates(found) == [("kept", 1, 1), ("injected", None, None)]


def test_a_result_that_repair_made_up_is_injected_with_its_reason() -> None:
    """REC2: the memory filter's claim names it, though it has no original."""
    made_up = Message(Role.TOOL, "No result.", tool_call_id="c1", name="read")
    claim = Claim("injected", "call 'c1': no result", "memory", what="result_missing")
    history = placed([u(1), a(2, None, "c1")])
    found = explained(history, [*(m for _, m in history), made_up], [claim])
    last = found.recipe["view"][-1]
    assert (last["what"], last["by"], last["role"]) == ("result_missing", "memory", "tool")


def test_messages_without_ids_find_their_originals() -> None:
    """A tool message by its call id, others by equal form, in order."""
    history = placed([u(1, "hi"), a(2, None, "c1"), t(3, "c1"), u(4, "hi")])
    sent = [message.replace(id=None) for _, message in history]
    assert fates(explained(history, sent)) == [("kept", 1, 4)]


def test_a_summary_never_stands_for_a_stored_message() -> None:
    """What compaction wrote has no original, even if its text were the same."""
    summary = Message(Role.USER, "hi", origin="filter:compaction")
    claim = Claim("injected", "stands", "compaction", what="summary", digest=sent_digest(summary))
    found = explained(placed([u(1, "hi")]), [summary], [claim])
    assert found.recipe["view"][0]["what"] == "summary"
    assert found.recipe["left_out"][0]["fate"] == "dropped"


def test_a_hole_in_the_positions_ends_a_span() -> None:
    """Superseded positions belong to no call."""
    history = [(1, u(1)), (2, u(2)), (5, u(5))]
    found = explained(history, [m for _, m in history])
    assert fates(found) == [("kept", 1, 2), ("kept", 5, 5)]


def test_a_repaired_message_says_so() -> None:
    """The flag stands beside the fate, and parts it from its neighbours."""
    history = placed([u(1), a(2, None, "c1"), u(3), t(4, "c1")])
    sent = [m for _, m in (history[0], history[1], history[3], history[2])]
    moved = Claim("kept", "moved", "memory", message_id="m4", what="result_moved")
    found = explained(history, sent, [moved])
    assert [span.get("repaired") for span in found.recipe["view"]] == [None, "result_moved", None]


def test_bodies_before_the_watermark_recur_as_the_same_blobs() -> None:
    """REC8: 100 calls over a growing history add no block twice."""
    history = placed([u(1), *rounds(70)])
    short = [m.replace(content="[short]") if m.role is Role.TOOL else m for _, m in history]
    blobs: set[str] = set()
    for extra in range(100):
        more = [u(1_000 + n) for n in range(extra)]
        now = [*history, *placed(more, len(history) + 1)]
        found = explain(now, [*short, *more], [], size)
        blobs.update(found.blobs)
    assert len(blobs) == 3


def test_what_json_does_not_give_back_is_kept_whole() -> None:
    """A record is always exact, whatever a developer put into a message."""
    sent = assistant(None, [ToolCall("c1", "read", {"n": float("nan")})], "m2")
    found = explained(placed([u(1)]), [sent])
    assert "whole" in found.recipe and "whole" in found.warnings


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Positioned], list[Message], list[Claim]]:
    """Draw a history, a sent list that differs from it in any way, and claims, true or not."""
    history = draw(histories())
    placed_at = draw(st.integers(1, 200))
    sent = [m for m in history if draw(st.integers(0, 4))]
    for at in range(len(sent)):
        change = draw(st.sampled_from(["", "", "", "text", "id", "twice"]))
        if change == "text":
            sent[at] = sent[at].replace(content=draw(st.text(max_size=9)))
        elif change == "id":
            sent[at] = sent[at].replace(id=None)
        elif change == "twice":
            sent.insert(at, sent[at])
    sent.append(Message(Role.USER, draw(st.text(max_size=9)), origin="note"))
    claims = [
        Claim(
            draw(st.sampled_from(["kept", "dropped", "summarised", "placeholder", "injected"])),
            "why",
            draw(st.sampled_from(["compaction", "memory"])),
            message_id=draw(st.sampled_from([m.id for m in history] or [None])),
            digest=draw(st.sampled_from([None, *map(sent_digest, sent)])),
            what=draw(st.sampled_from([None, "x"])),
        )
        for _ in range(draw(st.integers(0, 4)))
    ]
    return placed(history, placed_at), sent, claims


@given(cases())
def test_rebuilding_gives_back_what_was_explained(
    case: tuple[list[Positioned], list[Message], list[Claim]],
) -> None:
    """REC4, REC5: byte for byte, each position once, each sent message once."""
    history, sent, claims = case
    found = explained(history, sent, claims)
    spans = [*found.recipe["view"], *found.recipe["left_out"]]
    at = [p for s in spans if "from" in s for p in range(s["from"], s["to"] + 1)]
    assert sorted(at) == [position for position, _ in history]
    assert len(found.items) == len(sent)
    sent_tokens = sum(span["tokens"][1] for span in found.recipe["view"])
    assert sent_tokens == found.recipe["sent"]["tokens"]


def test_system_messages_of_the_history_keep_their_place() -> None:
    """A system text of the request and a stored system message are told apart."""
    request = ModelRequest((system("stored", "m1"), user("hi", "m2")), ("asked",))
    found = explained(placed([system("stored", "m1"), user("hi", "m2")]), sent_list(request))
    assert fates(found) == [("injected", None, None), ("kept", 1, 2)]


def test_a_message_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the form of a stored message is asked for; it may be many megabytes."""
    written: list[str] = []

    def spy(value: Any) -> str:
        written.append(canonical_json(value))
        return written[-1]

    monkeypatch.setattr("backscroll.compaction.canon_forms.canonical_json", spy)
    history = [u(1), a(2, "c1"), t(3, "c1")]

    explain(placed(history), history, [], lambda message: 1)

    assert len(written) == len(set(written)) == 3
