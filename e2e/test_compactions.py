"""Compactions: every decision, and what the summary said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from console_pages import api, open_thread, rows, talk
from console_story import Story
from playwright.sync_api import Page, expect
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
