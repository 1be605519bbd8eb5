"""The client's list against the stored history: what to store, what to supersede, what to run.

The store is the authority. Nothing here is read or written: the history comes in, a plan goes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backscroll.agui.client_list import ClientList, classify, without_repeats
from backscroll.agui.imported import import_messages
from backscroll.agui.input import RunInput
from backscroll.agui.messages import is_visible
from backscroll.agui.options import AgentRules
from backscroll.agui.paused import DISCARDED, decide, left, with_pause
from backscroll.agui.plan import Action, Plan, Stored, abandoned, answer_of, refusal_of
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.message import Message, Role
from backscroll.kernel.ports import Ids
from backscroll.kernel.request import Note
from backscroll.kernel.texts import Texts


def reconcile(request: RunInput, stored: Stored, ids: Ids, texts: Texts, rules: AgentRules) -> Plan:
    """Return what the request comes to; raises RequestRefused when it comes to nothing."""
    sent, notes = without_repeats(request.messages)
    if not stored.is_known:
        plan = _import(request, sent, ids, texts, rules)
    else:
        client = classify(sent, stored.history, rules, stored.waiting.record)
        plan = _known(request, client, stored, ids, texts)
    return replace(plan, notes=(*request.notes, *notes, *plan.notes))


def _import(
    request: RunInput, sent: Sequence[Message], ids: Ids, texts: Texts, rules: AgentRules
) -> Plan:
    kept = [m for m in sent if m.role is not Role.SYSTEM or rules.accept_system == "keep"]
    said = [m for m in kept if m.role is not Role.SYSTEM]
    if request.resume:
        raise refusal_of(request, "not_paused", "nothing of this thread waits for an answer")
    offered = frozenset(tool.name for tool in request.tools)
    made = import_messages(kept, offered, ids, texts.no_result)
    last = said[-1] if said else None
    if last is not None and last.role is Role.TOOL and last.id not in {m.id for m in made.messages}:
        raise _unknown_call(request, last)
    if last is None or last.role is Role.ASSISTANT:
        raise _nothing(request)
    settled_ids = {message.id for message in made.settled}
    action: Action = "run" if last.role is Role.USER else "continue"
    held = len(made.messages) if request.options.snapshot == "always" else None
    return Plan(
        "nothing" if made.pending else action,
        store=made.messages,
        echo=tuple(m for m in made.messages if m.id not in settled_ids),
        settled=made.settled,
        pending=tuple(call.id for call in made.pending),
        is_import=True,
        held=held,
    )


def _known(request: RunInput, client: ClientList, stored: Stored, ids: Ids, texts: Texts) -> Plan:
    waiting = stored.waiting
    decided = decide(request, waiting, bool(client.results or client.new))
    plan = with_pause(request, client, waiting, decided, ids, texts)
    if plan is None:
        plan = _what_to_do(request, client, ids, texts)
        gone = (DISCARDED,) if waiting.record.lost else ()
        plan = replace(plan, pause=left(waiting, request.run_id, {}), notes=(*plan.notes, *gone))
    base = client.history[: plan.supersede_from]
    wish = request.options.snapshot
    behind = wish == "always" or (wish == "auto" and _is_behind(client, len(base)))
    return replace(
        plan,
        history=base,
        held=_held((*base, *plan.store, *plan.said), client) if behind else None,
        notes=(*client.notes(), *decided.notes, *plan.notes),
    )


def _what_to_do(request: RunInput, client: ClientList, ids: Ids, texts: Texts) -> Plan:
    if client.results or client.new:
        return _with_news(client, ids, texts)
    last = client.last
    if last is None:
        return _as_it_stands(request, client, ids, texts)
    name = last.id or ""
    if name in client.duplicates:
        raise _answered(request, client, client.duplicates[name])
    place = client.known.get(name)
    if place is not None and client.history[place].role is Role.USER:
        return _again(request, client, place)
    if place is not None and client.history[place].role is Role.TOOL:
        if place < client.batch.asker or client.batch.asker < 0:
            raise _answered(request, client, place)
        return _as_it_stands(request, client, ids, texts)
    if place is None and last.role is Role.TOOL and not _knows_call(client, last):
        raise _unknown_call(request, last)
    raise _nothing(request)


def _with_news(client: ClientList, ids: Ids, texts: Texts) -> Plan:
    """Plan for a list that brings results or new user messages; calls nobody answered are settled.

    While only results come and some are missing, the run has nothing to do.
    """
    batch = client.batch
    results = [
        answer_of(call, client.results[call.id], texts)
        for call in batch.pending
        if call.id in client.results
    ]
    missing = [call for call in batch.pending if call.id not in client.results]
    if missing and not client.new:
        return Plan(
            "nothing",
            store=tuple(results),
            echo=tuple(results),
            pending=tuple(call.id for call in missing),
        )
    settled = abandoned([*batch.dangling, *missing], ids, texts)
    return Plan(
        "continue" if results else "run",
        store=(*results, *settled, *client.new),
        echo=(*results, *client.new),
        settled=settled,
    )


def _again(request: RunInput, client: ClientList, place: int) -> Plan:
    """Plan for a list that ends with a user message which is stored: it is answered once more."""
    asked = client.history[place]
    if any(message.id == asked.id for message in client.edited):
        message = f"message {asked.id} is stored with other content; an edit needs an id of its own"
        raise refusal_of(request, "message_conflict", message, messageId=asked.id)
    if place == len(client.history) - 1:
        return Plan("run")
    if not request.options.regenerate:
        raise _answered(request, client, place + 1)
    gone = len(client.history) - place - 1
    text = f"{gone} messages after {asked.id} are superseded: it is answered again"
    return Plan("run", supersede_from=place + 1, notes=(Note("superseded", text),))


def _as_it_stands(request: RunInput, client: ClientList, ids: Ids, texts: Texts) -> Plan:
    """Plan for a history that ends with a question or with the results of a whole batch."""
    history, batch = client.history, client.batch
    if history and history[-1].role is Role.USER:
        return Plan("run")
    if not batch.calls or batch.pending or history[-1].role is not Role.TOOL:
        raise _nothing(request, pending=[call.id for call in batch.pending] or None)
    settled = abandoned(batch.dangling, ids, texts)
    return Plan("continue", store=settled, settled=settled)


def _is_behind(client: ClientList, live: int) -> bool:
    """Say whether the history has something the client should have sent along and did not."""
    known = [at for name in _names(client) if (at := client.known.get(name, live)) < live]
    last = known[-1] if known else -1
    places = set(known)
    between = range(min(places, default=live), max(places, default=-1))
    missed = (at for at in between if client.history[at].role is Role.USER and at not in places)
    unseen = any(is_visible(message) for message in client.history[last + 1 : live])
    return unseen or client.has_invented or any(True for _ in missed)


def _held(history: Sequence[Message], client: ClientList) -> int:
    """Return how long a beginning of the history the list holds in the same order, at least 1."""
    listed = iter(_names(client))
    count = 0
    while count < len(history) and (history[count].id or "") in listed:
        count += 1
    return max(count, 1)


def _names(client: ClientList) -> list[str]:
    return [message.id or "" for message in client.sent]


def _knows_call(client: ClientList, result: Message) -> bool:
    return any(call.id == result.tool_call_id for m in client.history for call in m.tool_calls)


def _nothing(request: RunInput, **details: object) -> RequestRefused:
    message = "nothing to run: the list ends with no question and no result that is new"
    return refusal_of(request, "nothing_to_run", message, **details)


def _answered(request: RunInput, client: ClientList, place: int) -> RequestRefused:
    name = client.history[place].id
    message = f"answered already: the thread holds {name}"
    return refusal_of(request, "already_answered", message, messageId=name)


def _unknown_call(request: RunInput, last: Message) -> RequestRefused:
    message = f"message {last.id} answers {last.tool_call_id}, a call this thread does not know"
    return refusal_of(request, "unknown_tool_call", message, toolCallId=last.tool_call_id)
