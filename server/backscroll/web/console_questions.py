"""Questions for people: listed for operators, decided by operators and by clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from backscroll.agui.control import Answer, parse_answer
from backscroll.agui.refusal import RequestRefused
from backscroll.agui.refused import refusal_notice
from backscroll.kernel.canon import canonical_json, clean_text
from backscroll.store.keys import ThreadKey
from backscroll.store.pause_record import Question
from backscroll.web.answers import json_answer, json_body, services_of, thread_of
from backscroll.web.services import Services

THREADS = 1000


def question_routes(thread: str) -> list[BaseRoute]:
    """Return the routes of questions; `thread` is the path of a thread."""
    return [
        Route("/questions", list_open),
        Route(f"{thread}/questions", list_questions),
        Route(f"{thread}/questions/{{interrupt}}", decide, methods=["POST"]),
    ]


async def list_open(request: Request) -> Response:
    """Return what all threads wait for, calls of pages included, the oldest first."""
    return json_answer({"questions": await open_questions(services_of(request))})


async def list_questions(request: Request) -> Response:
    """Return everything a thread ever asked, open and decided, in the order it was asked."""
    return json_answer({"questions": await questions_of(services_of(request), thread_of(request))})


async def decide(request: Request) -> Response:
    """Decide one question in an operator's name; the same decision again changes nothing."""
    services, thread = services_of(request), thread_of(request)
    name = unquote(request.path_params["interrupt"])
    body = {**await json_body(request), "threadId": thread.thread_id, "interruptId": name}
    answer = parse_answer(body)
    try:
        answered = await services.worker.registry.answers.answer(
            thread, answer.entry, answer.run_id, by=services.owner
        )
    except RequestRefused as refusal:
        raise about(refusal, answer) from None
    return json_answer(answered.to_json())


async def answer_by_post(request: Request) -> Response:
    """Decide one question for a client that has no socket."""
    services = services_of(request)
    answer = parse_answer(await json_body(request))
    return json_answer(await _answered(services, answer))


async def answer_notice(services: Services, answer: Answer) -> str:
    """Return what a socket is told of an answer: what holds, or why it is refused."""
    try:
        return clean_text(canonical_json(await _answered(services, answer)))
    except RequestRefused as refusal:
        return clean_text(refusal_notice(refusal))


def about(refusal: RequestRefused, answer: Answer) -> RequestRefused:
    """Return the refusal of an answer, with the question it is about."""
    return refusal.about(interruptId=answer.entry.interrupt_id, threadId=answer.thread_id)


async def open_questions(services: Services) -> list[dict[str, Any]]:
    """Return the open questions of all threads with the keys of their threads."""
    worker = services.worker
    threads = await worker.log.indexes.paused(limit=THREADS)
    records = await worker.registry.answers.pauses.read_many(threads)
    found = [
        question_json(record.questions[item.id], thread)
        for thread, record in records.items()
        for item in record.open_items
    ]
    return sorted(found, key=lambda question: (question["asked"], question["interrupt_id"]))


async def questions_of(services: Services, thread: ThreadKey) -> list[dict[str, Any]]:
    """Return what a thread ever asked."""
    record = await services.worker.registry.answers.record(thread)
    asked = sorted(record.questions.values(), key=lambda question: (question.asked, question.id))
    return [question_json(question, thread) for question in asked]


def question_json(question: Question, thread: ThreadKey) -> dict[str, Any]:
    """Return a question as operators see it; what is not known is left out."""
    found: dict[str, Any] = {
        "interrupt_id": question.id,
        "thread": thread.key,
        "kind": question.kind,
        "run": question.run,
        "tool": question.tool,
        "input": dict(question.input),
        "asked": question.asked,
    }
    if question.reason:
        found["reason"] = question.reason
    if question.expires is not None:
        found["expires"] = question.expires
    if (decision := question.decision) is not None:
        told = {
            "status": decision.status,
            "payload": decision.payload,
            "by": decision.by or None,
            "time": decision.time,
            "run": decision.run or None,
        }
        found["decision"] = {name: value for name, value in told.items() if value is not None}
    return found


def changed_questions(
    known: Mapping[str, Any], found: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Return the open questions by name, and the threads in which some are no longer open."""
    now = {f"{q['thread']} {q['interrupt_id']}": q for q in found}
    closed = {known[name]["thread"] for name in known if name not in now}
    return now, sorted(closed)


async def _answered(services: Services, answer: Answer) -> dict[str, Any]:
    thread = services.thread(answer.thread_id)
    try:
        answered = await services.worker.registry.answers.answer(
            thread, answer.entry, answer.run_id
        )
    except RequestRefused as refusal:
        raise about(refusal, answer) from None
    return answered.to_json()
