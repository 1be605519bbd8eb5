"""Options of a request, and what an agent allows."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.agui.options import (
    AgentRules,
    Options,
    busy_of,
    option_problems,
    read_options,
    timeline_of,
)


def test_ours_are_taken_out() -> None:
    """Keys with our prefix are read, all others passed on untouched."""
    read = read_options({"backscroll.snapshot": "never", "backscroll.mirror": True, "x": {"y": 1}})

    assert read.options == Options(snapshot="never", mirror=True)
    assert read.rest == {"x": {"y": 1}} and read.problems == () and read.notes == ()


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("snapshot", "sometimes", "must be one of: auto, always, never"),
        ("snapshot", ["auto"], "must be one of: auto, always, never"),
        ("regenerate", "no", "must be true or false"),
        ("model", 5, "must be text"),
        ("state", "merge", "must be one of: replace"),
    ],
)
def test_bad_values_are_named(name: str, value: Any, wrong: str) -> None:
    """A bad value is a problem with the path of its key."""
    (problem,) = read_options({f"backscroll.{name}": value}).problems

    assert str(problem) == f"forwardedProps.backscroll.{name} {wrong}"


def test_unknown_ones_are_noted() -> None:
    """A later version's option does no harm."""
    read = read_options({"backscroll.later": 1})

    assert [note.kind for note in read.notes] == ["unknown_option"] and read.problems == ()


def test_every_option_has_a_reader() -> None:
    """Each member of Options can be set by a request."""
    props = {
        "backscroll.timeline": "full",
        "backscroll.busy": "queue",
        "backscroll.regenerate": False,
        "backscroll.abandon": True,
        "backscroll.state": "replace",
        "backscroll.model": "m",
        "backscroll.abort_on_disconnect": True,
    }

    assert read_options(props).options == Options(
        timeline="full",
        busy="queue",
        regenerate=False,
        abandon=True,
        state="replace",
        model="m",
        abort_on_disconnect=True,
    )


def test_the_timeline_is_held_below_the_limit() -> None:
    """A request may lower the level freely, and raise it as far as the agent says."""
    plain, open_ = AgentRules("a"), AgentRules("a", timeline_max="full")

    assert timeline_of(Options(), plain) == "brief"
    assert timeline_of(Options(timeline="off"), plain) == "off"
    assert timeline_of(Options(timeline="full"), plain) == "brief"
    assert timeline_of(Options(timeline="full"), open_) == "full"


def test_what_an_agent_allows() -> None:
    """Policies and models that are not offered are problems."""
    rules = AgentRules("a", models=("m1", "m2"), busy_allowed=("reject", "queue"))

    assert option_problems(Options(busy="queue", model="m2"), rules) == []
    assert (
        busy_of(Options(busy="queue"), rules) == "queue" and busy_of(Options(), rules) == "reject"
    )
    assert [str(p) for p in option_problems(Options(busy="supersede", model="x"), rules)] == [
        "forwardedProps.backscroll.busy must be one of: reject, queue",
        "forwardedProps.backscroll.model must be one of: m1, m2",
    ]
    assert "no choice" in str(option_problems(Options(model="x"), AgentRules("a"))[0])
