"""One run as events: no generated run breaks a rule."""

from __future__ import annotations

import json

from ag_ui_validate.pytest_plugin import assert_valid_agui
from agui_checker import assert_valid
from agui_client import Client
from agui_stories import (
    Story,
    answered,
    stories,
)
from backscroll.agui.snapshot import visible_messages
from backscroll.kernel.message import assistant
from hypothesis import given, settings

FALSE_POSITIVES = {"AGUI101": "off", "AGUI102": "off", "AGUI104": "off", "AGUI204": "off"}


@given(stories())
@settings(max_examples=150, deadline=None)
def test_every_log_is_valid(story: Story) -> None:
    """V1 to V12, lanes, ids, results: no generated run breaks a rule of our own checker."""
    assert_valid(story.told().events())


@given(stories("a"), stories("b"))
@settings(max_examples=30, deadline=None)
def test_every_log_passes_the_public_validator(first: Story, second: Story) -> None:
    """The events of two runs, one after another, pass ag-ui-validate."""
    log = second.told("r2", first.told("r1"), "u2")

    lines = "\n".join(json.dumps(event) for event in log.events())
    assert_valid_agui(lines, severity_overrides=FALSE_POSITIVES, max_warnings=0)


@given(stories())
@settings(max_examples=100, deadline=None)
def test_folding_the_events_gives_the_stored_history(story: Story) -> None:
    """What a client holds at the end is what is stored."""
    log = story.told()

    wire = visible_messages(log.messages())
    snapshot = {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [json.loads(m.model_dump_json(by_alias=True)) for m in wire],
    }
    assert Client().apply(*log.events()).shown() == Client().apply(snapshot).shown()


def test_a_log_can_be_read_back() -> None:
    """Stamps are where the log puts its time, whatever the event holds."""
    text = '"timestamp":1'
    log = Story([*answered("m", text), assistant(text, id="m")]).told()

    times = [event["timestamp"] for event in log.events()]
    assert times == sorted(times) and len({len(str(time)) for time in times}) == 1
    assert [e.seq for e in log.entries] == list(range(1, log.head + 1))
