"""A request to a thread whose turn waits: what it answers, what stays open, what goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backscroll.agent.answers import PauseAnswer, response_to
from backscroll.agui.client_list import ClientList
from backscroll.agui.input import ResumeEntry, RunInput
from backscroll.agui.plan import Plan, Waiting, abandoned, answer_of, refusal_of
from backscroll.agui.questions import answer_to, problem_of
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.kernel.message import Message, Role, ToolCall, tool_result
from backscroll.kernel.ports import Ids
from backscroll.kernel.request import Note
from backscroll.kernel.texts import Texts
from backscroll.kernel.turn import Pause, PauseItem, ToolRecord
from backscroll.store.pause_record import Decision, PauseChange, Question

GIVEN = Decision("resolved")
ABANDONED = Decision("cancelled", {"reason": "abandoned"})
DISCARDED = Note("pause_discarded", "the client gave up what the thread waited for")


@dataclass(frozen=True, slots=True)
class Decided:
    """What the entries of a request decide, and notes on those that decide nothing."""

    made: Mapping[str, Decision] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def decide(request: RunInput, waiting: Waiting, brings_more: bool) -> Decided:
    """Check every entry before anything changes; raises RequestRefused naming every problem."""
    made: dict[str, Decision] = {}
    notes: list[Note] = []
    problems: list[Problem] = []
    stale: list[str] = []
    items = {item.id: item for item in waiting.record.open_items}
    for at, entry in enumerate(request.resume):
        name, question = entry.interrupt_id, waiting.record.questions.get(entry.interrupt_id)
        decision = Decision(entry.status, entry.payload, waiting.by)
        item = items.get(name)
        if item is not None:
            problem = problem_of(f"resume[{at}]", item, entry, waiting)
            if problem is not None:
                problems.append(problem)
            made[name] = decision
            continue
        held = question.decision if question else None
        if question is not None and held is not None and not held.is_same(decision):
            raise answered_already(request, question)
        stale.append(name)
        text = f"an answer to {name}, which is not an open question, was ignored"
        notes.append(Note("stripped", text))
    if problems:
        raise RequestRefused.of_problems(problems, threadId=request.thread_id, runId=request.run_id)
    if stale and not (made or brings_more):
        question = waiting.record.questions.get(stale[0])
        raise _nothing_open(request, waiting, question, stale[0])
    return Decided(made, tuple(notes))


def with_pause(
    request: RunInput,
    client: ClientList,
    waiting: Waiting,
    decided: Decided,
    ids: Ids,
    texts: Texts,
) -> Plan | None:
    """Return the plan for a request to a paused thread; None when it leaves the pause alone."""
    record, pause = waiting.record, waiting.record.pause
    if pause is None:
        return None
    open_now = [item for item in record.open_questions if item.id not in decided.made]
    answered = [call for call in client.batch.pending if call.id in client.results]
    replies = tuple(answer_of(call, client.results[call.id], texts) for call in answered)
    made = {**decided.made, **{call.id: GIVEN for call in answered}}
    missing = [c for c in client.batch.pending if c.id not in {**record.decisions, **made}]
    if request.options.abandon and (open_now or missing):
        return _abandon(request, pause, client, waiting, ids, texts)
    if open_now:
        _check_covered(request, client, open_now)
    if missing and not (open_now or made or client.new):
        return None
    if open_now or (missing and not client.new):
        return Plan(
            "nothing",
            store=replies,
            echo=replies,
            pending=tuple(call.id for call in missing),
            questions=tuple(open_now),
            expires_at=pause.expires_at,
            pause=PauseChange(record.revision, made, open_items=len(open_now) + len(missing)),
        )
    kept = _kept(pause, client, {**record.decisions, **decided.made}, ids, texts)
    settled = (*kept, *abandoned(missing, ids, texts))
    plan = Plan("run")
    if made or record.decisions:
        decisions = {**record.decisions, **made}
        plan = _going_on(pause, client, decisions, (*replies, *settled))
    is_asked = bool(plan.resumes and plan.resumes.items)
    said = (*record.said, *client.new)
    return replace(
        plan,
        store=(*replies, *settled, *(() if is_asked else said)),
        echo=(*replies, *client.new),
        settled=settled,
        said=said if is_asked else (),
        pause=left(waiting, request.run_id, made),
    )


def left(waiting: Waiting, run_id: str, decided: Mapping[str, Decision]) -> PauseChange | None:
    """Return how a pause is taken out of its thread; what nobody decided about is given up."""
    record = waiting.record
    if record.pause is None:
        lost = PauseChange(record.revision, taken=record.lost, taken_by=run_id)
        return lost if record.lost else None
    open_items = {item.id: ABANDONED for item in record.open_items}
    return PauseChange(
        record.revision, {**open_items, **decided}, taken=record.pause.id, taken_by=run_id
    )


def answered_already(request: RunInput, question: Question) -> RequestRefused:
    """Return the refusal of an answer to what was decided otherwise, with what holds."""
    decision = question.decision
    assert decision is not None
    told: dict[str, object] = {"status": decision.status}
    if decision.payload is not None:
        told["payload"] = decision.payload
    if decision.run:
        told["runId"] = decision.run
    return refusal_of(
        request,
        "already_answered",
        f"{question.id} was answered already: {decision.status}",
        interruptId=question.id,
        decision=told,
    )


def _check_covered(request: RunInput, client: ClientList, open_now: Sequence[PauseItem]) -> None:
    """Refuse a request that leaves questions open, unless it brings results and nothing else."""
    names = [item.id for item in open_now]
    is_about_them = any(message.tool_call_id in names for message in client.covered)
    if client.results and not (client.new or request.resume or is_about_them):
        return
    code = "interrupt_incomplete" if request.resume else "awaiting_resume"
    message = f"the thread waits for an answer to {', '.join(names)}"
    told = [{"interruptId": item.id, "kind": item.kind, "toolName": item.tool} for item in open_now]
    raise refusal_of(request, code, message, open=told)


def _abandon(
    request: RunInput,
    pause: Pause,
    client: ClientList,
    waiting: Waiting,
    ids: Ids,
    texts: Texts,
) -> Plan:
    """Return the plan that discards a pause; without a new message the run ends at once."""
    answered = {message.tool_call_id for message in client.history}
    settled = abandoned((call for call in pause.calls if call.id not in answered), ids, texts)
    said = (*waiting.record.said, *client.new)
    return Plan(
        "run" if said else "nothing",
        store=(*settled, *said),
        echo=tuple(client.new),
        settled=settled,
        notes=(DISCARDED,),
        pause=left(waiting, request.run_id, {}),
    )


def _kept(
    pause: Pause,
    client: ClientList,
    decisions: Mapping[str, Decision],
    ids: Ids,
    texts: Texts,
) -> tuple[Message, ...]:
    """Return the results that decisions made in the client's place; they are not stored yet."""
    answered = {message.tool_call_id for message in client.history}
    found = []
    for item in pause.items:
        decision = decisions.get(item.id)
        if item.kind != "client" or decision is None or item.id in answered:
            continue
        answer = answer_to(item, _entry(item, decision))
        response = response_to(item, answer, None, texts) if answer else None
        if response is not None:
            new_id = ids.new("msg")
            found.append(
                tool_result(
                    item.id, item.tool, response.content, id=new_id, outcome=response.outcome
                )
            )
    return tuple(found)


def _going_on(
    pause: Pause,
    client: ClientList,
    decisions: Mapping[str, Decision],
    results: Sequence[Message],
) -> Plan:
    """Return the plan of a turn that goes on: what people answered, and what is done already."""
    given = {m.tool_call_id: m for m in (*client.history, *results) if m.role is Role.TOOL}
    done = {record.call_id for record in pause.records}
    calls = {call.id: call for call in pause.calls}
    records = [
        _record(calls[item.id], given[item.id])
        for item in pause.items
        if item.kind == "client" and item.id not in done
    ]
    asked = tuple(item for item in pause.items if item.kind != "client")
    answers: dict[str, PauseAnswer] = {}
    for item in asked:
        answer = answer_to(item, _entry(item, decisions[item.id]))
        assert answer is not None, "a decision is checked before it is made"
        answers[item.id] = answer
    # What was answered in time counts, also when it is carried out later.
    resumes = pause.replace(items=asked, records=(*pause.records, *records), expires_at=None)
    return Plan("continue", resumes=resumes, answers=answers, expires_at=pause.expires_at)


def _entry(item: PauseItem, decision: Decision) -> ResumeEntry:
    return ResumeEntry(item.id, decision.status, decision.payload)


def _record(call: ToolCall, result: Message) -> ToolRecord:
    return ToolRecord(call.id, call.name, call.args, result.content, result.outcome or "ok")


def _nothing_open(
    request: RunInput, waiting: Waiting, question: Question | None, name: str
) -> RequestRefused:
    """Return the refusal of an answer that finds nothing to answer."""
    if question is not None:
        return answered_already(request, question)
    if waiting.record.pause is None:
        return refusal_of(request, "not_paused", "nothing of this thread waits for an answer")
    message = f"the thread has no question {name}"
    return refusal_of(request, "interrupt_unknown", message, interruptId=name)
