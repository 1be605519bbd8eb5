"""Try it: a client of /agui like any other."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from console_pages import api, listing, rows, say, wait_idle
from console_story import Story
from playwright.sync_api import BrowserContext, Locator, Page, expect
from scripted_provider import Call, Hold, Reply, error


@pytest.fixture
def origin(story: Story) -> str:
    """Look at the server of the story, whose model can be told what to do."""
    return story.server.url


@pytest.fixture
def chat(page: Page) -> Page:
    """Open Try it with a new conversation."""
    page.goto("/console/chat")
    return page


def items(page: Page, kind: str) -> Locator:
    """Return the messages of one kind."""
    return page.get_by_role("region", name="Conversation").locator(f"[data-kind={kind}]")


def thread_of(page: Page) -> str:
    """Return the thread in the address."""
    expect(page).to_have_url(re.compile(r"/console/chat/."))
    return page.url.rsplit("/", 1)[-1]


def words(locator: Locator) -> list[str]:
    """Return the texts of messages without their heading and links."""
    return locator.locator("[dir=auto].text").all_inner_texts()


def half(first: str, second: str) -> Reply:
    """Return a reply that waits in its middle until it is released."""
    return Reply(chunks=({"content": first}, Hold("half"), {"content": second}))


def test_send_stream_tool_end(chat: Page, story: Story) -> None:
    """A message, a tool card with arguments and result, the answer and the end (E80)."""
    story.model.add(Reply(calls=(Call("report", {"pages": 3}),)), Reply(text="All is well."))

    say(chat, "How was the week?")

    expect(items(chat, "assistant").last).to_contain_text("All is well.")
    card = chat.get_by_role("region", name="Tool call report, done")
    expect(card.get_by_role("tree", name="Arguments")).to_contain_text("pages: 3")
    expect(card).to_contain_text("page 2:")
    expect(items(chat, "end")).to_have_text("finished")
    expect(chat.get_by_role("status")).to_have_text("answer complete, 1 tool call")
    assert words(items(chat, "user")) == ["How was the week?"]


def test_an_answer_within_one_frame(page: Page, story: Story) -> None:
    """A run that begins and ends before the page draws is announced, and has its links (E80)."""
    page.add_init_script("window.requestAnimationFrame = (draw) => setTimeout(draw, 1500)")
    page.goto("/console/chat")
    story.model.add(Reply(text="That was quick."))

    say(page, "Be quick")

    expect(items(page, "assistant").last).to_contain_text("That was quick.")
    expect(page.get_by_role("status")).to_have_text("answer complete, 0 tool calls")
    expect(items(page, "assistant").last.get_by_role("link", name="Context")).to_be_visible()


def test_ids_and_links(chat: Page, story: Story) -> None:
    """Ids are those of the store; the links lead to the entry and to the call (E80)."""
    story.model.add(Reply(text="Hello, and welcome."))
    say(chat, "Hi")
    expect(items(chat, "assistant").last).to_contain_text("welcome")
    wait_idle(chat)
    thread = thread_of(chat)
    stored = api(story.server, f"/threads/{thread}/messages")["messages"]
    link = items(chat, "assistant").last.get_by_role("link", name="Context")

    assert f"m={stored[1]['id']}" in (link.get_attribute("href") or "")
    link.click()

    expect(chat.get_by_label("Model call")).to_have_value("1")
    chat.go_back()
    items(chat, "assistant").last.get_by_role("link", name="Timeline").click()
    selected = rows(chat, "Timeline").and_(chat.locator("[aria-selected=true]"))
    expect(selected).to_contain_text("Hello, and welcome.")


def test_reload_in_the_middle(chat: Page, story: Story) -> None:
    """After a reload in mid-answer the text is complete and each part there once (E81)."""
    story.model.add(half("It begins here, ", "and it ends there."))
    say(chat, "Tell me")
    expect(items(chat, "assistant").last).to_contain_text("It begins here,")

    chat.reload()
    expect(items(chat, "assistant").last).to_contain_text("It begins here,")
    story.model.release("half")

    expect(items(chat, "end")).to_have_count(1)
    assert words(items(chat, "assistant")) == ["It begins here, and it ends there."]
    assert words(items(chat, "user")) == ["Tell me"]


def test_socket_cut_in_the_middle(chat: Page, story: Story) -> None:
    """Cut three times in mid-answer, it resumes by its cursor (E81)."""
    sockets: list[Any] = []

    def bridge(route: Any) -> None:
        sockets.append(route)
        route.connect_to_server()

    chat.route_web_socket(re.compile("/agui"), bridge)
    parts = [{"content": f"part {n}, "} for n in range(4)]
    chunks = [x for n, part in enumerate(parts) for x in (part, Hold(f"cut{n}"))]
    story.model.add(Reply(chunks=(*chunks, {"content": "end."})))
    say(chat, "In parts")

    for n in range(3):
        expect(items(chat, "assistant").last).to_contain_text(f"part {n},")
        sockets[-1].close(code=1012, reason="restarting")
        story.model.release(f"cut{n}")
    expect(items(chat, "assistant").last).to_contain_text("part 3,")
    story.model.release("cut3")

    expect(items(chat, "end")).to_have_count(1)
    assert words(items(chat, "assistant")) == ["part 0, part 1, part 2, part 3, end."]
    assert len(sockets) == 4
    assert all("offset=" in socket.url for socket in sockets[1:])


def test_stop(chat: Page, story: Story) -> None:
    """Stopping, then cancelled; the model's connection closes; the next message works (E82)."""
    story.model.add(half("This takes ", "for ever."))
    say(chat, "Begin")
    expect(items(chat, "assistant").last).to_contain_text("This takes")
    number = len(story.model.requests) - 1

    chat.get_by_role("button", name="Stop").click()

    story.model.wait_closed(number, within_s=1)
    expect(items(chat, "end")).to_have_text("cancelled")
    expect(items(chat, "assistant").last).to_contain_text("incomplete")
    story.model.add(Reply(text="Here again."))
    say(chat, "Once more")
    expect(items(chat, "assistant").last).to_contain_text("Here again.")


def test_escape_twice_stops(chat: Page, story: Story) -> None:
    """The key Escape, twice, is the button Stop (E82)."""
    story.model.add(half("This takes ", "for ever."))
    say(chat, "Begin")
    expect(items(chat, "assistant").last).to_contain_text("This takes")
    # However long the second press takes to come: for the page no time passes between the two.
    chat.evaluate("() => { const now = performance.now(); performance.now = () => now; }")

    chat.keyboard.press("Escape")
    expect(chat.get_by_role("button", name="Stop")).to_be_enabled()
    chat.keyboard.press("Escape")

    expect(items(chat, "end")).to_have_text("cancelled")


def test_busy_keeps_the_text(chat: Page, story: Story, context: BrowserContext) -> None:
    """A busy thread is refused with its code and run; the text stays in the field (E85)."""
    story.model.add(half("Wait ", "a moment."))
    say(chat, "First")
    expect(items(chat, "assistant").last).to_contain_text("Wait")

    say(chat, "Second")

    expect(chat.get_by_role("alert")).to_contain_text("thread_busy")
    expect(chat.get_by_role("textbox", name="Message")).to_have_value("Second")
    story.model.release("half")
    expect(items(chat, "end")).to_have_text("finished")
    assert words(items(chat, "user")) == ["First"]


def test_two_tabs(chat: Page, story: Story, context: BrowserContext) -> None:
    """A second tab sees the first one's message and live text; both end the same (E86)."""
    story.model.add(Reply(text="Hello."), half("Seen ", "by both."))
    say(chat, "Hi")
    expect(items(chat, "end")).to_have_count(1)
    other = context.new_page()
    other.goto(f"/console/chat/{thread_of(chat)}")
    expect(items(other, "assistant")).to_have_count(1)

    say(chat, "Is anybody there?")
    expect(items(other, "user").last).to_contain_text("Is anybody there?")
    expect(items(other, "assistant").last).to_contain_text("Seen")
    story.model.release("half")

    expect(items(other, "assistant").last).to_contain_text("by both.")
    expect(items(chat, "assistant").last).to_contain_text("by both.")
    assert words(items(other, "assistant")) == words(items(chat, "assistant"))


def test_failed_run(chat: Page, story: Story) -> None:
    """A failed run shows its code, and the composer is usable (E88)."""
    story.model.add(error(400, "The request is not to my liking."))
    say(chat, "Hi")

    expect(items(chat, "end")).to_contain_text("error · invalid_request")
    chat.reload()
    expect(items(chat, "end")).to_contain_text("error")
    story.model.add(Reply(text="Now it works."))
    say(chat, "Again")
    expect(items(chat, "assistant").last).to_contain_text("Now it works.")


def test_answer_again(chat: Page, story: Story) -> None:
    """The last question is answered again; the old answer is gone from the conversation."""
    story.model.add(Reply(text="One answer."), Reply(text="Another answer."))
    say(chat, "Tell me")
    expect(items(chat, "assistant").last).to_contain_text("One answer.")
    wait_idle(chat)

    chat.get_by_role("button", name="Answer again").click()

    expect(items(chat, "assistant")).to_have_text([re.compile("Another answer.")])
    assert words(items(chat, "user")) == ["Tell me"]


def test_live_timeline_beside(page: Page, story: Story) -> None:
    """On a wide screen the thread's timeline stands beside, and follows."""
    page.set_viewport_size({"width": 1440, "height": 900})
    story.model.add(Reply(text="Hello."), Reply(text="And hello again."))
    page.goto("/console/chat")
    say(page, "Hi")
    beside = rows(page, "Timeline of this thread")
    expect(beside.filter(has_text="Hello.").first).to_be_visible()

    say(page, "Hi again")

    expect(beside.filter(has_text="And hello again.").first).to_be_visible()
    expect(beside.last).to_be_in_viewport()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(page: Page, story: Story, scheme: Any) -> None:
    """axe finds no fault on a conversation with a tool card (E61)."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 1440, "height": 900})
    story.model.add(Reply(calls=(Call("report", {"pages": 1}),)), Reply(text="Done."))
    page.goto("/console/chat")
    say(page, "How was the week?")
    expect(items(page, "end")).to_have_count(1)
    expect(listing(page, "Timeline of this thread")).to_be_visible()

    found = Axe().run(page)

    assert found.violations_count == 0, found.generate_report()
