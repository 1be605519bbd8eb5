"""What a run is made of on this worker."""

from __future__ import annotations

import json
from typing import Any

from agui_stories import CountedIds, stamped
from backscroll.agent.agent import Agent
from backscroll.agui.options import AgentRules
from backscroll.agui.plan import Stored
from backscroll.agui.reconcile import reconcile
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelProfile
from backscroll.runs.assembly import Assembly
from backscroll.runs.runner import Runner, RunTimes
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import RedisClients, connect
from backscroll.store.history import StoredHistory
from backscroll.store.keys import Keys
from backscroll.store.run_record import StartRequest
from backscroll.store.runs import RunStore
from backscroll.store.thread_log import RunLease, ThreadLog
from backscroll.store.threads import ThreadRecord
from played_model import StreamingModel
from working import agent_of, asked, bodies, events, key, run, working

RULES = AgentRules("a")


def assembly(clients: RedisClients, keys: Keys, agent: Agent, rules: AgentRules = RULES) -> Any:
    """Return an assembly of worker w."""
    log = ThreadLog(clients, keys, "w")
    return Assembly(agent, rules, log, RunStore(log), RunTimes(lease_s=7), CountedIds())


def start(by: Assembly, *texts: Any, **members: Any) -> StartRequest:
    """Return what starts a run on an unknown thread."""
    request = asked("t", "r", *texts, **members)
    plan = reconcile(request, Stored(), CountedIds(), agent_of().texts, RULES)
    return by.start(key(), request, "mark", StoredHistory(), plan, by.encoder(request))


def runner(by: Assembly, record: ThreadRecord | None = None) -> Runner:
    """Return the runner of a run on a thread with this record."""
    request = asked("t", "r", "hi")
    plan = reconcile(request, Stored(), CountedIds(), agent_of().texts, RULES)
    return by.runner(RunLease(key(), "r", 1), request, plan, record, by.encoder(request))


def test_a_start_has_everything_of_the_run() -> None:
    """The first event, the messages, the fingerprint, the title, what run it follows."""
    made = start(assembly(*_nowhere(), agent_of()), " Refund\n order 42 ", parentRunId="r0")

    event = json.loads(stamped(made.entries[0].body))
    assert [entry.type for entry in made.entries] == ["RUN_STARTED"]
    assert (event["runId"], event["parentRunId"]) == ("r", "r0")
    assert [m.id for m in made.change.added] == ["u1"] and made.change.marks == ()
    assert (made.title, made.parent_run, made.fingerprint) == ("Refund order 42", "r0", "mark")
    assert (made.agent, made.lease_s) == ("a", 7)


def test_a_long_title_is_cut_and_an_import_marked() -> None:
    """The title is the first question in one line; imported messages are marked as such."""
    first = {"id": "w", "role": "assistant", "content": "Welcome"}
    made = start(assembly(*_nowhere(), agent_of()), first, "word " * 50)

    assert len(made.title) == 80 and made.title.endswith("…")
    assert made.change.marks == ("imported",)


def test_a_thread_without_a_text_has_no_title() -> None:
    """An image says nothing that could name a thread."""
    source = {"type": "url", "value": "https://example.com/a.png", "mimeType": "image/png"}
    picture = {"id": "u1", "role": "user", "content": [{"type": "image", "source": source}]}

    assert start(assembly(*_nowhere(), agent_of()), picture).title == ""


def test_numbers_go_on_where_the_thread_was() -> None:
    """Calls, compactions and summaries are counted per thread, not per run."""
    extra = {"call": "41", "summaries": '{"aa":3}'}
    record = ThreadRecord(key(), counts={"compaction": 3}, extra=extra)
    by = assembly(*_nowhere(), agent_of())

    known, new = runner(by, record)._parts.recorder, runner(by)._parts.recorder

    assert (known.call, known._compactions, known._summaries) == (41, 3, {"aa": 3})
    assert (new.call, new._compactions, new._summaries) == (0, 0, {})


def test_compaction_gets_the_stores_of_the_host() -> None:
    """What the process would have kept is kept in Redis, written with the lease of the run."""
    compaction = Compaction(summariser=None)

    bound = runner(assembly(*_nowhere(), agent_of(compaction=compaction)))._parts.agent.compaction
    without = runner(assembly(*_nowhere(), agent_of()))._parts.agent.compaction

    assert isinstance(bound, Compaction) and bound is not compaction
    assert isinstance(bound._access.store, RedisCompactionStore)
    assert without is None


async def test_compaction_is_carried_out_and_shown(valkey_url: str, prefix: str) -> None:
    """The decision is in the log, its card on the wire, its summary stored for all."""
    profile = ModelProfile(context_window=2_000)
    model = StreamingModel([f"answer {n} " + "word " * 60 for n in range(12)], profile=profile)
    compaction = Compaction(summariser=ExtractiveSummariser())
    agent = Agent(name="a", model=model, compaction=compaction)
    rules = AgentRules("a", timeline="full")
    async with working(agent, valkey_url, prefix, agent_rules=rules) as worker:
        said: list[Any] = []
        for n in range(12):
            said = [{"id": f"q{n}", "role": "user", "content": f"question {n} " + "text " * 120}]
            await run(worker, "t", f"r{n}", *said)
        decisions = await bodies(worker, "compaction")
        cards = [e for e in await events(worker) if e["type"] == "ACTIVITY_SNAPSHOT"]
        entry = await worker.compaction.get("t")

    assert {d["result"] for d in decisions} >= {"done"}
    done = [c for c in cards if c["content"]["status"] == "done"]
    assert done and all(c["activityType"] == "backscroll.compaction" for c in cards)
    with_text = [c["content"] for c in done if "text" in c["content"]]
    assert with_text and with_text[-1]["tokens"]["window"] == 2_000
    assert entry.cache is not None and with_text[-1]["text"] == entry.cache.summary


def _nowhere() -> tuple[RedisClients, Keys]:
    """Return clients of a Redis that is not there; nothing is sent."""
    return connect("redis://localhost:1"), Keys("x")
