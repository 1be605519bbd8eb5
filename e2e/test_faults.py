"""Faults that others had, played again in the console: networks, sizes, zones, outsiders."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from console_pages import api, module, open_thread, question, rows, say, talk, wait_idle
from deadlines import scaled
from network import Network
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from processes import PROGRAMS, ServerProcess
from scripted_provider import Call, Hold, Reply, ScriptedProcess

KIB = 1024
MIB = KIB * KIB
LONGEST = """window.longest = 0; new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({type: 'longtask', buffered: true})"""


@dataclass(frozen=True, slots=True)
class Plain:
    """A server whose agent does not compact, and its model."""

    server: ServerProcess
    model: ScriptedProcess


def serving(model: ScriptedProcess, data_dir: Path, **settings: object) -> ServerProcess:
    """Return a server of `waiting_agent`, not started."""
    env = {
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "none-needed",
        "PYTHONPATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PYTHONPATH", "")]),
        **{f"BACKSCROLL_{name.upper()}": str(value) for name, value in settings.items()},
    }
    return ServerProcess("waiting_agent", data_dir=data_dir, env=env)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    """Serve it once for all tests of this file."""
    with ScriptedProcess() as model:
        model.configure(strict=False)
        with serving(model, tmp_path_factory.mktemp("plain"), max_input_bytes=16 * MIB) as server:
            yield Plain(server, model)


@pytest.fixture
def origin(plain: Plain) -> str:
    """Look at that server."""
    return plain.server.url


def items(page: Page, kind: str) -> Locator:
    """Return the messages of one kind in Try it."""
    return page.get_by_role("region", name="Conversation").locator(f"[data-kind={kind}]")


def test_cut_three_times(plain: Plain, browser: Browser) -> None:
    """reconnect-04: the messages and rows are those from before, each there once."""
    plain.model.add(Reply(calls=(Call("get_order", {"id": 7}),)), Reply(text="It is paid."))
    talk(plain.server, "cut", "Is order 7 paid?")
    with Network(plain.server.port) as network, browser.new_context() as context:
        chat, timeline = context.new_page(), context.new_page()
        chat.goto(f"{network.url}/console/chat/cut")
        timeline.goto(f"{network.url}/console/threads/cut/timeline")
        expect(items(chat, "assistant").last).to_contain_text("It is paid.")
        expect(items(chat, "assistant").get_by_role("link", name="Context")).to_have_count(2)
        expect(rows(timeline, "Timeline").last).to_be_visible()
        before = shown(chat, timeline)
        for _ in range(3):
            network.cut()
            expect(chat.get_by_text("reconnecting", exact=True)).to_be_visible()
            network.restore()
            within = scaled(20) * 1000
            expect(chat.get_by_text("connected", exact=True)).to_be_visible(timeout=within)
        plain.model.add(Reply(text="Yes, since Monday."))
        say(chat, "Really?")
        expect(items(chat, "assistant").last).to_contain_text("since Monday")
        expect(items(chat, "end")).to_have_count(1, timeout=within)
        expect(timeline.get_by_text("since Monday").first).to_be_visible(timeout=within)
        after = shown(chat, timeline)

    assert after[0][: len(before[0])] == before[0] and after[1][: len(before[1])] == before[1]
    assert len(after[0]) == len(before[0]) + 3
    for found in after:
        assert len(found) == len(set(found))


def shown(chat: Page, timeline: Page) -> tuple[list[str], list[str]]:
    """Return what is in the conversation, and the keys of the rows of the timeline."""
    texts = "(all) => all.map((one) => `${one.dataset.kind} ${one.textContent}`)"
    keys = "(all) => all.map((one) => one.dataset.key)"
    return (
        items(chat, "user")
        .or_(items(chat, "assistant"))
        .or_(items(chat, "end"))
        .evaluate_all(texts),
        rows(timeline, "Timeline").evaluate_all(keys),
    )


def test_a_message_that_is_too_large(
    plain: Plain, page: Page, complaints: Any, tmp_path: Path
) -> None:
    """websocket-04: the refusal names the limit, the text stays, a smaller one is accepted."""
    limit = 128 * KIB
    with serving(plain.model, tmp_path, max_input_bytes=limit) as small:
        complaints.allow(re.escape(small.url))
        page.goto(f"{small.url}/console/chat")
        field = page.get_by_role("textbox", name="Message")
        fill(page, limit * 3 // 2)
        expect(page.get_by_role("alert")).to_contain_text("too_large")
        expect(page.get_by_role("alert")).to_contain_text(str(limit))
        assert field.evaluate("(one) => one.value.length") == limit * 3 // 2
        expect(page.get_by_text("connected", exact=True)).to_be_visible()
        assert api(small, "/threads")["threads"] == []

        plain.model.add(Reply(text="That was short."))
        fill(page, limit // 5 // 64 * 64)

        expect(items(page, "assistant").last).to_contain_text("That was short.")
        expect(items(page, "user")).to_have_count(1)


def fill(page: Page, chars: int) -> None:
    """Put a long text into the field and send it."""
    field = page.get_by_role("textbox", name="Message")
    lines = "(one, chars) => { one.value = ('x'.repeat(63) + '\\n').repeat(chars / 64); }"
    field.evaluate(lines, chars)
    page.get_by_role("button", name="Send").click()


def test_a_long_history(plain: Plain, page: Page) -> None:
    """websocket-05: six megabytes come in pages; the conversation and the history are whole."""
    history = [
        {
            "id": f"m{n}",
            "role": ("user", "assistant")[n % 2],
            "content": f"{n} ".ljust(2 * KIB, "x"),
        }
        for n in range(3000)
    ]
    asked = question("long-history", "run-1", "And now?")
    asked["messages"] = [*history, *asked["messages"]]
    plain.model.add(Reply(text="That was long."))
    httpx.post(f"{plain.server.url}/agui", json=asked, trust_env=False, timeout=scaled(30))
    sockets: list[Any] = []
    page.on("websocket", lambda one: sockets.append(one.url) if "/agui" in one.url else None)

    page.goto("/console/chat/long-history")
    expect(items(page, "assistant").last).to_contain_text("That was long.")

    expect(page.get_by_role("button", name=re.compile("Show 100 earlier, of 2.90"))).to_be_visible()
    expect(page.get_by_text("3 002 messages".replace(" ", "\u202f", 1))).to_be_visible()
    assert len(sockets) == 1
    open_thread(page, "long-history", "context")
    expect(rows(page, "Full history").first).to_be_visible()
    expect(page.get_by_text(re.compile("3.002 messages|3.001 messages")).first).to_be_visible()


class Listener(ThreadingHTTPServer):
    """Somebody who waits for the console to ask for something."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Answering)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answering(BaseHTTPRequestHandler):
    """Notes what was asked for."""

    def do_GET(self) -> None:
        """Note and answer."""
        assert isinstance(self.server, Listener)
        self.server.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_nothing_is_loaded_from_outside(plain: Plain, page: Page) -> None:
    """security-02: no view asks anybody for what a text names; links are text that nobody opens."""
    with Listener() as listener:
        out = f"http://127.0.0.1:{listener.server_port}/p?d=secret"
        text = (
            f"![a]({out}) [b]({out}) <img src={out}> <link rel=stylesheet href={out}>"
            f"<a href={out}>"
            f"<style>@import url({out}); body {{background: url({out})}}</style> <{out}> {out}"
            f"<script src={out}></script><iframe src={out}></iframe><video poster={out} src={out}>"
        )
        call = Call("get_order", {"id": text, text: text})
        plain.model.add(Reply(text=text, calls=(call,)), Reply(text=text, reasoning=text))
        talk(plain.server, "outside", text)
        page.goto("/console/threads")
        expect(rows(page, "Threads").first).to_contain_text("![a](http")
        page.goto("/console/chat/outside")
        expect(items(page, "assistant").last).to_contain_text(f"![a]({out})")
        for tab, listed in (("timeline", "Timeline"), ("context", "Full history")):
            open_thread(page, "outside", tab)
            expect(rows(page, listed).filter(has_text="![a](http").first).to_be_visible()
            many = rows(page, listed).count()
            assert many >= 3
            for at in range(many):
                rows(page, listed).nth(at).click()
                pane = page.get_by_role("complementary", name="Details")
                expect(pane.get_by_role("heading").first).not_to_be_empty()
                expect(pane.locator("[aria-busy]")).to_have_count(0)
            assert page.locator(f"a[href*='{listener.server_port}']").count() == 0
        open_thread(page, "outside", "compactions")
        expect(page.get_by_role("heading", level=1)).to_be_attached()
        asked = list(listener.asked)
        listener.shutdown()

    assert asked == []


def test_a_very_large_result(plain: Plain, page: Page) -> None:
    """console-01: twenty megabytes are a bounded preview, a size and a link; nothing freezes."""
    plain.model.add(Reply(calls=(Call("big", {"chars": 21 * MIB}),)), Reply(text="That is all."))
    talk(plain.server, "huge", "z" * (5 * MIB))
    page.add_init_script(LONGEST)
    page.goto("/console/threads")
    row = rows(page, "Threads").filter(has_text="huge")
    expect(row).to_be_visible(timeout=scaled(3) * 1000)

    open_thread(page, "huge", "timeline", "?family=tool")
    rows(page, "Timeline").first.click()
    pane = page.get_by_role("complementary", name="Details")
    expect(pane.get_by_role("link", name="Raw result")).to_be_visible()
    link = pane.get_by_role("link", name="Raw result").get_attribute("href") or ""
    bounded(page)
    open_thread(page, "huge", "context")
    for at in (0, 2):
        rows(page, "Full history").nth(at).click()
        heading = pane.get_by_role("heading", name=f"Message {at + 1}")
        expect(heading).to_be_visible(timeout=scaled(15) * 1000)
        expect(pane.get_by_role("link", name="Raw message")).to_be_visible()
        expect(pane.get_by_text(re.compile(r"show .* more characters")).first).to_be_visible()
        bounded(page)
    page.goto("/console/chat/huge")
    expect(items(page, "assistant").last).to_contain_text("That is all.")
    bounded(page)

    raw = httpx.get(plain.server.url + link, trust_env=False, timeout=scaled(30))
    assert len(raw.json()["content"]) > 20 * MIB


def bounded(page: Page) -> None:
    """Check that what is shown is small, and that showing it held up nobody for long."""
    assert page.evaluate("() => document.querySelector('main').textContent.length") < 500_000
    assert page.evaluate("() => window.longest") < scaled(1) * 1000


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_times_in_any_zone(plain: Plain, new_context: Any, zone: str) -> None:
    """console-02: times are shown in the viewer's zone, which is named, and in UTC beside it."""
    plain.model.add(Reply(text="Hello."))
    talk(plain.server, f"zone-{zone[:4]}", "Hi")
    thread = f"zone-{zone[:4]}"
    page: Page = new_context(timezone_id=zone).new_page()
    open_thread(page, thread, "timeline")
    first = rows(page, "Timeline").first
    expect(first).to_be_visible()
    begun = api(plain.server, f"/threads/{thread}")["started"]
    local = datetime.fromtimestamp(begun / 1000, ZoneInfo(zone))
    utc = datetime.fromtimestamp(begun / 1000, UTC)

    expect(first).to_contain_text(local.strftime("%H:%M"))
    title = first.locator("[title*=UTC]").first.get_attribute("title") or ""
    assert local.strftime("%H:%M") in title and f"{utc:%Y-%m-%d %H:%M:%S}" in title
    assert re.search(r"GMT[+-]\d", title)
    stored = 1_796_000_400_000
    said = module(page, "format.js", "(m, time) => [m.moment(time), m.clock(time)]", stored)
    assert "2026-11-30 01:00:00.000 UTC" in said[0]
    assert said[1].startswith("09:00" if zone == "Asia/Shanghai" else "20:00")
    assert ("29 Nov 2026" in said[0]) == (zone == "America/New_York")


def test_times_of_answers(plain: Plain) -> None:
    """console-02: every time of the API and of the events is whole milliseconds since 1970."""
    plain.model.add(Reply(calls=(Call("get_order", {"id": 1}),)), Reply(text="Paid."))
    talk(plain.server, "times", "Hi")
    found: list[Any] = []
    for path in ("", "/runs", "/entries?fields=full", "/messages", "/calls", "/calls/1", "/rows"):
        times(api(plain.server, f"/threads/times{path}"), found)
    times(api(plain.server, "/system"), found)

    assert len(found) > 40
    assert [one for one in found if type(one) is not int or not 1.5e12 < one < 4e12] == []


def times(value: Any, found: list[Any]) -> None:
    """Collect what has the name of a time."""
    names = {
        "time",
        "timestamp",
        "started",
        "ended",
        "activity",
        "seen",
        "made",
        "asked",
        "expires",
    }
    if isinstance(value, list):
        for one in value:
            times(one, found)
    elif isinstance(value, dict):
        for name, one in value.items():
            found += [one] if name in names and not isinstance(one, dict | list) else []
            times(one, found)


def test_a_failed_run_stays_failed(plain: Plain, page: Page, new_context: Any) -> None:
    """console-03: live, after a reload and in a second browser: failed, with error and mark."""
    words = ({"content": "Once "}, {"content": "upon "}, Hold("fail"))
    plain.model.add(Reply(chunks=(*words, {"error": {"message": "It broke.", "code": 500}})))
    page.goto("/console/chat")
    say(page, "Tell me a story")
    expect(items(page, "assistant").last).to_contain_text("Once upon")
    other: BrowserContext = new_context()
    live = other.new_page()
    thread = page.url.rsplit("/", 1)[-1]
    live.goto(f"/console/threads/{thread}/timeline?family=run")
    expect(rows(live, "Timeline").first).to_contain_text("running")

    plain.model.release("fail")

    for one in (page, page.context.new_page(), other.new_page()):
        if one is not page:
            one.goto(f"/console/chat/{thread}")
        expect(items(one, "end")).to_contain_text("error · ")
        expect(items(one, "assistant").last).to_contain_text("incomplete")
        expect(items(one, "assistant").last).to_contain_text("Once upon")
    for reload in (False, True):
        if reload:
            live.reload()
        expect(rows(live, "Timeline").first).to_contain_text("error")
    wait_idle(page)
    run = api(plain.server, f"/threads/{thread}/runs")["runs"][0]
    assert run["status"] == "error" and run["error"]
    live.goto(f"/console/threads?status=error&q={thread}")
    expect(rows(live, "Threads")).to_have_count(1)
    expect(rows(live, "Threads").first).to_contain_text("error")
    assert api(plain.server, f"/threads/{thread}")["errors"] >= 1
