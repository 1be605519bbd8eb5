"""The call record as a whole: numbers, hashes, parts, stable places."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from backscroll.compaction.call_record import CallPlace, CallRecord, make_record, merge_plans
from backscroll.compaction.canon_forms import canon_sent, prefix_hashes, sent_digest
from backscroll.compaction.rebuild import rebuild_request, sent_bytes
from backscroll.compaction.tokens import Sizes, estimate_message
from backscroll.kernel.message import Message, Role
from backscroll.kernel.model import ModelOptions, ModelProfile, ModelRequest
from backscroll.kernel.request import CallStart, Claim, ViewPlanned
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai import OpenAIModel
from compaction.histories import a, rounds, t, u

TOOL = ToolSpec("read", "Read a file.", {"type": "object", "properties": {}})
HISTORY = list(enumerate([u(1), *rounds(2), u(6, "next")], 1))


class Bare:
    """A model written by hand: it tells no bytes."""

    name, provider, profile = "m", "mine", ModelProfile()


def made(
    request: ModelRequest,
    plan: ViewPlanned = ViewPlanned(()),  # noqa: B008  # a value
    model: Any = None,
    place: CallPlace = CallPlace(41, 2, "r7", 3, "w2", 5, 1),  # noqa: B008  # a value
) -> CallRecord:
    """Return the record of a request over HISTORY."""
    start = CallStart("msg_1", model or Bare(), request, True)
    return make_record(place, start, plan, HISTORY, Sizes())


def whole() -> ModelRequest:
    """Return a request that sends HISTORY as it is."""
    return ModelRequest(tuple(message for _, message in HISTORY), ("Be brief.",), (TOOL,))


def test_a_record_says_where_its_call_stands() -> None:
    """Call, attempt, run, iteration, worker, and the history it was made from."""
    record = made(whole()).record
    names = ("v", "call", "attempt", "run", "iteration", "worker", "compaction")
    assert [record[name] for name in names] == [1, 41, 2, "r7", 3, "w2", 5]
    assert record["history"] == {
        "messages": 6,
        "last": 6,
        "tokens": sum(span["tokens"][0] for span in record["view"]),
        "sha256": prefix_hashes([m for _, m in HISTORY])[-1],
        "rewrites": 1,
    }


def test_a_record_is_json() -> None:
    """It is stored as it is, and so are its blobs."""
    record = made(whole()).record
    assert json.loads(json.dumps(record)) == record


def test_the_hash_is_over_the_list_that_was_sent() -> None:
    """REC1: system texts and notes included, as one canonical array."""
    note = Message(Role.USER, "note", origin="note")
    request = ModelRequest((u(1), note), ("Be brief.",))
    record = made(request).record
    system = '{"role":"system","content":"Be brief."}'
    data = sent_bytes([system, canon_sent(u(1)), canon_sent(note)])
    assert record["sent"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert (record["sent"]["messages"], record["sent"]["bytes"]) == (3, len(data))


def test_the_request_body_is_hashed_and_can_be_written_again() -> None:
    """REC1: the wire's own function gives the same bytes from the rebuilt request."""
    model = OpenAIModel("gpt-x", base_url="http://127.0.0.1:1/v1", api_key="sk-secret-key")
    sent = (*whole().messages[:4], t(5, "c2", "cut"), u(6, "next"))
    request = ModelRequest(sent, ("A",), (TOOL,), options=ModelOptions(temperature=0))
    found = made(request, model=model)

    back = rebuild_request(found.record, HISTORY, found.blobs)

    body = model.encode(back.request, True)
    assert body == model.encode(request, True)
    assert found.record["wire_sha256"] == hashlib.sha256(body).hexdigest()
    assert found.record["model"]["wire"] == model.wire
    setup = json.loads(found.blobs[found.record["model"]["setup"]])
    assert setup == json.loads(json.dumps(model.setup(Texts())))
    assert b"sk-secret-key" not in b"".join(found.blobs.values())


def test_a_model_that_tells_no_bytes_has_no_wire_hash() -> None:
    """Its record is exact in messages all the same."""
    record = made(whole()).record
    assert "wire_sha256" not in record
    assert record["model"] == {"provider": "mine", "name": "m"}
    other = made(ModelRequest((u(1),), options=ModelOptions(model="n"))).record
    assert other["model"]["name"] == "n"


def test_the_parts_add_up_to_what_was_sent() -> None:
    """REC5: by kind, with counts; tools stand beside the messages."""
    summary = Message(Role.USER, "sum", origin="filter:compaction")
    claim = Claim("injected", "", "compaction", what="summary", digest=sent_digest(summary))
    note = Message(Role.USER, "note", origin="note")
    request = ModelRequest((summary, *whole().messages, note), ("Be brief.",), (TOOL,))
    parts = made(request, ViewPlanned((claim,))).record["sent"]["parts"]
    assert {name: count for name, (_, count) in parts.items()} == {
        "system": 1, "summary": 1, "messages": 4, "results": 2, "notes": 1, "tools": 1,
    }  # fmt: skip
    record = made(request, ViewPlanned((claim,))).record
    tokens = sum(tokens for name, (tokens, _) in parts.items() if name != "tools")
    assert tokens == record["sent"]["tokens"]
    assert record["view"][1]["compaction"] == 5


def test_sizes_are_estimates_under_the_ratio_of_the_plan() -> None:
    """A planned size is taken as it is, another is counted the same way."""
    claim = Claim("kept", "", "compaction", 0, "m1", digest=sent_digest(u(1)), tokens=(7, 7))
    plan = ViewPlanned((claim,), {"estimate": {"counter": "pieces", "ratio": 2.0, "view": 7}})
    record = made(ModelRequest((u(1), u(6, "next"))), plan).record
    raw = estimate_message(u(6, "next"), ModelProfile(), Sizes().counter)
    assert record["sent"]["tokens"] == 7 + 2 * raw


def test_planned_numbers_are_kept_with_both_kinds_of_warnings() -> None:
    """Budget, estimate, cache and prefix are the plan's."""
    facts = {"budget": {"window": 9}, "prefix": None, "warnings": ["window_assumed"]}
    record = made(ModelRequest((u(1),)), ViewPlanned((), facts)).record
    assert record["budget"] == {"window": 9}
    assert record["prefix"] is None
    assert record["warnings"] == ["window_assumed", "unclaimed"]


def test_stable_places_count_in_the_sent_list() -> None:
    """System text first; a filter that changed the list before them empties them."""
    sent = whole().messages
    claims = tuple(Claim("kept", "", "compaction", digest=sent_digest(m)) for m in sent)
    plan = ViewPlanned(claims, {"stable": [0, 2]})
    assert made(whole(), plan).record["stable"] == [0, 1, 3]
    changed = ModelRequest((u(99), *sent), ("Be brief.",))
    assert made(changed, plan).record["stable"] == []
    assert made(whole()).record["stable"] == [0]


def test_reports_of_several_layers_are_one() -> None:
    """Claims in order, facts of the later one on top."""
    one = ViewPlanned((Claim("kept", "a", "memory"),), {"x": 1, "y": 1})
    two = ViewPlanned((Claim("kept", "b", "compaction"),), {"y": 2})
    merged = merge_plans([one, two])
    assert [claim.why for claim in merged.claims] == ["a", "b"]
    assert merged.facts == {"x": 1, "y": 2}


def test_an_empty_history_has_a_record() -> None:
    """A call without a conversation: everything is injected."""
    start = CallStart("msg_1", Bare(), ModelRequest((a(1, "hi"),)), False)  # type: ignore[arg-type]
    record = make_record(CallPlace(1), start, ViewPlanned(()), [], Sizes()).record
    assert record["history"]["last"] == 0
    assert [span["fate"] for span in record["view"]] == ["injected"]
    assert "compaction" not in record and "run" not in record
