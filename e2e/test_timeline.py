"""Timeline: what happened, in order, until now."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import pytest
from console_pages import (
    HeldAnswer,
    caught_up,
    drawn,
    entries,
    listing,
    open_thread,
    question,
    rows,
    talk,
    texts,
)
from console_story import Story
from network import Network
from playwright.sync_api import Error, Locator, Page, Route, expect
from processes import ServerProcess
from scripted_provider import Call, Hold, Reply, error

TALL = {"width": 1440, "height": 4000}


@pytest.fixture
def thread() -> str:
    """Name a thread that nobody else uses."""
    return f"thread-{uuid4().hex[:8]}"


@pytest.fixture
def origin(story: Story) -> str:
    """Look at the server of the story, whose model can be told what to do."""
    return story.server.url


def timeline(page: Page) -> Locator:
    """Return the rows of the timeline."""
    return rows(page, "Timeline")


def seqs(page: Page) -> list[tuple[int, int]]:
    """Return first and last seq of each row."""
    found = []
    for text in (
        timeline(page)
        .get_by_role("gridcell")
        .first.page.locator("[role=grid] [data-key] [role=gridcell]:first-child")
        .all_inner_texts()
    ):
        ends = [int(part.replace("\u202f", "")) for part in text.split("–")]
        found.append((ends[0], ends[-1]))
    return found


def asked(server: ServerProcess, thread: str, text: str) -> threading.Thread:
    """Send a message without waiting for its run to end."""
    body = question(thread, f"run-{uuid4().hex[:8]}", text)
    work = threading.Thread(
        target=lambda: httpx.post(f"{server.url}/agui", json=body, trust_env=False, timeout=30)
    )
    work.start()
    return work


def test_rows_hold_the_whole_log(page: Page, story: Story, thread: str) -> None:
    """Each entry is in one row, rows stand in the order of their first entry (E10, E11)."""
    page.set_viewport_size(TALL)
    story.model.add(Reply(calls=(Call("report", {"pages": 2}),)), Reply(text="All is well."))
    talk(story.server, thread, "How was week 1?")
    log = entries(story.server, thread)
    open_thread(page, thread)
    caught_up(page, story.server, thread)

    found = seqs(page)

    assert [first for first, _ in found] == sorted(first for first, _ in found)
    assert found[0][0] == 1
    assert max(last for _, last in found) == log[-1]["seq"]
    shown = sum(int(count) for count in counts(page, story, thread))
    assert shown == len(log)


def counts(page: Page, story: Story, thread: str) -> list[str]:
    """Return how many entries each row of the server has; the list shows exactly those rows."""
    answer = httpx.get(
        f"{story.server.url}/console/api/threads/{thread}/rows", trust_env=False, timeout=10
    ).json()
    assert len(answer["rows"]) == timeline(page).count()
    return [str(row["entries"]) for row in answer["rows"]]


def test_live_rows_equal_loaded_rows(page: Page, story: Story, thread: str) -> None:
    """What was folded live in the page is what the server folds after a reload (E10, E11)."""
    page.set_viewport_size(TALL)
    story.model.add(Reply(text="Hello."))
    talk(story.server, thread, "Hi")
    open_thread(page, thread)
    caught_up(page, story.server, thread)
    old = timeline(page).count()
    story.model.add(Reply(calls=(Call("report", {"pages": 9}), Call("nothing", {}))))
    story.model.add(Reply(reasoning="Hm, let me see.", text="One tool is missing."))

    talk(story.server, thread, "How was week 2?")
    expect(timeline(page).filter(has_text="One tool is missing.").first).to_be_visible()
    caught_up(page, story.server, thread)
    live = list(texts(timeline(page)))
    page.reload()
    expect(timeline(page)).to_have_count(len(live))

    assert len(live) > old + 8
    assert list(texts(timeline(page))) == live


def test_running_and_failed(page: Page, story: Story, thread: str) -> None:
    """A run is running until it ends; its error is said, live and after a reload (E14)."""
    story.model.add(Reply(text="Hello."))
    talk(story.server, thread, "Hi")
    open_thread(page, thread)
    expect(timeline(page).first).to_be_visible()
    story.model.add(Reply(chunks=({"content": "Half an "}, Hold("half"), {"content": "answer"})))
    work = asked(story.server, thread, "Go on")
    run = timeline(page).filter(has_text="Go on").first

    expect(run).to_contain_text("running")
    expect(timeline(page).filter(has_text="Half an")).to_contain_text("running")
    story.model.release("half")
    work.join(timeout=20)
    expect(run).not_to_contain_text("running")
    story.model.add(error(400, "The request is not to my liking."))
    talk(story.server, thread, "And now?")

    for _ in range(2):
        failed = timeline(page).and_(page.locator("[data-status=error][data-family=run]"))
        expect(failed).to_contain_text("error")
        expect(failed).not_to_contain_text("And now?")
        page.reload()


def test_detail_of_a_tool_call(page: Page, story: Story) -> None:
    """Facts, arguments, result and every entry of the row are in the pane."""
    open_thread(page, story.thread, "timeline", "?family=tool")
    expect(timeline(page).last).to_be_visible()

    timeline(page).last.click()

    pane = page.get_by_role("complementary", name="Details")
    expect(pane.get_by_role("heading", name="tool call report")).to_be_visible()
    expect(pane.get_by_role("tree", name="Arguments")).to_contain_text("pages")
    expect(pane.get_by_text(re.compile("touring saddles")).first).to_be_visible()
    expect(pane.get_by_role("heading", name=re.compile("TOOL_CALL_RESULT"))).to_be_visible()
    assert "seq=" in page.url


def test_filter_is_the_address(page: Page, story: Story) -> None:
    """Family, status and text narrow the rows; the address carries them (E13)."""
    open_thread(page, story.thread)
    page.get_by_role("button", name="compaction", exact=False).click()
    expect(page).to_have_url(re.compile("family=compaction"))
    expect(timeline(page).and_(page.locator("[data-family=compaction]")).first).to_be_visible()
    others = timeline(page).and_(page.locator(":not([data-family=compaction])"))
    expect(others).to_have_count(0)
    families = timeline(page).evaluate_all("rows => rows.map((row) => row.dataset.family)")
    assert set(families) == {"compaction"}

    page.reload()

    expect(page.get_by_role("button", name="compaction")).to_have_attribute("aria-pressed", "true")
    expect(timeline(page)).to_have_count(len(families))
    page.get_by_role("searchbox").fill("overflow")
    page.keyboard.press("Enter")
    expect(timeline(page)).to_have_count(1)
    page.get_by_role("searchbox").fill("no such words")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="No match")).to_be_visible()


def test_a_filter_misses_nothing(page: Page, story: Story, thread: str) -> None:
    """What happens between the requests that a filtered page makes is in it as well (E10, E13)."""
    call = Reply(calls=(Call("report", {"pages": 1}),))
    story.model.add(call, Reply(text="One."), call, Reply(text="Two."))
    talk(story.server, thread, "How was week 1?")
    asked: list[str] = []

    def late(route: Route) -> None:
        answer = route.fetch()
        asked.append(route.request.url)
        if len(asked) == 1:
            talk(story.server, thread, "How was week 2?")
        route.fulfill(response=answer)

    page.route(re.compile(f"/console/api/threads/{thread}/rows"), late)
    open_thread(page, thread, "timeline", "?family=tool")

    expect(timeline(page)).to_have_count(2)
    expect(timeline(page).and_(page.locator("[data-status=ok]"))).to_have_count(2)


def test_the_newest_filter_counts(page: Page, story: Story) -> None:
    """Rows that were asked for before the filter was pressed do not come over those of it (E13)."""
    held = HeldAnswer(page, re.compile("/console/api/threads/story/rows"))
    open_thread(page, story.thread)
    page.get_by_role("button", name="compaction", exact=False).click()
    others = timeline(page).and_(page.locator(":not([data-family=compaction])"))
    expect(timeline(page).first).to_be_visible()
    expect(others).to_have_count(0)
    held.wait()
    with suppress(Error):  # the page may have given the request up
        held.release()
    page.evaluate("() => fetch('/console/api/system').then((answer) => answer.text())")
    drawn(page)

    expect(others).to_have_count(0)


def test_link_to_an_entry(page: Page, story: Story) -> None:
    """A link to a seq far from the end lands on its row, also after a reload (P6)."""
    for _ in range(2):
        open_thread(page, story.thread, "timeline", "?seq=40")
        selected = timeline(page).and_(page.locator("[aria-selected=true]"))
        expect(selected).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("complementary", name="Details")).to_be_visible()


def test_following(page: Page, story: Story, thread: str) -> None:
    """At the end it follows; scrolling up stops that and nothing moves, until asked (E16)."""
    story.model.otherwise(Reply(text="Hello, and welcome."))
    talk(story.server, thread, *(f"Question {n}" for n in range(8)))
    open_thread(page, thread)
    expect(timeline(page).last).to_be_in_viewport()
    talk(story.server, thread, "The last one")
    expect(timeline(page).filter(has_text="The last one").first).to_be_visible()
    caught_up(page, story.server, thread)
    scrolled(page, -900)
    expect(page.get_by_text(re.compile("paused"))).to_be_visible()
    top = "(list) => list.scrollTop"
    before = listing(page, "Timeline").evaluate(top)

    talk(story.server, thread, "One more", "And another")

    back = page.get_by_role("button", name=re.compile(r"↓ \d+ new"))
    expect(back).to_be_visible()
    assert listing(page, "Timeline").evaluate(top) == before
    back.click()
    expect(timeline(page).filter(has_text="And another").first).to_be_visible()
    story.model.otherwise(None)


def scrolled(page: Page, by: int) -> None:
    """Turn the wheel over the timeline and return when the list has come to rest."""
    noted = """(list) => {
      window.rests = false;
      list.addEventListener('scrollend', () => { window.rests = true; }, {once: true});
    }"""
    listing(page, "Timeline").hover()
    listing(page, "Timeline").evaluate(noted)
    page.mouse.wheel(0, by)
    page.wait_for_function("() => window.rests")
    drawn(page)


def test_folding_a_run(page: Page, story: Story, thread: str) -> None:
    """A folded run hides its rows and says how many; a link into it unfolds it."""
    story.model.otherwise(Reply(text="Hello."))
    talk(story.server, thread, "One", "Two")
    story.model.otherwise(None)
    open_thread(page, thread)
    caught_up(page, story.server, thread)
    whole = timeline(page).count()

    timeline(page).first.get_by_role("button", name="Fold").click()

    expect(timeline(page).first).to_contain_text("inside")
    assert timeline(page).count() < whole
    timeline(page).first.get_by_role("button", name="Unfold").click()
    expect(timeline(page)).to_have_count(whole)


def test_socket_lost_and_back(page: Page, story: Story, thread: str, complaints: Any) -> None:
    """While the socket is down the badge says so; afterwards nothing is missing or twice (E17)."""
    page.set_viewport_size(TALL)
    story.model.add(Reply(text="Hello."), Reply(text="Hello again."))
    talk(story.server, thread, "One")
    with Network(story.server.port) as network:
        complaints.allow(str(network.port))
        page.goto(f"{network.url}/console/threads/{thread}/timeline")
        caught_up(page, story.server, thread)
        network.cut()
        expect(page.get_by_text(re.compile("reconnecting · last seq"))).to_be_visible()

        talk(story.server, thread, "Two")
        network.restore()

        expect(timeline(page).filter(has_text="Two").first).to_be_visible()
        caught_up(page, story.server, thread)
        live = list(texts(timeline(page)))
        page.reload()
        expect(timeline(page)).to_have_count(len(live))
        assert list(texts(timeline(page))) == live


def test_few_elements(page: Page, story: Story) -> None:
    """However long the thread, the document stays small (P4)."""
    open_thread(page, story.thread)
    expect(timeline(page).last).to_be_visible()
    listing(page, "Timeline").hover()
    for _ in range(20):
        page.mouse.wheel(0, -700)
    page.wait_for_function("() => document.querySelector('[role=grid]').scrollTop === 0")
    expect(timeline(page).and_(page.locator("[data-skeleton]"))).to_have_count(0)

    assert page.evaluate("() => document.querySelectorAll('*').length") < 3000
    numbers = [first for first, _ in seqs(page)]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("query", ["?status=error", "?status=ok", "?q=Torino", "?family=tool"])
def test_live_filter_equals_loaded_filter(
    page: Page, story: Story, thread: str, query: str
) -> None:
    """What begins to pass a filter late, or ceases to, is as after a reload (E11, E13)."""
    story.model.add(Reply(text="Nothing from Basel, but two from Torino."))
    talk(story.server, thread, "Anything late?")
    page.set_viewport_size(TALL)
    open_thread(page, thread, "timeline", query)
    caught_up(page, story.server, thread)
    wrong, right = Call("report", {"sheets": 1}), Call("report", {"pages": 1})
    story.model.add(Reply(calls=(wrong,)), Reply(calls=(right,)), Reply(text="Both to Torino."))

    talk(story.server, thread, "Which towns?")

    caught_up(page, story.server, thread)
    live = list(texts(timeline(page)))
    page.reload()
    caught_up(page, story.server, thread)
    assert list(texts(timeline(page))) == live
    assert live
