"""The gate: who may run, who is refused, and who is asked about first."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.errors import Never
from backscroll.kernel.message import ToolCall
from backscroll.kernel.request import ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import ToolInfo, ToolSet

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Proceed:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class AskFirst:
    """A human is asked before the call runs; the reason is shown to them."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call does not run; the model is told so."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The call does not run; this text is its result."""

    text: str


Decision = Proceed | AskFirst | Refuse | Answer
Gate = Callable[[ToolCall, ToolInfo, Mapping[str, Any]], Decision | Awaitable[Decision]]
"""Decides about one call; sync or async."""


@dataclass(frozen=True, slots=True)
class GateRules:
    """Who decides about calls: the agent's gate, and whether sensitive tools are asked about."""

    gate: Gate | None = None
    asks_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided about the calls of a batch: whom to ask, and results already certain."""

    questions: Mapping[str, str]
    decided: Mapping[str, ToolResponse]


async def decide(
    rules: GateRules,
    calls: Sequence[ToolCall],
    tools: ToolSet,
    context: Mapping[str, Any],
    texts: Texts,
) -> Decisions:
    """Ask the gate once about each of these calls, in order; all of them could run."""
    questions: dict[str, str] = {}
    decided: dict[str, ToolResponse] = {}
    for call in calls:
        tool = tools.get(call.name)
        assert tool is not None
        match await _decision(rules, call, tool.info, context, texts):
            case AskFirst(reason=reason):
                questions[call.id] = reason or texts.approval_needed.format(name=call.name)
            case Refuse(reason=reason):
                decided[call.id] = refused(reason, texts)
            case Answer(text=text):
                decided[call.id] = ToolResponse(text, outcome="replied")
    return Decisions(questions, decided)


def refused(reason: str | None, texts: Texts) -> ToolResponse:
    """Return the result of a call that somebody did not allow."""
    text = texts.refused_reason.format(reason=reason) if reason else texts.refused
    return ToolResponse(text, outcome="refused")


async def _decision(
    rules: GateRules, call: ToolCall, info: ToolInfo, context: Mapping[str, Any], texts: Texts
) -> Decision:
    decision: Decision = Proceed()
    if rules.gate is not None:
        try:
            given = rules.gate(call, info, context)
            decision = await given if inspect.isawaitable(given) else given
        except Never.CONTAINED:
            raise
        except Exception:
            # An error never lets a call through.
            logger.exception("the gate failed for %s", call.name)
            return AskFirst(texts.gate_failed.format(name=call.name))
        if not isinstance(decision, Proceed | AskFirst | Refuse | Answer):
            logger.error("the gate returned %r for %s", decision, call.name)
            return AskFirst(texts.gate_failed.format(name=call.name))
    if isinstance(decision, Proceed) and info.sensitive and rules.asks_sensitive:
        return AskFirst(texts.approval_needed.format(name=call.name))
    return decision
