"""What operators do about the compaction of a thread, on a real log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.agui.refusal import RequestRefused
from backscroll.compaction.extractive import ExtractiveSummariser
from backscroll.compaction.filter import Compaction
from backscroll.compaction.store import CompactionEntry, ModelFact
from backscroll.kernel.message import assistant, user
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from backscroll.runs.call_book import CallBook
from backscroll.runs.worker import Worker
from backscroll.store.chat_memory import RedisChatMemory
from backscroll.store.compaction_store import RedisModelFacts
from deadlines import scaled
from played_model import StreamingModel, call, calls
from served import until
from till import PAY, YES, Till, resume
from working import agent_of, begun, bodies, entries, held, key, run, working

REPORT = "The report of this week holds many words and not one surprise for anybody. " * 12
ROUNDS = 14


@tool
def report(n: int) -> str:
    """Return a report."""
    return f"report {n}: {REPORT}"


class Windowed(StreamingModel):
    """A model with a small window."""

    def __init__(self, script: Any, window: int = 8_000) -> None:
        super().__init__(script)
        self.profile = ModelProfile(window, "configured")


def compacting(*more: Any, rounds: int = ROUNDS, **options: Any) -> Agent:
    """Return an agent that asks for so many reports in its first run."""
    script = [*(calls(call("report", {"n": n})) for n in range(rounds)), "done", *more]
    compaction = Compaction(ExtractiveSummariser(), **options)
    return Agent(
        name="a",
        model=Windowed(script),
        tools=[report],
        compaction=compaction,
        max_iterations=rounds + 2,
    )


@asynccontextmanager
async def told(agent: Agent, url: str, prefix: str) -> AsyncIterator[Worker]:
    """Give a worker with a thread on which the agent's reports were made."""
    async with working(agent, url, prefix) as worker:
        await run(worker, "t", "r1", "tell me all")
        yield worker


async def until_noted(worker: Worker, action: str) -> dict[str, Any]:
    """Return the entry of an action as soon as it is in the log."""
    async with asyncio.timeout(scaled(10)), worker.hub.watch(key()) as feed:
        cursor = 0
        while True:
            for item in await feed.after(cursor):
                cursor = item.seq
                if item.entry.kind == "compaction":
                    body: dict[str, Any] = json.loads(item.entry.body)
                    if body.get("action") == action:
                        return body


async def refusal(work: Any) -> RequestRefused:
    """Return why an action is refused."""
    with pytest.raises(RequestRefused) as error:
        await work
    return error.value


async def test_a_dry_run_has_the_form_of_a_call(valkey_url: str, prefix: str) -> None:
    """OPR1: spans and budget as of a call that was made; the log has not grown."""
    async with told(compacting("again"), valkey_url, prefix) as worker:
        before = await entries(worker)
        shown = await worker.operator.dry_run(key())
        untouched = await entries(worker) == before
        wide = await worker.operator.dry_run(key(), window=200_000)
        forced = await worker.operator.dry_run(key(), forced=True)

    attempt = shown["attempts"][0]
    assert untouched and shown["call"] == ROUNDS + 2
    assert {"spans", "budget", "sent", "history"} <= attempt.keys()
    assert attempt["budget"]["window"] == 8_000
    assert wide["attempts"][0]["budget"]["window"] == 200_000
    assert {span["fate"] for span in wide["attempts"][0]["spans"]} == {"kept"}
    assert forced["attempts"][0]["attempt"] == 2
    assert forced["attempts"][0]["sent"]["tokens"] < attempt["sent"]["tokens"]


async def test_compact_now_makes_an_entry_with_the_name(valkey_url: str, prefix: str) -> None:
    """OPR5: one summary with the breaker open; failures are forgotten, the next call uses it."""
    async with told(compacting("again"), valkey_url, prefix) as worker:
        await worker.compaction.put("t", CompactionEntry(failures=3, opened_ms=2**45))
        await worker.operator.compact(key(), "the reports", "ann")
        done = await until_noted(worker, "compact")
        entry = await worker.compaction.get("t")
        await run(worker, "t", "r2", "tell me all", "more")
        numbers = [body["compaction"] for body in await bodies(worker, "compaction")]
        newest = await CallBook(worker.log).call(key(), None)

    assert (done["trigger"], done["by"], done["focus"]) == ("manual", "ann", "the reports")
    assert done["result"] == "done" and done["summary"]["source"] in ("fresh", "merged")
    assert (entry.failures, entry.cache is not None) == (0, True)
    assert numbers == list(range(1, len(numbers) + 1))
    assert newest is not None and newest.attempts[0].record["compaction"] == done["compaction"]


async def test_a_busy_thread_is_not_compacted(valkey_url: str, prefix: str) -> None:
    """The refusal names the run; an unknown thread and an agent without compaction are refused."""
    agent = agent_of(held(), compaction=Compaction(None))
    async with working(agent, valkey_url, prefix) as worker:
        await begun(worker)
        busy = await refusal(worker.operator.compact(key(), "", "ann"))
        unknown = await refusal(worker.operator.compact(key("other"), "", "ann"))
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        without = await refusal(worker.operator.reset(key(), "ann"))

    assert (busy.code, busy.details) == ("thread_busy", {"run": "r1"})
    assert unknown.code == without.code == "not_found"


async def test_what_a_pause_waits_for_is_never_covered(valkey_url: str, prefix: str) -> None:
    """GRP5: nor what stands behind it, though questions came since."""
    script = [*(calls(call("report", {"n": n})) for n in range(ROUNDS)), calls(PAY)]
    agent = compacting().replace(model=Windowed(script), tools=[report, *Till().tools()])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "tell me all, then pay ann")
        position = (await worker.history.read(key())).live[-1].position
        since = [assistant(f"{n}. {REPORT}", id=f"s{n}") for n in range(20)]
        await RedisChatMemory(worker.log).add("t", [user("and the rest?", "u2"), *since])
        await worker.operator.compact(key(), "", "ann")
        done = await until_noted(worker, "compact")

    assert done["cut"]["position"] <= position


async def test_a_pause_nobody_can_read_is_not_compacted(valkey_url: str, prefix: str) -> None:
    """pause_unreadable: what must not be covered is not known, so nothing is; both say so."""
    agent = compacting().replace(model=Windowed([calls(PAY)]), tools=[*Till().tools()])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "pay ann")
        await worker.clients.write.hset(worker.keys.pause(key()), "open", b'{"version":99}')
        by_hand = await refusal(worker.operator.compact(key(), "", "ann"))
        dry = await refusal(worker.operator.dry_run(key()))

    assert by_hand.code == dry.code == "pause_unreadable"


async def test_a_paused_thread_is_compacted_by_hand(valkey_url: str, prefix: str) -> None:
    """The resume goes on from the pending call, which a dry run shows as kept."""
    till = Till()
    script = [*(calls(call("report", {"n": n})) for n in range(ROUNDS)), calls(PAY), "paid it"]
    agent = compacting().replace(model=(model := Windowed(script)), tools=[report, *till.tools()])
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "tell me all, then pay ann")
        await worker.operator.compact(key(), "", "ann")
        done = await until_noted(worker, "compact")
        shown = await worker.operator.dry_run(key())
        found = await run(worker, "t", "r2", "tell me all", resume=resume(pay=YES))
        position = (await worker.history.read(key())).live[-3].position

    assert done["result"] == "done" and done["covers"][1] < position
    spans = [s for s in shown["attempts"][0]["spans"] if position in range_of(s)]
    assert [span["fate"] for span in spans] == ["kept"]
    assert found[-1]["outcome"] == {"type": "success"} and till.done == ["pay ann 10"]
    sent = model.requests[-1].messages
    assert sent[0].text.startswith("<earlier-conversation>") and sent[-1].text == "paid"
    assert sent[-2].tool_calls[0].id == "call_pay"


def range_of(span: dict[str, Any]) -> range:
    """Return the positions of the history that a span covers."""
    first, last = span.get("history", (1, 0))
    return range(first, last + 1)


async def test_two_operators_at_once(valkey_url: str, prefix: str) -> None:
    """OPR8: one compaction is made, the other operator is told."""
    async with told(compacting(), valkey_url, prefix) as worker:
        await worker.operator.compact(key(), "", "ann")
        second = await refusal(worker.operator.compact(key(), "", "bob"))
        await until_noted(worker, "compact")

    assert second.code == "thread_busy"


async def test_pins_hold_in_runs(valkey_url: str, prefix: str) -> None:
    """OPR2, GRP6: a pinned result is in the view of the next run, as an entry says."""
    async with told(compacting("again", rounds=30), valkey_url, prefix) as worker:
        history = (await worker.history.read(key())).live
        result = history[2].message
        assert result.id is not None
        await worker.operator.pin(key(), result.id, "ann")
        await run(worker, "t", "r2", "tell me all", "more")
        call_of = await CallBook(worker.log).call(key(), None)
        number = await worker.operator.unpin(key(), result.id, "ann")
        gone = await refusal(worker.operator.unpin(key(), result.id, "ann"))
        noted = (await bodies(worker, "compaction"))[-1]

    assert call_of is not None
    spans = [span for span in call_of.attempts[0].record["view"] if "from" in span]
    fates = {n: s["fate"] for s in spans for n in range(s["from"], s["to"] + 1)}
    assert [fates.get(n) for n in (2, 3)] == ["kept", "kept"]
    assert "kept" not in [fates.get(n) for n in (5, 7)]
    assert (noted["action"], noted["by"], noted["compaction"]) == ("unpin", "ann", number)
    assert gone.code == "not_found"


async def test_edit_undo_and_forget(valkey_url: str, prefix: str) -> None:
    """OPR3, OPR4: the summary is replaced, gone back from and forgotten; each is an entry."""
    async with told(compacting(), valkey_url, prefix) as worker:
        desk = worker.operator
        await desk.compact(key(), "", "ann")
        await until_noted(worker, "compact")
        cache = (await worker.compaction.get("t")).cache
        assert cache is not None
        stale = await refusal(desk.edit(key(), "Other.", "stale", "ann"))
        await desk.edit(key(), "Only this.", stale.details["sha256"], "ann")
        edited = (await worker.compaction.get("t")).cache
        blank = await refusal(desk.edit(key(), " ", stale.details["sha256"], "ann"))
        await desk.undo(key(), stale.details["sha256"], "ann")
        back = (await worker.compaction.get("t")).cache
        await desk.forget(key(), "ann")
        empty = await worker.compaction.get("t")
        told_of = [body.get("action") for body in await bodies(worker, "compaction")]

    assert stale.code == blank.code == "summary_changed"
    assert edited is not None and edited.summary.startswith("Only this.\n<facts>\n")
    assert back is not None and back.summary == cache.summary
    assert (empty.cache, empty.ring) == (None, ())
    assert told_of[-3:] == ["edit", "undo", "forget"]


async def test_settings_of_one_thread(valkey_url: str, prefix: str) -> None:
    """OPR6: off is off for the next run; what the constructor refuses is refused with its name."""
    agent = compacting("again", rounds=4)
    async with told(agent, valkey_url, prefix) as worker:
        wrong = await refusal(worker.operator.configure(key(), {"trigger_ratio": 3}, "ann"))
        await worker.operator.configure(key(), {"enabled": False}, "ann")
        await worker.operator.reset(key(), "ann")
        off = await worker.operator.dry_run(key())
        await run(worker, "t", "r2", "tell me all", "more")
        newest = await CallBook(worker.log).call(key(), None)

    assert (wrong.code, wrong.details["problems"][0]["path"]) == ("invalid_input", "trigger_ratio")
    assert "decision" not in off and newest is not None
    assert "budget" not in newest.attempts[0].record


async def test_a_learned_limit_is_cleared(valkey_url: str, prefix: str) -> None:
    """At every endpoint of the model; where none was learned, that is said."""
    async with working(agent_of("x"), valkey_url, prefix) as worker:
        facts = RedisModelFacts(worker.clients, worker.keys)
        await facts.put("p|http://a|m", ModelFact(1.1, 4, 9_000, 5.0, 20_000))
        await facts.put("p|http://a|other", ModelFact(1.1, 4, 9_000, 5.0))
        cleared = await worker.operator.clear_limit("p", "m", "ann")
        again = await refusal(worker.operator.clear_limit("p", "m", "ann"))
        left = await facts.get("p|http://a|m"), await facts.get("p|http://a|other")

    assert cleared == 1 and again.code == "not_found"
    assert left[0] == ModelFact(1.1, 4) and left[1].limit == 9_000


async def test_a_compaction_that_breaks_is_logged(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread can be compacted again afterwards."""

    def instructions(context: Any) -> str:
        raise ValueError("no instructions today")

    agent = agent_of("x", compaction=Compaction(None))
    async with working(agent, valkey_url, prefix) as worker:
        await run(worker, "t", "r1", "hi")
        worker.operator._of.agent = agent.replace(instructions=instructions)
        await worker.operator.compact(key(), "", "ann")
        await until(lambda: not worker.operator._compacting, "the attempt is over")

    assert "could not be compacted" in caplog.text
