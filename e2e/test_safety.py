"""What people and models wrote is text and nothing else; the policy holds; nothing leaves."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from console_pages import api, open_thread, rows, talk
from console_story import Story
from playwright.sync_api import Page, expect
from scripted_provider import Call, Reply, error

HOSTILE = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
    "<svg/onload='window.ran = 1'>[x](javascript:window.ran=1)"
    "<iframe srcdoc='<script>top.ran = 1</script>'></iframe>"
    "![a](http://127.0.0.1:9/p?d=secret) data:text/html,<b>b</b> \u202egnp.exe\u202c"
)
THREAD = "<img src=x onerror=window.ran=1>"
KEY = quote(THREAD, safe="")
PAGES = ["timeline", "context", "compactions"]


@pytest.fixture
def origin(story: Story) -> str:
    """Look at the server of the story, whose model can be told what to do."""
    return story.server.url


@pytest.fixture(scope="session")
def hostile(story: Story) -> str:
    """Fill a thread with hostile text wherever there is room; return its key, quoted for a path."""
    story.model.add(
        Reply(calls=(Call("report", {"pages": 1, "<b>": HOSTILE}), Call("<img>", HOSTILE))),
        Reply(text=HOSTILE, reasoning=HOSTILE),
        Reply(text="\ud800 lone, and NUL: \0".encode("utf-8", "replace").decode()),
        error(400, HOSTILE),
    )
    talk(story.server, THREAD, HOSTILE, "Again " + HOSTILE, "And again")
    return quote(KEY, safe="")


def unharmed(page: Page) -> None:
    """Check that nothing of it ran and no element came of it."""
    assert page.evaluate("() => window.ran") is None
    for tag in ("iframe", "img", "script:not([src])", "svg [onload]", "a[href^=javascript]"):
        assert page.locator(f"main {tag}").count() == 0, tag


@pytest.mark.parametrize("tab", PAGES)
def test_hostile_text_is_shown(page: Page, hostile: str, tab: str) -> None:
    """Lists show it as text; nothing runs and no request leaves (E65, security-01)."""
    page.set_viewport_size({"width": 1440, "height": 2000})
    open_thread(page, hostile, tab)
    expect(page.get_by_role("heading", level=1)).to_be_attached()
    expect(page.get_by_text("<img src=x onerror=window.ran=1>").first).to_be_visible()
    if tab != "compactions":
        expect(page.get_by_text(re.compile("<script>window.ran")).first).to_be_visible()

    unharmed(page)
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0


def test_hostile_text_in_details(page: Page, hostile: str) -> None:
    """Detail, difference, JSON and raw request show it as text (E65, security-01)."""
    open_thread(page, hostile, "timeline", "?family=tool")
    rows(page, "Timeline").first.click()
    expect(page.get_by_role("complementary", name="Details")).to_contain_text("onerror")
    unharmed(page)

    open_thread(page, hostile, "context")
    rows(page, "Full history").first.click()
    pane = page.get_by_role("complementary", name="Details")
    expect(pane).to_contain_text("<script>window.ran = 1</script>")
    pane.get_by_text("Stored, as JSON").click()
    expect(pane.get_by_role("tree")).to_contain_text("onerror")
    unharmed(page)

    for lens in ("sent", "wire"):
        open_thread(page, hostile, "context", f"?lens={lens}")
        expect(page.get_by_role("region", name="What was sent")).to_be_visible()
        unharmed(page)


def test_hostile_text_in_threads_and_chat(page: Page, hostile: str) -> None:
    """Title, thread id and conversation show it as text; bidi controls are visible (E65)."""
    page.goto("/console/threads?q=" + quote("<script>"))
    row = rows(page, "Threads").first
    expect(row).to_contain_text("<script>window.ran")
    unharmed(page)

    page.goto(f"/console/chat/{hostile}")
    conversation = page.get_by_role("region", name="Conversation")
    expect(conversation).to_contain_text("<svg/onload='window.ran = 1'>")
    expect(conversation).to_contain_text("error")
    unharmed(page)


def test_long_text(page: Page, story: Story) -> None:
    """Five megabytes in one message leave the pages usable and the layout whole (E65)."""
    text = "x" * 5_000_000
    story.model.configure(strict=False)
    story.model.add(Reply(text="That is long."))
    talk(story.server, "long", text)
    story.model.configure(strict=True)

    open_thread(page, "long", "context")
    rows(page, "Full history").first.click()
    pane = page.get_by_role("complementary", name="Details")
    expect(
        pane.get_by_role("button", name=re.compile("show .* more characters")).first
    ).to_be_visible()
    shown = page.evaluate("() => document.querySelector('main').textContent.length")
    assert shown < 200_000


def test_policy_headers(story: Story) -> None:
    """Every answer under /console carries the policy, also errors and files (E66, security-01)."""
    shell = httpx.get(f"{story.server.url}/console/threads", trust_env=False)
    script = re.findall(r'src="([^"]+main\.js)"', shell.text)[0]

    for path in ("/console/threads", script, "/console/api/threads", "/console/api/nothing"):
        headers = httpx.get(story.server.url + path, trust_env=False).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "'unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "trusted-types backscroll" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "attempt",
    [
        "document.body.innerHTML = '<b>x</b>'",
        "trustedTypes.createPolicy('other', {createHTML: (text) => text})",
        "trustedTypes.createPolicy('backscroll', {createHTML: (text) => text})",
        "new Worker('/console/static/x.js')",
    ],
)
def test_policy_holds(page: Page, story: Story, complaints: Any, attempt: str) -> None:
    """Markup from text, another policy, code from text: each throws (E66)."""
    complaints.allow("policy|Content Security Policy|Trusted")
    open_thread(page, story.thread, "context", f"?call={story.call_with('truncated')}")
    rows(page, "Full history").filter(has_text="truncated").first.click()
    expect(page.locator("del").first).to_be_visible()
    source = (
        f"() => {{ try {{ {attempt}; return 'done'; }} catch (error) {{ return error.name; }} }}"
    )

    assert page.evaluate(source) == "TypeError"


def test_unknown_page_asks_nothing_outside(page: Page, story: Story) -> None:
    """The first load asks only this origin, at most 25 times, for at most 300 kB (P9)."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    open_thread(page, story.thread, "context")
    expect(rows(page, "Full history").first).to_be_visible()

    files = [url for url in asked if "/static/" in url]
    assert all(url.startswith(story.server.url) for url in asked)
    assert len(files) <= 40


@pytest.mark.parametrize("scheme", ["light", "dark", "forced"])
@pytest.mark.parametrize("where", ["threads", "system", *PAGES])
def test_accessible(page: Page, story: Story, where: str, scheme: str) -> None:
    """axe finds no fault on any page, a detail open, in light, dark and forced colours (E61)."""
    if scheme == "forced":
        page.emulate_media(forced_colors="active")
    else:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 1440, "height": 900})
    lists = {"timeline": "Timeline", "context": "Full history", "compactions": "Decisions"}
    if where == "threads":
        page.goto("/console/threads")
        expect(rows(page, "Threads").first).to_be_visible()
    elif where == "system":
        page.goto("/console/system")
        expect(page.get_by_role("table").get_by_role("row")).to_have_count(3)
    else:
        open_thread(page, story.thread, where, "?call=28" if where == "context" else "")
        rows(page, lists[where]).last.click()
        expect(page.get_by_role("complementary").get_by_text("seq").first).to_be_visible()

    found = Axe().run(page)

    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("where", ["threads", "system", *PAGES, "chat"])
def test_small_screens(page: Page, story: Story, where: str, shoot: Any) -> None:
    """At 320 pixels nothing makes the page scroll sideways (E62)."""
    page.set_viewport_size({"width": 320, "height": 700})
    path = f"/console/threads/{story.thread}/{where}" if where in PAGES else f"/console/{where}"
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_attached()
    page.wait_for_load_state("networkidle")

    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    shoot(page, f"small-{where}")


def test_api_never_writes(page: Page, story: Story) -> None:
    """Looking at every page leaves the thread as it was: no entry, no model call."""
    asked = len(story.model.requests)
    before = api(story.server, f"/threads/{story.thread}")["head"]

    for tab in PAGES:
        open_thread(page, story.thread, tab)
        page.wait_for_load_state("networkidle")
    page.goto(f"/console/chat/{story.thread}")
    page.wait_for_load_state("networkidle")

    assert api(story.server, f"/threads/{story.thread}")["head"] == before
    assert len(story.model.requests) == asked
