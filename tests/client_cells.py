"""The columns of the conformance table, and what must be so in every one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui
from node_clients import Cell, Told, comparable, join, play

if TYPE_CHECKING:
    from conftest import World

HTTP = Cell("agui_http")
BARE = Cell("agui_ws")
DURABLE = Cell("agui_ws", dialect="durable")
OLD_HTTP = Cell("agui_http", client="old")
OLD_BARE = Cell("agui_ws", client="old")
CELLS = [HTTP, BARE, DURABLE, OLD_HTTP, OLD_BARE]
SOCKETS = [BARE, DURABLE, OLD_BARE]

every_client = pytest.mark.parametrize("cell", CELLS, ids=str)
every_socket = pytest.mark.parametrize("cell", SOCKETS, ids=str)


def assert_same_as_join(world: World, told: Told) -> None:
    """The client holds what a fresh client gets by joining on the other worker."""
    fresh = play(BARE, world.workers[::-1], world.thread, join())
    assert fresh.complaints == []
    assert comparable(told.messages) == comparable(fresh.messages)
    assert told.state == fresh.state


def assert_log_is_valid(world: World, *off: str) -> None:
    """The exported events of the thread pass the protocol validator."""
    path = f"/console/api/threads/{world.thread}/export?format=events"
    answer = httpx.get(world.second.url + path, trust_env=False, timeout=10)
    assert answer.status_code == 200, answer.text
    overrides = dict.fromkeys(off, "off")
    assert_valid_agui(answer.text, severity_overrides=overrides)
