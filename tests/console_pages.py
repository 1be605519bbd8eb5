"""How tests use the console: by roles and names, and by talking to the server behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
from deadlines import scaled
from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect
from processes import HttpProcess


def talk(server: HttpProcess, thread: str, *texts: str) -> list[str]:
    """Send user messages one after another, each when the run before has ended; return run ids."""
    runs = []
    with httpx.Client(base_url=server.url, trust_env=False, timeout=scaled(30)) as client:
        for text in texts:
            runs.append(f"run-{uuid4().hex[:8]}")
            answer = client.post("/agui", json=question(thread, runs[-1], text))
            assert answer.status_code == 200, answer.text
    return runs


def question(thread: str, run: str, text: str) -> dict[str, Any]:
    """Return a request with one new user message."""
    message = {"id": f"u-{uuid4().hex[:8]}", "role": "user", "content": text}
    return {
        "threadId": thread,
        "runId": run,
        "messages": [message],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {"backscroll.snapshot": "never"},
    }


def api(server: HttpProcess, path: str, **params: Any) -> Any:
    """Return the JSON answer of the operator API."""
    url = f"{server.url}/console/api{path}"
    answer = httpx.get(url, params=params, trust_env=False, timeout=scaled(10))
    assert answer.status_code == 200, (path, answer.status_code, answer.text)
    return answer.json()


def entries(server: HttpProcess, thread: str) -> list[dict[str, Any]]:
    """Return the whole log of a thread, with bodies."""
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        page = api(server, f"/threads/{thread}/entries", after=after, limit=1000, fields="full")
        found += page["entries"]
        if not page["entries"] or not page["more"]:
            return found
        after = page["entries"][-1]["seq"]


def open_thread(page: Page, thread: str, tab: str = "timeline", query: str = "") -> None:
    """Open a page of a thread."""
    page.goto(f"/console/threads/{thread}/{tab}{query}")


def listing(page: Page, name: str) -> Locator:
    """Return a list by its name, whatever its role."""
    return page.get_by_role("grid", name=name).or_(page.get_by_role("feed", name=name))


def rows(page: Page, name: str) -> Locator:
    """Return the rows of a list that are in the document, headings left out."""
    return listing(page, name).locator("[data-key]")


def texts(locator: Locator) -> Iterator[str]:
    """Yield what rows say, in their order."""
    for text in locator.all_inner_texts():
        yield " ".join(text.split())


def drawn(page: Page) -> None:
    """Return when everything the page knows by now is drawn: pages draw once per frame."""
    frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(f"() => {frames}.then(() => true)")


def caught_up(page: Page, server: HttpProcess, thread: str) -> None:
    """Return when a page has received and drawn all that is in the log of its thread."""
    head = api(server, f"/threads/{thread}")["head"]
    seq = f"{head:,}".replace(",", "\u202f")
    expect(page.get_by_text(f"live · seq {seq} · 0 behind", exact=True)).to_be_visible()
    drawn(page)


def say(page: Page, text: str) -> None:
    """Send a message from Try it."""
    page.get_by_role("textbox", name="Message").fill(text)
    page.keyboard.press("Enter")


def wait_idle(page: Page) -> None:
    """Return when no run goes on in Try it."""
    expect(page.get_by_text("idle", exact=True)).to_be_visible(timeout=scaled(20) * 1000)


class HeldAnswer:
    """Keeps back the first answer to a matching request until `release`; later ones pass."""

    def __init__(self, page: Page, url: str | re.Pattern[str]) -> None:
        """Begin before the page asks."""
        self._page, self._asked = page, 0
        self._held: list[Callable[[], None]] = []
        page.route(url, self._answer)

    def wait(self) -> None:
        """Return once the answer is there and kept back."""
        while not self._held:
            drawn(self._page)

    def release(self) -> None:
        """Let the page have it."""
        self._held[0]()

    def _answer(self, route: Route) -> None:
        self._asked += 1
        if self._asked > 1:
            route.continue_()
            return
        answer = route.fetch()
        self._held.append(lambda: route.fulfill(response=answer))


def held_socket(page: Page) -> Callable[[], None]:
    """Hold back what a page tells the console socket; what is returned lets it go, from then on."""
    held: list[Callable[[], None]] = []
    is_held = True

    def bridge(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def told(text: str | bytes) -> None:
            held.append(lambda: server.send(text))
            if not is_held:
                let_go()

        socket.on_message(told)

    def let_go() -> None:
        nonlocal is_held
        is_held = False
        while held:
            held.pop(0)()

    page.route_web_socket(re.compile("/console/ws"), bridge)
    return let_go


def module(page: Page, name: str, expression: str, *args: Any) -> Any:
    """Import a module of the console in the page and evaluate an expression over it, as `m`."""
    source = f"""async ([name, args]) => {{
      const base = document.querySelector('script[type=module]').src;
      const m = await import(new URL(name, base).href);
      return JSON.stringify(await ({expression})(m, ...args)) ?? 'null';
    }}"""
    return json.loads(page.evaluate(source, [name, args]))
