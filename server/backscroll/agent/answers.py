"""Answers to a pause: what they are, whether they fit, and what they make of the calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backscroll.agent.gate import refused
from backscroll.kernel.content import FilePart, TextPart, VendorPart
from backscroll.kernel.errors import ResumeProblem
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolSet
from backscroll.kernel.tool_schema import Problem
from backscroll.kernel.turn import Pause, PauseItem, ToolRecord


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call, with other arguments if some are given."""

    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not run the call; the model reads the reason."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """Do not run the call: this is its result.

    `message_id` is the id of the result's message, where somebody has given it one already.
    """

    content: Any  # Any: text, or a tuple of parts
    is_error: bool = False
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Run the failed call again."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Leave the failed call; the model reads its error."""


PauseAnswer = Approve | Reject | Reply | Retry | GiveUp

KINDS: Mapping[type, str] = {
    Approve: "approve",
    Reject: "reject",
    Reply: "reply",
    Retry: "retry",
    GiveUp: "give_up",
}

TAKES: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "reject", "reply"),
    "client": ("reply", "reject"),
    "environment": ("retry", "give_up"),
}
"""Which answers each kind of item takes."""


def check_answers(
    pause: Pause, answers: Mapping[str, PauseAnswer], tools: ToolSet, now: float
) -> list[ResumeProblem]:
    """Return everything that is wrong with the answers to a pause; nothing means they fit."""
    items = {item.id: item for item in pause.items}
    problems = [
        ResumeProblem("interrupt_incomplete", f"item {name!r} ({item.tool}) has no answer", name)
        for name, item in items.items()
        if name not in answers
    ]
    for name, answer in answers.items():
        item = items.get(name)
        problem = (
            ResumeProblem("interrupt_unknown", f"nothing waits under {name!r}", name)
            if item is None
            else _check(item, answer, tools) or _expired(pause, name, answer, now)
        )
        if problem is not None:
            problems.append(problem)
    return problems


def response_to(
    item: PauseItem, answer: PauseAnswer, held: ToolRecord | None, texts: Texts
) -> ToolResponse | None:
    """Return the result that an answer gives a call, or None when the call is to run."""
    match answer:
        case Reply(content=content, is_error=is_error):
            if item.kind == "client" and _is_blank(content):
                content = texts.client_empty
            return ToolResponse(content, outcome="error" if is_error else "replied")
        case Reject(reason=reason) if item.kind == "client":
            template = texts.client_cancelled_reason if reason else texts.client_cancelled
            return ToolResponse(template.format(reason=reason), outcome="cancelled")
        case Reject(reason=reason):
            return refused(reason, texts)
        case GiveUp() if held is not None:
            return ToolResponse(held.content, error=held.failure, outcome="error")
    return None


def _check(item: PauseItem, answer: PauseAnswer, tools: ToolSet) -> ResumeProblem | None:
    kind = KINDS.get(type(answer))
    if kind not in item.answers:
        expected = " or ".join(item.answers)
        return _invalid(item, f"expected {expected}, got {kind or type(answer).__name__}")
    if isinstance(answer, Reply):
        return _check_reply(item, answer)
    if isinstance(answer, Approve | Retry):
        return _check_run(item, answer.args if isinstance(answer, Approve) else None, tools)
    return None


def _check_reply(item: PauseItem, answer: Reply) -> ResumeProblem | None:
    content = answer.content
    is_parts = isinstance(content, tuple) and all(
        isinstance(part, TextPart | FilePart | VendorPart) for part in content
    )
    if not (is_parts or isinstance(content, str)):
        found = type(content).__name__
        return _invalid(item, f"a reply is text or parts, got {found}")
    if item.kind == "approval" and _is_blank(content):
        return _invalid(item, "a reply in place of a call needs a text")
    return None


def _is_blank(content: Any) -> bool:
    return not (content.strip() if isinstance(content, str) else content)


def _check_run(item: PauseItem, args: Any, tools: ToolSet) -> ResumeProblem | None:
    tool = tools.get(item.tool)
    if tool is None or tool.body is None:
        return ResumeProblem("tool_gone", f"the agent has no tool {item.tool!r} any more", item.id)
    if args is None:
        return None
    if not isinstance(args, Mapping):
        return _invalid(item, f"edited arguments are an object, got {type(args).__name__}")
    checked = tool.check(args)
    if isinstance(checked, Problem):
        text = f"{item.tool}: {checked.field}: {checked.problem}"
        return ResumeProblem("invalid_arguments", text, item.id)
    return None


def _expired(pause: Pause, name: str, answer: PauseAnswer, now: float) -> ResumeProblem | None:
    if pause.expires_at is None or now < pause.expires_at or isinstance(answer, Reject | GiveUp):
        return None
    return ResumeProblem("interrupt_expired", f"item {name!r} can only be given up now", name)


def _invalid(item: PauseItem, text: str) -> ResumeProblem:
    return ResumeProblem("interrupt_invalid", f"item {item.id!r} ({item.tool}): {text}", item.id)
