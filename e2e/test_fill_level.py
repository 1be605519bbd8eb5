"""How full the window is: shown in the list of threads, for the view that was really sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from console_pages import api, talk
from playwright.sync_api import Browser, Page, expect
from processes import PROGRAMS, ServerProcess
from redis_server import valkey_url  # noqa: F401
from scripted_provider import Reply, ScriptedProcess

THREAD, WINDOW = "filling", 4000
WORDS = "Saddles and bar tapes as usual, a little more than the week before. " * 14


@pytest.fixture
def model() -> Iterator[ScriptedProcess]:
    """Give a model that says a lot."""
    with ScriptedProcess() as model:
        model.otherwise(Reply(text=WORDS))
        yield model


@pytest.fixture
def workers(
    valkey_url: str,  # noqa: F811
    model: ScriptedProcess,
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Give two servers on one Redis, each with a process of its own."""
    env = {
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "none-needed",
        "PYTHONPATH": str(PROGRAMS),
        "BACKSCROLL_KEY_PREFIX": f"test-{uuid4().hex[:12]}",
    }
    name = "compacting_agent:filling"
    with (
        ServerProcess(name, redis_url=valkey_url, env=env) as one,
        ServerProcess(name, redis_url=valkey_url, env=env) as two,
    ):
        yield one, two


@pytest.fixture
def origin(workers: tuple[ServerProcess, ServerProcess]) -> str:
    """Look at the first of them."""
    return workers[0].url


def head(server: ServerProcess) -> dict[str, Any]:
    """Return what the list says of the thread."""
    found: list[dict[str, Any]] = api(server, "/threads")["threads"]
    return next(thread for thread in found if thread["thread"] == THREAD)


def level(server: ServerProcess) -> float:
    """Return the part of the window that the newest call took."""
    context = head(server)["context"]
    assert context["window"] == WINDOW
    return float(context["tokens"] / WINDOW)


def shown(page: Page, tokens: int) -> None:
    """Expect a tab to say how full that is, without being asked to."""
    cell = page.get_by_role("row").filter(has_text=THREAD).get_by_role("gridcell").nth(9)
    expect(cell).to_contain_text(re.compile(rf"^\s*{round(tokens * 100 / WINDOW)}.%"))


def test_it_rises_and_falls_with_what_is_sent(
    page: Page, browser: Browser, workers: tuple[ServerProcess, ServerProcess]
) -> None:
    """console-06: 60 and 85 %, a compaction, a turn more; in two tabs, on two workers."""
    one, two = workers
    talk(one, THREAD, "How was the week?")
    tabs = [page, browser.new_page()]
    for tab, server in zip(tabs, workers, strict=True):
        tab.goto(f"{server.url}/console/threads")
    seen: list[float] = []
    for turn in range(40):
        talk(workers[turn % 2], THREAD, f"And the week before, number {turn}?")
        seen.append(level(one))
        assert level(two) == seen[-1]
        newest = api(one, f"/threads/{THREAD}/calls/latest")["attempts"][-1]
        assert newest["sent"]["tokens"] == round(seen[-1] * WINDOW)
        if turn % 4 == 0 or head(one)["compactions"]:
            for tab in tabs:
                shown(tab, newest["sent"]["tokens"])
        if len(seen) > 1 and seen[-2] < seen[-1] and head(one)["compactions"]:
            break
    tabs[1].close()
    lowest = min(range(1, len(seen)), key=lambda n: seen[n] - seen[n - 1])

    # It rose past both marks, fell with the compaction, and rises again from there.
    before, fallen, after = seen[:lowest], seen[lowest], seen[-1]
    assert before == sorted(before) and any(0.55 < part < 0.75 for part in before)
    assert before[-1] > 0.80 and fallen < 0.75 * before[-1] and fallen < after < before[-1]
    assert (
        api(one, f"/threads/{THREAD}/calls/latest")["attempts"][-1]["history"]["tokens"]
        > (newest["sent"]["tokens"])
    )
