"""Threads: finding the conversation that matters."""

from __future__ import annotations

import re
from threading import Thread
from typing import Any
from uuid import uuid4

import anyio
import pytest
from backscroll.store.connection import connect
from backscroll.store.keys import Keys, ThreadKey
from backscroll.store.thread_log import ThreadLog
from backscroll.store.threads import ThreadStore
from console_pages import held_socket, listing, open_thread, rows, talk
from deadlines import scaled
from network import Network
from playwright.sync_api import Page, Route, expect
from processes import ServerProcess


@pytest.fixture
def thread() -> str:
    """Name a thread that nobody else uses."""
    return f"thread-{uuid4().hex[:8]}"


def row(page: Page, thread: str) -> Any:
    """Return the row of a thread."""
    return rows(page, "Threads").filter(has_text=thread)


def test_new_thread_appears_by_itself(page: Page, server: ServerProcess, thread: str) -> None:
    """A thread is listed within a second or so of its first entry, newest first (E01)."""
    talk(server, f"{thread}-old", "Hello")
    page.goto("/console/threads")
    expect(rows(page, "Threads").first).to_be_visible()

    talk(server, thread, "What can you do?")

    expect(row(page, thread).filter(has_text="What can you do?")).to_be_visible(
        timeout=scaled(3) * 1000
    )
    expect(rows(page, "Threads").first).to_contain_text(thread)


def test_what_changed_meanwhile_is_listed(
    page: Page, server: ServerProcess, thread: str, complaints: Any
) -> None:
    """Threads that changed while the socket was down are there when it is back (E01, E17)."""
    talk(server, f"{thread}-old", "Hello")
    with Network(server.port) as network:
        complaints.allow(str(network.port))
        page.goto(f"{network.url}/console/threads")
        expect(row(page, f"{thread}-old")).to_be_visible()
        network.cut()
        expect(page.get_by_text("reconnecting", exact=True)).to_be_visible()

        talk(server, f"{thread}-new", "What can you do?")
        network.restore()

        within = scaled(20) * 1000
        expect(row(page, f"{thread}-new")).to_contain_text("What can you do?", timeout=within)
        expect(rows(page, "Threads").first).to_contain_text(f"{thread}-new")


def test_what_changed_before_the_feed_begins_is_listed(
    page: Page, server: ServerProcess, thread: str
) -> None:
    """A thread begun between reading the list and subscribing is missed by neither (E01)."""
    talk(server, f"{thread}-old", "Hello")
    let_go = held_socket(page)
    began: list[str] = []

    def late(route: Route) -> None:
        answer = route.fetch()
        began.extend([] if began else talk(server, thread, "What can you do?"))
        route.fulfill(response=answer)
        let_go()

    page.route("**/console/api/threads?*", late)
    page.goto("/console/threads")

    expect(row(page, thread).filter(has_text="What can you do?")).to_be_visible()


def test_a_filter_is_kept_when_the_feed_begins(
    page: Page, server: ServerProcess, thread: str
) -> None:
    """The list that is read again then is the one that the filter asks for (E02)."""
    talk(server, f"{thread}-a", "Hello")
    talk(server, f"{thread}-b", "Hello")
    let_go = held_socket(page)
    held: list[Route] = []

    def late(route: Route) -> None:
        if held or "q=" not in route.request.url:
            route.continue_()
            return
        held.append(route)
        let_go()

    page.route("**/console/api/threads?*", late)
    page.goto("/console/threads")
    expect(row(page, f"{thread}-b")).to_be_visible()

    page.get_by_role("searchbox").fill(f"{thread}-a")

    expect(rows(page, "Threads")).to_have_count(1)
    expect(page.get_by_role("button", name="changed")).to_have_count(0)


def test_row_says_what_matters(page: Page, server: ServerProcess, thread: str) -> None:
    """Status, agent, counts, model and the context of the last call are in the row."""
    talk(server, thread, "Order A-1042?", "Thanks")
    page.goto(f"/console/threads?q={thread}")

    found = row(page, thread)
    expect(found.get_by_role("gridcell").nth(0)).to_have_text("ok")
    for n, text in ((2, "demo"), (3, "ago"), (4, "2"), (8, "demo"), (9, "%")):
        expect(found.get_by_role("gridcell").nth(n)).to_contain_text(text.replace("ago", ""))


def test_filter_and_sort_are_the_address(page: Page, server: ServerProcess, thread: str) -> None:
    """Filter and sort survive reload, back and forward (E02)."""
    talk(server, f"{thread}-a", "Hello")
    talk(server, f"{thread}-b", "Hello", "And again")
    page.goto("/console/threads")

    page.get_by_role("searchbox").fill(thread)
    expect(rows(page, "Threads")).to_have_count(2)
    page.get_by_role("columnheader", name="Runs").get_by_role("button").click()
    expect(page).to_have_url(re.compile(f"q={thread}.*sort=-runs"))
    expect(rows(page, "Threads").first).to_contain_text(f"{thread}-b")
    page.reload()

    expect(rows(page, "Threads")).to_have_count(2)
    expect(page.get_by_role("searchbox")).to_have_value(thread)
    expect(page.get_by_role("columnheader", name="Runs")).to_have_attribute(
        "aria-sort", "descending"
    )
    row(page, f"{thread}-b").get_by_role("link").click()
    expect(listing(page, "Timeline")).to_be_visible()
    page.go_back()
    expect(rows(page, "Threads")).to_have_count(2)


def test_no_match_names_the_filter(page: Page, server: ServerProcess, thread: str) -> None:
    """A filter that leaves nothing says which it is, and one button clears it (E03)."""
    talk(server, thread, "Hello")
    page.goto(f"/console/threads?q={uuid4().hex}")

    expect(page.get_by_role("heading", name="No match")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(rows(page, "Threads").first).to_be_visible()


def test_failure_shows_words_and_retry(page: Page, complaints: Any) -> None:
    """A failed request is never an empty list: status, code and Retry (E03)."""
    complaints.allow("500")
    held_socket(page)  # so that nothing but the button has the list read again
    failing = True

    def answer(route: Route) -> None:
        if failing:
            error = {
                "code": "internal_error",
                "message": "Broken.",
                "details": {"request_id": "r1"},
            }
            route.fulfill(status=500, json={"error": error})
        else:
            route.continue_()

    page.route("**/console/api/threads?*", answer)
    page.goto("/console/threads")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("HTTP 500 · internal_error · request r1")
    failing = False
    alert.get_by_role("button", name="Retry").click()
    expect(alert).to_be_hidden()


def test_rows_stay_when_refreshing_fails(
    page: Page, server: ServerProcess, thread: str, complaints: Any
) -> None:
    """Rows already there stay, marked stale (E03)."""
    complaints.allow("503")
    talk(server, thread, "Hello")
    page.goto("/console/threads")
    expect(rows(page, "Threads").first).to_be_visible()
    error = {"code": "unavailable", "message": "Redis does not answer."}
    page.route(
        "**/console/api/threads?*", lambda route: route.fulfill(status=503, json={"error": error})
    )

    page.get_by_role("columnheader", name="Entries").get_by_role("button").click()

    expect(page.get_by_role("alert")).to_contain_text("Stale")
    expect(rows(page, "Threads").first).to_be_visible()


def test_unknown_thread(page: Page, complaints: Any) -> None:
    """A thread that is not there gets the console's own page, with a way back."""
    complaints.allow("404")

    open_thread(page, "nobody-knows-it")

    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    page.get_by_role("link", name="All threads").click()
    expect(page).to_have_url(re.compile("/console/threads$"))


def test_thread_that_comes_to_be(
    page: Page, server: ServerProcess, thread: str, complaints: Any
) -> None:
    """A page of a thread that is not there shows the thread as soon as it is (E01)."""
    complaints.allow("404")
    open_thread(page, thread)
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()

    talk(server, thread, "Hello")

    expect(rows(page, "Timeline").first).to_be_visible()


def test_thread_that_is_deleted(
    page: Page, server: ServerProcess, thread: str, complaints: Any
) -> None:
    """The page of a thread says so when the thread is deleted, without a reload."""
    complaints.allow("404")
    talk(server, thread, "Hello")
    open_thread(page, thread)
    expect(rows(page, "Timeline").first).to_be_visible()

    async def delete() -> None:
        data_dir = server.command[server.command.index("--data-dir") + 1]
        clients = connect(f"{data_dir}/valkey.sock")
        log = ThreadLog(clients, Keys(), "test")
        assert await ThreadStore(log).delete(ThreadKey.from_key(thread)) is None
        await clients.close()

    deletion = Thread(target=anyio.run, args=(delete,))
    deletion.start()
    deletion.join()

    expect(page.get_by_role("heading", name="Not found")).to_be_visible()


def test_worker_is_named_while_a_run_goes_on(
    page: Page, server: ServerProcess, thread: str
) -> None:
    """The frame names the worker of a run, and nobody once the run has ended."""
    talk(server, thread, "Hello")
    open_thread(page, thread)
    expect(rows(page, "Timeline").first).to_be_visible()
    run = Thread(target=talk, args=(server, thread, "count to 200"))
    run.start()

    expect(page.get_by_text(re.compile("^worker w_"))).to_be_visible()
    run.join()
    expect(page.get_by_text(re.compile("^worker w_"))).to_be_hidden()


def test_keyboard_and_dialog(page: Page, server: ServerProcess, thread: str) -> None:
    """Arrows walk rows, Enter opens, the dialog of keys gives the focus back (E60 in part)."""
    talk(server, thread, "Hello")
    page.goto(f"/console/threads?q={thread}")
    expect(rows(page, "Threads")).to_have_count(1)

    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Keys")).to_be_focused()
    page.get_by_role("button", name="Keys").blur()
    page.keyboard.press("j")
    expect(row(page, thread)).to_be_focused()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(f"/{thread}/timeline$"))


def test_theme_persists(page: Page) -> None:
    """The switch overrides the system and survives a reload (E67 in part)."""
    page.emulate_media(color_scheme="light")
    page.goto("/console/threads")
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)

    page.keyboard.press(".")
    page.keyboard.press(".")
    dark = page.evaluate(ground)
    page.reload()

    assert dark != light
    assert page.evaluate(ground) == dark
