"""What a request asks for beside its messages: the members of forwardedProps that are ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from backscroll.agui.refusal import Problem
from backscroll.kernel.request import Note

PREFIX = "backscroll."

SnapshotWish = Literal["auto", "always", "never"]
Timeline = Literal["off", "brief", "full"]
BusyPolicy = Literal["reject", "queue", "supersede"]

TIMELINES: tuple[Timeline, ...] = ("off", "brief", "full")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one request; None means that it left the choice to the agent."""

    snapshot: SnapshotWish = "auto"
    timeline: Timeline | None = None
    busy: BusyPolicy | None = None
    regenerate: bool = True
    mirror: bool = False
    abandon: bool = False
    state: Literal["replace"] | None = None
    model: str | None = None
    abort_on_disconnect: bool = False


@dataclass(frozen=True, slots=True)
class AgentRules:
    """What an agent allows its clients to ask for."""

    name: str
    tool_names: frozenset[str] = frozenset()
    models: tuple[str, ...] = ()
    busy: BusyPolicy = "reject"
    busy_allowed: tuple[BusyPolicy, ...] = ("reject",)
    timeline: Timeline = "brief"
    timeline_max: Timeline | None = None
    show_reasoning: bool = True
    accept_system: Literal["ignore", "keep"] = "ignore"
    result_chars: int = 200_000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What came of reading forwardedProps: our options, all other members, what was wrong."""

    options: Options = field(default_factory=Options)
    rest: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()


def read_options(props: Mapping[str, Any]) -> ReadOptions:
    """Take our members out of forwardedProps; an unknown one is noted and otherwise ignored."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    notes: list[Note] = []
    for key, value in props.items():
        name = key.removeprefix(PREFIX)
        if not key.startswith(PREFIX):
            continue
        if name not in _READERS:
            text = f"forwardedProps.{key} is not an option of this server and was ignored"
            notes.append(Note("unknown_option", text, f"unknown_option:{key}"))
        elif (wrong := _READERS[name](value)) is not None:
            problems.append(Problem(f"forwardedProps.{key}", wrong))
        else:
            values[name] = value
    rest = {key: value for key, value in props.items() if not key.startswith(PREFIX)}
    options = Options() if problems else Options(**values)
    return ReadOptions(options, rest, tuple(problems), tuple(notes))


def timeline_of(options: Options, rules: AgentRules) -> Timeline:
    """Return how much of the timeline clients are shown: the wish, held below the agent's limit."""
    limit = rules.timeline_max or rules.timeline
    wish = options.timeline or rules.timeline
    return min(wish, limit, key=TIMELINES.index)


def busy_of(options: Options, rules: AgentRules) -> BusyPolicy:
    """Return what a request does when its thread is busy."""
    return options.busy or rules.busy


def option_problems(options: Options, rules: AgentRules) -> list[Problem]:
    """Return the options that this agent does not allow."""
    found: list[Problem] = []
    if options.busy is not None and options.busy not in rules.busy_allowed:
        found.append(_not_one_of("busy", rules.busy_allowed))
    if options.model is not None and options.model not in rules.models:
        found.append(_not_one_of("model", rules.models))
    return found


def _not_one_of(name: str, allowed: Sequence[str]) -> Problem:
    choice = ", ".join(allowed) or "nothing, this agent offers no choice"
    return Problem(f"forwardedProps.{PREFIX}{name}", f"must be one of: {choice}")


def _word(*allowed: str) -> Callable[[Any], str | None]:
    message = f"must be one of: {', '.join(allowed)}"
    return lambda value: None if isinstance(value, str) and value in allowed else message


def _truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _name(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be text"


# What is wrong with a value, or None, by the name of the option.
_READERS: Mapping[str, Callable[[Any], str | None]] = {
    "snapshot": _word("auto", "always", "never"),
    "timeline": _word(*TIMELINES),
    "busy": _word("reject", "queue", "supersede"),
    "regenerate": _truth,
    "mirror": _truth,
    "abandon": _truth,
    "state": _word("replace"),
    "model": _name,
    "abort_on_disconnect": _truth,
}
