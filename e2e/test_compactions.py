"""Compactions: every decision, and what the summary said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from console_pages import api, held_socket, open_thread, question, rows, talk
from console_story import ANSWERS, Story, served
from deadlines import scaled, wait_until
from playwright.sync_api import Page, Route, expect
from scripted_provider import Reply


@pytest.fixture
def origin(story: Story) -> str:
    """Look at the server of the story."""
    return story.server.url


def decisions(story: Story) -> list[dict[str, Any]]:
    """Return all decisions, newest first, as the page shows them."""
    found: list[dict[str, Any]] = api(story.server, f"/threads/{story.thread}/compactions")[
        "compactions"
    ]
    return found[::-1]


def test_one_row_per_decision(page: Page, story: Story) -> None:
    """Call, trigger, stages, sizes, summary and result of each are in its row (E50, console-05)."""
    open_thread(page, story.thread, "compactions")
    wanted = decisions(story)
    expect(rows(page, "Decisions")).to_have_count(len(wanted))

    for row, decision in zip(rows(page, "Decisions").all(), wanted, strict=True):
        cells = row.get_by_role("gridcell").all_inner_texts()
        assert cells[0] == str(decision["compaction"])
        assert cells[2].split()[0] == str(decision["call"])
        assert cells[3].startswith(decision["trigger"])
        assert cells[4] == " · ".join(stage["stage"] for stage in decision["stages"])
        before, after = decision["before"], decision["after"]
        assert cells[5] == f"{before['messages']} → {after['messages']}"
        assert f"{after['tokens']}" in cells[6].replace("\u202f", "")
        assert cells[10] == decision["result"]


def test_summary_in_full(page: Page, story: Story, tmp_path: Path) -> None:
    """The summary is there whole: to copy, to download, to compare with the last (E52)."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    merged = next(d for d in decisions(story) if d.get("summary", {}).get("source") == "merged")
    whole = api(story.server, f"/threads/{story.thread}/compactions/{merged['compaction']}")
    open_thread(page, story.thread, f"compactions/{merged['compaction']}")

    pane = page.get_by_role("complementary", name="Decision")
    pane.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Summary copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == whole["text"]
    with page.expect_download() as download:
        pane.get_by_role("button", name="Download .md").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == f"story-summary-{merged['compaction']}.md"
    assert saved.read_text() == whole["text"]
    expect(pane.get_by_role("heading", name=re.compile("Difference to compaction"))).to_be_visible()
    expect(pane.locator("ins").first).to_be_visible()


def test_decision_leads_to_its_call(page: Page, story: Story) -> None:
    """The facts name the safe cut and why, and link to the call in Context."""
    merged = next(d for d in decisions(story) if d.get("summary", {}).get("source") == "merged")
    open_thread(page, story.thread, "compactions")
    rows(page, "Decisions").filter(has_text="merged").first.click()
    pane = page.get_by_role("complementary", name="Decision")
    expect(pane).to_contain_text(f"after message {merged['cut']['position']}")

    pane.get_by_role("link", name=re.compile("in Context")).click()

    expect(page.get_by_label("Model call")).to_have_value(str(merged["call"]))


def test_store_card(page: Page, story: Story) -> None:
    """The card says what the cache covers and that it fits the history (E51 in part)."""
    card = api(story.server, f"/threads/{story.thread}/compactions")["card"]
    open_thread(page, story.thread, "compactions")

    shown = page.get_by_role("region", name="Compaction store")
    expect(shown).to_contain_text(f"{card['cache']['prefix_n']} messages")
    expect(shown).to_contain_text("matches")
    expect(shown).to_contain_text("0 of 3")


def test_none_yet(page: Page, story: Story) -> None:
    """A thread without decisions says when there will be some."""

    story.model.add(Reply(text="Hello."))
    talk(story.server, "quiet", "Hi")
    open_thread(page, "quiet", "compactions")

    expect(page.get_by_role("heading", name="No compaction yet")).to_be_visible()


def test_a_decision_made_meanwhile_appears(page: Page, story: Story) -> None:
    """A decision made between reading the list and subscribing is listed as well."""
    story.model.add(Reply(text="Hello."))
    talk(story.server, "decided", "Hi")
    let_go = held_socket(page)

    def late(route: Route) -> None:
        answer = route.fetch()
        url = f"{story.server.url}/console/api/threads/decided"
        first = api(story.server, "/threads/decided/messages")["messages"][0]["id"]
        pinned = httpx.put(f"{url}/pins/{first}", trust_env=False, timeout=scaled(10))
        assert pinned.status_code == 200, pinned.text
        route.fulfill(response=answer)
        let_go()

    page.route("**/console/api/threads/decided/compactions", late, times=1)
    open_thread(page, "decided", "compactions")

    expect(rows(page, "Decisions")).to_have_count(1)


def test_pin_and_unpin(page: Page, story: Story) -> None:
    """A message is pinned and let go in Context's detail pane; both are decisions on record."""
    story.model.add(Reply(text="It goes on."))
    talk(story.server, "pinning", "How does it go?")
    open_thread(page, "pinning", "context")
    rows(page, "History").first.click()
    page.keyboard.press("Enter")
    pane = page.get_by_role("complementary", name="Details")
    for word in ("Pin", "Unpin"):
        pane.get_by_role("button", name=word, exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name=word, exact=True).click()
        expect(page.get_by_role("dialog")).to_have_count(0)

    expect(pane.get_by_role("button", name="Pin", exact=True)).to_be_visible()
    found = api(story.server, "/threads/pinning/compactions")["compactions"]
    assert [decision["action"] for decision in found] == ["pin", "unpin"]


NOTES = "Write the new notes now."


GOOD = Reply(text=f"## Goal\n- {'the parts are all done by now ' * 8}")


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Serve an agent whose model summarises; its thread can be compacted and was not yet."""
    with served("failing", tmp_path_factory.mktemp("acting")) as (server, model):
        story = Story(server, model, "broken")
        model.when(NOTES, GOOD)
        say_parts(story)
        yield story


def say_parts(story: Story) -> None:
    """Have a conversation that is worth a summary and below the trigger."""
    story.model.add(*[Reply(text=f"Part {n}. {ANSWERS[0] * 8}") for n in range(4)])
    talk(story.server, story.thread, *[f"What of part {n}?" for n in range(4)])


def post(story: Story, path: str) -> None:
    """Do what a button does."""
    url = f"{story.server.url}/console/api{path}"
    answer = httpx.post(url, json={}, trust_env=False, timeout=scaled(10))
    assert answer.status_code in (200, 202), answer.text


def card_of(story: Story) -> dict[str, Any]:
    """Return the card of the story's thread."""
    found: dict[str, Any] = api(story.server, f"/threads/{story.thread}/compactions")["card"]
    return found


def noted(story: Story) -> int:
    """Return how many compactions of the story's thread are on record: they are over."""
    return len(decisions(story))


def summaries(story: Story) -> int:
    """Return how many summaries the model was asked for."""
    return sum(NOTES in json.dumps(request.json) for request in story.model.requests)


@contextmanager
def begun(story: Story) -> Iterator[str]:
    """Give a run that has begun to answer and waits until the block ends."""
    run = f"run-{uuid4().hex[:8]}"
    body = question(story.thread, run, "And now?")
    url = f"{story.server.url}/agui"
    with httpx.stream("POST", url, json=body, trust_env=False, timeout=scaled(10)) as answer:
        lines = answer.iter_lines()
        next(lines)
        story.model.wait_held()
        try:
            yield run
        finally:
            story.model.release()
            list(lines)


class TestActions:
    """The buttons of the store card, on a server of their own."""

    @pytest.fixture
    def origin(self, acting: Story) -> str:
        """Look at that server."""
        return acting.server.url

    def test_compact_now(self, page: Page, acting: Story) -> None:
        """It says what it will do and asks; then there is one summary, and an undo (E87)."""
        own = replace(acting, thread="own")
        say_parts(own)
        open_thread(page, "own", "compactions")
        before = summaries(own)
        card = page.get_by_role("region", name="Compaction store")
        card.get_by_role("button", name="Compact now").click()
        dialog = page.get_by_role("dialog", name="Compact now?")
        expect(dialog).to_contain_text("stored history is not touched")
        dialog.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("heading", name="No compaction yet")).to_be_visible()
        assert summaries(own) == before

        card.get_by_role("button", name="Compact now").click()
        dialog.get_by_role("textbox").fill("the parts")
        dialog.get_by_role("button", name="Compact", exact=True).click()

        expect(rows(page, "Decisions")).to_have_count(1)
        expect(rows(page, "Decisions").first).to_contain_text("manual")
        expect(card).to_contain_text("matches")
        assert summaries(own) == before + 1
        card.get_by_role("button", name="Undo").click()
        page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        expect(rows(page, "Decisions").first).to_contain_text("manual · undo")

    def test_compact_now_with_the_breaker_open(self, page: Page, acting: Story) -> None:
        """It makes one summariser call, and the failures are back to 0 (E87, SUM10)."""
        path = f"/threads/{acting.thread}"
        acting.model.when(NOTES, Reply(text=" "))
        for failures in (1, 2, 3):
            post(acting, f"{path}/compact")
            wait_until(lambda n=failures: noted(acting) == n, 10, "it failed, and that is noted")
            assert card_of(acting)["failures"] == failures
        acting.model.when(NOTES, GOOD)
        open_thread(page, acting.thread, "compactions")
        card = page.get_by_role("region", name="Compaction store")
        expect(card).to_contain_text("paused after 3 failures")
        before = summaries(acting)

        card.get_by_role("button", name="Compact now").click()
        page.get_by_role("dialog").get_by_role("button", name="Compact", exact=True).click()

        expect(card).to_contain_text("0 of 3")
        assert summaries(acting) == before + 1
        for tab in ("timeline", "context", "compactions"):
            open_thread(page, acting.thread, tab)
        assert summaries(acting) == before + 1, "opening a page asks no model"

    def test_a_busy_thread_is_refused(self, page: Page, acting: Story, complaints: Any) -> None:
        """The dialog stays and names the run that is active (E87)."""
        acting.model.add(Reply(text="Slowly.", hold_after=1))
        open_thread(page, acting.thread, "compactions")
        with begun(acting) as run:
            button = page.get_by_role("button", name="Compact now")
            button.click()
            dialog = page.get_by_role("dialog", name="Compact now?")
            dialog.get_by_role("button", name="Compact", exact=True).click()
            expect(dialog.get_by_role("alert")).to_contain_text(run)
            complaints.allow("409")
