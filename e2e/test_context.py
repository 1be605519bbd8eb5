"""Context: the full history beside exactly what the model was sent."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from console_pages import (
    HeldAnswer,
    api,
    held_socket,
    listing,
    open_thread,
    rows,
    talk,
    texts,
)
from console_story import Story, served, tell
from playwright.sync_api import Browser, BrowserContext, Page, Route, ViewportSize, expect
from scripted_provider import Reply

PICTURES = Path(__file__).resolve().parent.parent / "docs/images"
TALL: ViewportSize = {"width": 1440, "height": 2400}
HISTORY, SENT = "Full history", "Sent to the model"


@pytest.fixture
def origin(story: Story) -> str:
    """Look at the server of the story."""
    return story.server.url


@pytest.fixture
def tall(page: Page) -> Page:
    """Give a page on which every row of a call is in sight."""
    page.set_viewport_size(TALL)
    return page


def show(page: Page, story: Story, call: int | str, more: str = "") -> None:
    """Open a call and wait for its rows, and for the words in them, which come after."""
    open_thread(page, story.thread, "context", f"?call={call}{more}")
    expect(rows(page, SENT).first).to_be_visible()
    for name in (HISTORY, SENT):
        expect(rows(page, name).locator(".preview:empty")).to_have_count(0)


def fates(page: Page, name: str) -> list[str]:
    """Return the word of each row's fate badge."""
    badges = rows(page, name).locator("[data-fate]")
    return [text.split()[1] for text in badges.all_inner_texts()]


def spans(story: Story, call: int, attempt: int = -1) -> list[dict[str, Any]]:
    """Return the spans of a call's attempt."""
    whole = api(story.server, f"/threads/{story.thread}/calls/{call}")
    found: list[dict[str, Any]] = whole["attempts"][attempt]["spans"]
    return found


def test_nothing_compacted(tall: Page, story: Story) -> None:
    """Every row is kept, and right is left plus what was injected (E30)."""
    show(tall, story, 5)
    expect(rows(tall, HISTORY)).to_have_count(9)

    assert fates(tall, HISTORY) == ["kept"] * 9
    assert fates(tall, SENT) == ["injected", *["kept"] * 9]
    left, right = list(texts(rows(tall, HISTORY))), list(texts(rows(tall, SENT)))
    assert right[1:] == left
    expect(tall.get_by_text("nothing compacted")).to_be_visible()


def test_micro_compaction(tall: Page, story: Story) -> None:
    """Rows are placeholders or truncated, with the text that the model received (E31)."""
    call = story.call_with("placeholder")
    at = story.attempts().index((call, 1))
    received = story.model.requests[at].messages
    show(tall, story, call)

    wanted = [
        (span["fate"], n)
        for span in spans(story, call)
        if span["fate"] in ("placeholder", "truncated")
        for n in range(span["sent"][0], span["sent"][1] + 1)
    ]
    assert wanted
    for fate, number in wanted:
        row = rows(tall, SENT).nth(number - 1)
        expect(row).to_contain_text(fate)
        row.click()
        place = row.locator("span").first.inner_text()
        expect(tall.get_by_role("heading", name=f"Message {place}")).to_be_visible()
        body = tall.get_by_role("heading", name=re.compile("^Sent · ")).locator("..")
        assert body.locator("[dir=auto] .text").inner_text() == received[number - 1]["content"]


def test_every_call_shows_what_was_received(page: Page, story: Story) -> None:
    """For every call and attempt of sixty, the right side is what the model received (E32)."""
    attempts = story.attempts()
    requests = story.model.requests[: len(attempts)]
    assert len(attempts) == 61

    for (call, attempt), request in zip(attempts, requests, strict=True):
        query = f"?call={call}&attempt={attempt}&lens=sent"
        if (call, attempt) == attempts[0]:
            open_thread(page, story.thread, "context", query)
        else:
            go(page, query)
        articles = page.get_by_role("region", name="What was sent").get_by_role("article")
        expect(page.get_by_label("Model call")).to_have_value(str(call))
        if (call, 2) in attempts:
            pressed = page.get_by_role("button", name=f"attempt {attempt}")
            expect(pressed).to_have_attribute("aria-pressed", "true")
        expect(articles).to_have_count(len(request.messages))
        shown = articles.locator("[dir=auto]").evaluate_all("all => all.map(e => e.textContent)")
        assert shown == [as_text(message) for message in request.messages], (call, attempt)


def go(page: Page, query: str) -> None:
    """Change the query as a link of the console would."""
    page.evaluate(
        """(query) => {
          history.pushState(null, '', location.pathname + query);
          dispatchEvent(new PopStateEvent('popstate'));
        }""",
        query,
    )


def as_text(message: dict[str, Any]) -> str:
    """Return a message of the wire as the console writes it."""
    calls = [
        f"→ {call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls", ())
    ]
    lines = [message.get("content") or "", *calls]
    return "\n".join(line for line in lines if line)


@pytest.mark.parametrize("attempt", [1, 2])
def test_attempts_of_an_overflow(tall: Page, story: Story, attempt: int) -> None:
    """A forced compaction makes attempt 2; both can be looked at (E32)."""
    call = next(call for call in story.calls() if len(call["attempts"]) == 2)
    received = story.model.requests[story.attempts().index((call["call"], attempt))].messages
    show(tall, story, call["call"])

    tall.get_by_role("button", name=f"attempt {attempt}").click()

    expect(rows(tall, SENT)).to_have_count(len(received))
    assert f"attempt={attempt}" in tall.url
    expect(tall.get_by_role("button", name=f"attempt {attempt}")).to_have_attribute(
        "aria-pressed", "true"
    )


def test_summary(tall: Page, story: Story) -> None:
    """One folded range, a funnel, the summary's words, and where it came from (E33)."""
    made = [d for d in decisions(story) if d.get("summary", {}).get("source") == "merged"][0]
    show(tall, story, made["call"])

    first = rows(tall, HISTORY).first
    expect(first).to_contain_text(f"1–{made['covers'][1]}")
    expect(first).to_contain_text("Σ summarised")
    summary = rows(tall, SENT).nth(1)
    expect(summary).to_contain_text("merged")
    expect(summary).to_contain_text(made["summary"]["sha256"][:8])
    expect(tall.locator("path[data-fate=summarised]")).to_have_count(1)
    summary.click()
    stored = api(story.server, f"/threads/{story.thread}/compactions/{made['compaction']}")["text"]
    expect(tall.get_by_label("Stored and sent")).to_contain_text(stored.splitlines()[0])


def test_summary_from_the_cache(tall: Page, story: Story) -> None:
    """The call after the one that made it says cache, and names the maker (E33)."""
    made = [d for d in decisions(story) if d.get("summary", {}).get("source") == "fresh"][0]

    show(tall, story, made["call"] + 1)

    summary = rows(tall, SENT).nth(1)
    expect(summary).to_contain_text("cache")
    expect(summary).to_contain_text(f"made by call {made['call']}")


def decisions(story: Story) -> list[dict[str, Any]]:
    """Return all compaction decisions of the story."""
    found: list[dict[str, Any]] = api(story.server, f"/threads/{story.thread}/compactions")[
        "compactions"
    ]
    return found


def test_earlier_turns_stay_visible(tall: Page, story: Story) -> None:
    """After a summary the history still has every message, with a divider (console-04)."""
    call = story.call_with("summarised")
    span = next(s for s in spans(story, call) if s["fate"] == "summarised")
    last = span["history"][1]
    heads = api(story.server, f"/threads/{story.thread}/messages", **{"from": 1, "to": last})
    show(tall, story, call)
    before = rows(tall, HISTORY).count()

    rows(tall, HISTORY).first.click()

    row = rows(tall, HISTORY).nth(1)
    expect(row).to_contain_text(heads["messages"][0]["preview"][:40])
    expect(row).to_contain_text("summarised")
    assert rows(tall, HISTORY).count() > before
    listing(tall, HISTORY).evaluate("(list, top) => { list.scrollTop = top; }", last * 44)
    expect(rows(tall, HISTORY).and_(tall.locator("[data-cut]"))).to_have_count(1)


def test_budget_adds_up(tall: Page, story: Story) -> None:
    """Parts add up to what was sent, fates to the history; both sources are named (E35)."""
    call = story.call_with("summarised")
    attempt = api(story.server, f"/threads/{story.thread}/calls/{call}")["attempts"][-1]
    show(tall, story, call)
    tall.get_by_role("button", name="Show as table").click()

    cells = tall.get_by_role("table").get_by_role("row").all_inner_texts()
    table = {line.split("\t")[0]: number(line.split("\t")[1]) for line in cells[1:]}
    parts = ["system", "tool definitions", "summary", "messages", "tool results", "injected notes"]
    assert sum(table.get(part, 0) for part in parts) == table["sent in all"]
    assert table["sent in all"] == attempt["sent"]["tokens"]
    expect(tall.get_by_text(re.compile(r"provider [\d\u202f]+ · estimate"))).to_be_visible()
    legend = tall.locator("[data-fate][title]").all_inner_texts()
    assert sum(int(text.split()[1]) for text in legend[:-1]) == attempt["history"]["messages"]


def number(text: str) -> int:
    """Return a number as people read it."""
    return int(text.replace("\u202f", "").replace("\u2212", "-"))


GAPS = """() => {
  const lists = [...document.querySelectorAll('[role=feed]')];
  const rowAt = (list, index) => [...list.querySelectorAll('[data-key]')]
    .find((row) => Number(row.getAttribute('aria-posinset')) === index + 1);
  return [...document.querySelectorAll('path.ribbon')].filter((path) => path.dataset.left
    && path.dataset.right).flatMap((path) => {
    const box = path.ownerSVGElement.getBoundingClientRect();
    const left = rowAt(lists[0], Number(path.dataset.left));
    const right = rowAt(lists[1], Number(path.dataset.right));
    const ends = path.getAttribute('d').match(/^M0 (\\S+)C.* (\\S+)V/);
    const [start, end] = ends.slice(1).map(Number);
    return [left && box.top + start - left.getBoundingClientRect().top,
      right && box.top + end - right.getBoundingClientRect().top,
      left && box.left - left.getBoundingClientRect().right,
      right && box.right - right.getBoundingClientRect().left];
  }).filter((gap) => gap !== undefined);
}"""


@pytest.mark.parametrize("root", ["16px", "24px"])
def test_ribbons_meet_their_rows(page: Page, story: Story, root: str) -> None:
    """Ribbon ends are at the edges of the rows they join, at 100 % and 150 % (E36)."""
    show(page, story, story.call_with("truncated"))
    page.evaluate("(size) => { document.documentElement.style.fontSize = size; }", root)
    page.set_viewport_size({"width": 1500, "height": 1000})

    expect(page.locator("path[data-fate=truncated]")).to_have_count(1)
    near = "((gaps) => gaps.length >= 12 && gaps.every((gap) => Math.abs(gap) <= 1))"
    page.wait_for_function(f"() => innerWidth === 1500 && {near}(({GAPS})())")
    gaps = page.evaluate(GAPS)

    assert len(gaps) >= 12
    assert max(abs(gap) for gap in gaps) <= 1


def test_selecting_selects_the_other_side(tall: Page, story: Story) -> None:
    """A row and its counterpart are selected together, from either side (E36)."""
    show(tall, story, story.call_with("truncated"))
    selected = lambda name: rows(tall, name).and_(tall.locator("[aria-current=true]"))  # noqa: E731

    rows(tall, HISTORY).filter(has_text="kept").last.click()
    expect(selected(SENT)).to_have_count(1)
    assert list(texts(selected(SENT))) == list(texts(selected(HISTORY)))

    rows(tall, SENT).filter(has_text="truncated").first.click()
    expect(selected(HISTORY)).to_contain_text("truncated")


def test_difference(tall: Page, story: Story) -> None:
    """The difference shows what was cut out, and the marker that stands there (E37)."""
    show(tall, story, story.call_with("truncated"))

    rows(tall, HISTORY).filter(has_text="truncated").first.click()

    pane = tall.get_by_role("complementary", name="Details")
    gone, came = pane.locator("del"), pane.locator("ins")
    expect(gone.first).to_be_visible()
    assert "touring saddles" in "".join(gone.all_inner_texts())
    assert "tokens in full" in "".join(came.all_inner_texts())
    expect(pane.get_by_text(re.compile(r"larger than \d+ tokens"))).to_be_visible()


def test_link_to_a_folded_message(page: Page, story: Story) -> None:
    """A link to a message inside the summary unfolds the range and lands on it (E38)."""
    call = story.call_with("summarised")
    head = api(story.server, f"/threads/{story.thread}/messages", **{"from": 40, "to": 40})
    name = head["messages"][0]["id"]

    for _ in range(2):
        show(page, story, call, f"&m={name}")
        row = rows(page, HISTORY).and_(page.locator("[aria-current=true]"))
        expect(row).to_be_in_viewport(ratio=1)
        assert next(texts(row)).startswith("40 ")
        expect(page.get_by_role("heading", name="Message 40")).to_be_visible()


def test_changing_the_call_keeps_the_message(tall: Page, story: Story) -> None:
    """The selected message stays selected where it exists (E39)."""
    show(tall, story, 11)
    rows(tall, HISTORY).nth(8).click()
    expect(tall.get_by_role("heading", name="Message 9")).to_be_visible()

    tall.keyboard.press("[")

    expect(tall.get_by_label("Model call")).to_have_value("10")
    expect(rows(tall, HISTORY).and_(tall.locator("[aria-current=true]"))).to_contain_text("9")
    expect(tall.get_by_role("heading", name="Message 9")).to_be_visible()


def test_request_body_matches(page: Page, story: Story) -> None:
    """The rebuilt request body says that it matches the recorded hash."""
    open_thread(page, story.thread, "context", "?call=60&lens=wire")

    expect(page.get_by_text("derived · matches the recorded hash")).to_be_visible()
    expect(page.get_by_role("tree", name="Request body")).to_contain_text("messages")


def test_latest_call_appears_by_itself(page: Page, story: Story) -> None:
    """The page of the newest call goes on to a newer one when it is made."""
    story.model.add(Reply(text="Hello."), Reply(text="Hello again."))
    talk(story.server, "fresh", "Hi")
    open_thread(page, "fresh", "context")
    expect(page.get_by_label("Model call")).to_have_value("1")
    expect(rows(page, HISTORY)).to_have_count(1)

    talk(story.server, "fresh", "And now?")

    expect(page.get_by_label("Model call")).to_have_value("2")
    expect(rows(page, HISTORY)).to_have_count(3)


def test_a_call_made_meanwhile_appears(page: Page, story: Story) -> None:
    """A call made between reading the list and subscribing is gone on to as well."""
    story.model.add(Reply(text="Hello."), Reply(text="Hello again."))
    talk(story.server, "meanwhile", "Hi")
    let_go = held_socket(page)

    def late(route: Route) -> None:
        answer = route.fetch()
        talk(story.server, "meanwhile", "And now?")
        route.fulfill(response=answer)
        let_go()

    page.route("**/console/api/threads/meanwhile/calls", late, times=1)
    open_thread(page, "meanwhile", "context")

    expect(page.get_by_label("Model call")).to_have_value("2")
    expect(rows(page, HISTORY)).to_have_count(3)


def test_words_of_new_messages_come(page: Page, story: Story) -> None:
    """Messages that are added while the words of the others are on their way get theirs as well."""
    story.model.add(Reply(text="Hello."), Reply(text="Hello again."))
    talk(story.server, "worded", "Hi")
    held = HeldAnswer(page, "**/console/api/threads/worded/messages?*")
    open_thread(page, "worded", "context")
    expect(page.get_by_label("Model call")).to_have_value("1")
    held.wait()

    talk(story.server, "worded", "And now?")
    expect(page.get_by_label("Model call")).to_have_value("2")
    expect(rows(page, HISTORY)).to_have_count(3)
    held.release()

    expect(rows(page, HISTORY).last).to_contain_text("And now?")
    expect(rows(page, HISTORY).locator(".preview:empty")).to_have_count(0)


def test_lists_scroll_together(page: Page, story: Story) -> None:
    """Scrolling one list to its end brings the other to its end."""
    page.set_viewport_size({"width": 1440, "height": 500})
    show(page, story, 12)
    listing(page, HISTORY).hover()
    page.mouse.wheel(0, 5000)

    expect(rows(page, HISTORY).last).to_be_in_viewport()
    expect(rows(page, SENT).last).to_be_in_viewport()


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Tell the story to an agent without a summariser."""
    with served("dropping", tmp_path_factory.mktemp("dropped")) as (server, model):
        tell(server, model, "dropped", turns=16)
        yield Story(server, model, "dropped")


def test_dropped_without_a_summariser(browser: Browser, dropped: Story) -> None:
    """The oldest segments are dropped and shown; no call is parted from its results (E34)."""
    call = dropped.call_with("dropped")
    with browser.new_context(base_url=dropped.server.url, viewport=TALL) as context:
        page = context.new_page()
        show(page, dropped, call)
        expect(rows(page, HISTORY).first).to_contain_text("× dropped")
        expect(page.locator("path[data-fate=dropped]")).to_have_count(1)

    assert dropped.model.problems == []


def test_keyboard(page: Page, story: Story) -> None:
    """Arrows move, cross and unfold; n goes to the next change; Enter opens, Escape closes."""
    show(page, story, story.call_with("truncated"))
    rows(page, HISTORY).nth(1).focus()

    page.keyboard.press("ArrowRight")
    expect(listing(page, SENT).locator(":focus")).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("n")
    expect(listing(page, HISTORY).locator(":focus")).to_contain_text("truncated")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Details")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Details")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture(
    new_context: Callable[..., BrowserContext],
    story: Story,
    shoot: Callable[[Page, str], Path],
    scheme: str,
) -> None:
    """Take the picture that the README shows; kept in docs/ when BACKSCROLL_PICTURES is set."""
    size = {"width": 1440, "height": 900}
    page = new_context(color_scheme=scheme, viewport=size).new_page()
    show(page, story, story.most_varied())
    rows(page, HISTORY).filter(has_text=re.compile("truncated|placeholder")).first.click()
    expect(page.get_by_role("heading", name="Difference, stored to sent")).to_be_visible()

    picture = shoot(page, f"context-{scheme}")

    if os.environ.get("BACKSCROLL_PICTURES"):
        PICTURES.mkdir(parents=True, exist_ok=True)
        (PICTURES / picture.name).write_bytes(picture.read_bytes())


def test_a_call_that_is_not_there(page: Page, story: Story, complaints: Any) -> None:
    """A call nobody made is named, with a way to try again."""
    complaints.allow("404")

    open_thread(page, story.thread, "context", "?call=99")

    expect(page.get_by_text("There is no call 99.")).to_be_visible()
    expect(page.get_by_role("button", name="Retry")).to_be_visible()


def test_search(tall: Page, story: Story) -> None:
    """The search marks what it found and n walks the hits, also into the folded range."""
    show(tall, story, story.call_with("summarised"))

    tall.get_by_role("searchbox").fill("week 3?")
    tall.keyboard.press("Enter")

    expect(tall.get_by_role("status")).to_have_text("1 message with this text")
    expect(rows(tall, HISTORY).first).to_contain_text("1 hit")
    tall.get_by_role("searchbox").blur()
    tall.keyboard.press("n")
    expect(listing(tall, HISTORY).locator(":focus")).to_contain_text("How was week 3?")
    assert "q=week+3" in tall.url


@pytest.mark.parametrize(("part", "role"), [("tool results", "tool"), ("summary", "summary")])
def test_only_one_part(tall: Page, story: Story, part: str, role: str) -> None:
    """A part of the budget, pressed, leaves only what belongs to it; pressed again, all."""
    show(tall, story, story.call_with("truncated"))
    whole = rows(tall, SENT).count()
    button = tall.get_by_role("button", name=re.compile(f"^{part} "))

    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(rows(tall, SENT).and_(tall.locator(f"[data-role={role}]"))).not_to_have_count(0)
    expect(rows(tall, SENT).and_(tall.locator(f":not([data-role={role}])"))).to_have_count(0)
    button.click()

    expect(rows(tall, SENT)).to_have_count(whole)


def test_only_one_fate(tall: Page, story: Story) -> None:
    """A fate of the legend, pressed, leaves only rows of it; the address carries it."""
    show(tall, story, story.call_with("truncated"))

    tall.get_by_role("button", name=re.compile("truncated$")).click()

    expect(tall).to_have_url(re.compile("fate=truncated"))
    for name in (HISTORY, SENT):
        expect(rows(tall, name).and_(tall.locator("[data-fate=kept]"))).to_have_count(0)
    assert set(fates(tall, SENT)) == {"truncated"}
