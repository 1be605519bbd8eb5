"""Questions in Try it and in the frame: asked, answered each by itself, decided once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from console_pages import HeldAnswer, api, drawn, module, question, say, talk
from deadlines import scaled, wait_until
from playwright.sync_api import BrowserContext, Locator, Page, expect
from processes import PROGRAMS, ServerProcess
from scripted_provider import Call, Reply, ScriptedProcess

PAY = Call("pay", {"to": "ann", "amount": 10})
MAIL = Call("mail", {"to": "bob"})
WAITING = re.compile("^[0-9]+ waiting$")


@dataclass(frozen=True, slots=True)
class Desk:
    """A server whose agent asks, its model, and the file where it writes what it really did."""

    server: ServerProcess
    model: ScriptedProcess
    ledger: Path

    def done(self) -> list[str]:
        """Return what was really done since the test began."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Serve the asking agent on two workers, once for all tests."""
    folder = tmp_path_factory.mktemp("asking")
    ledger = folder / "ledger"
    with ScriptedProcess() as model:
        env = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none-needed",
            "PYTHONPATH": str(PROGRAMS),
            "LEDGER": str(ledger),
        }
        with ServerProcess("asking_agent", data_dir=folder / "data", workers=2, env=env) as server:
            yield Desk(server, model, ledger)


@pytest.fixture
def desk(running: Desk) -> Desk:
    """Give the desk with an empty script and an empty ledger."""
    running.model.reset()
    running.ledger.unlink(missing_ok=True)
    return running


@pytest.fixture
def origin(running: Desk) -> str:
    """Look at the server that asks."""
    return running.server.url


def ask(page: Page, desk: Desk, *calls: Call, answer: str = "All done.") -> None:
    """Open Try it, and have the model ask for calls."""
    desk.model.add(Reply(calls=calls), Reply(text=answer))
    page.goto("/console/chat")
    say(page, "Go on")


def card(page: Page, tool: str) -> Locator:
    """Return the card of a tool call."""
    return page.get_by_role("region", name=re.compile(f"^Tool call {tool},"))


def press(page: Page, tool: str, label: str) -> None:
    """Press a button of a call's question."""
    card(page, tool).get_by_role("button", name=label, exact=True).click()


def fill(page: Page, tool: str, field: str, text: str) -> None:
    """Type into the field of a call's question."""
    card(page, tool).get_by_role("textbox", name=field).fill(text)


def decide(desk: Desk, address: str, status: str) -> Any:
    """Decide the first question of a thread over the API, as somebody else would."""
    thread = address.rpartition("/")[2]
    path = f"/threads/{thread}/questions"
    name = api(desk.server, path)["questions"][0]["interrupt_id"]
    body = {"status": status, **({"payload": {"approved": True}} if status == "resolved" else {})}
    url = f"{desk.server.url}/console/api{path}/{name}"
    return httpx.post(url, json=body, trust_env=False, timeout=scaled(10)).json()


def waiting(page: Page, number: int) -> Locator:
    """Return the badge that says how many questions wait, of this test and of those before it."""
    return page.get_by_role("link", name=f"{number} waiting", exact=True)


def done(page: Page, text: str = "All done.") -> None:
    """Wait for the answer that follows."""
    conversation = page.get_by_role("region", name="Conversation")
    expect(conversation.get_by_text(text)).to_be_visible(timeout=scaled(15) * 1000)


def test_approve_with_a_double_click(page: Page, desk: Desk) -> None:
    """The tool runs once; the card says who decided, also after a reload (E83, hitl-03)."""
    ask(page, desk, PAY)
    expect(card(page, "pay")).to_contain_text("pay needs approval before it runs.")
    expect(card(page, "pay").get_by_role("tree", name="Arguments")).to_contain_text("amount: 10")

    card(page, "pay").get_by_role("button", name="Approve", exact=True).dblclick()

    done(page)
    expect(card(page, "pay")).to_contain_text(re.compile(r"approved by local at \d\d:\d\d"))
    page.reload()
    expect(card(page, "pay")).to_contain_text(re.compile(r"approved by local at \d\d:\d\d"))
    expect(card(page, "pay").get_by_role("button", name="Approve", exact=True)).to_be_hidden()
    done(page)

    again, other = (decide(desk, page.url, status) for status in ("resolved", "cancelled"))
    assert (again["first"], again["decision"]["payload"]) == (False, {"approved": True})
    assert other["error"]["code"] == "already_answered"
    assert desk.done() == ["pay ann 10"]


def test_approve_with_changes(page: Page, desk: Desk) -> None:
    """What is no JSON is said before it is sent; what fails the schema keeps the text (E83)."""
    ask(page, desk, PAY)
    press(page, "pay", "Approve with changes")
    fill(page, "pay", "Arguments as JSON", "{to}")
    press(page, "pay", "Send changes")
    expect(card(page, "pay").get_by_role("alert")).to_contain_text("not JSON")
    fill(page, "pay", "Arguments as JSON", '{"to": "ann", "amount": "lots"}')
    press(page, "pay", "Send changes")
    expect(card(page, "pay").get_by_role("alert")).to_contain_text("invalid_arguments")
    field = card(page, "pay").get_by_role("textbox", name="Arguments as JSON")
    expect(field).to_have_value('{"to": "ann", "amount": "lots"}')

    fill(page, "pay", "Arguments as JSON", '{"to": "bob", "amount": 7}')
    press(page, "pay", "Send changes")

    done(page)
    expect(card(page, "pay")).to_contain_text("approved with changes by local")
    assert desk.done() == ["pay bob 7"]


def test_two_questions_each_by_itself(page: Page, desk: Desk) -> None:
    """Rejected with a reason, replied: each says what is still open (E83, hitl-05)."""
    before = len(api(desk.server, "/questions")["questions"])
    ask(page, desk, PAY, MAIL, Call("add", {"a": 1, "b": 2}))
    expect(waiting(page, before + 2)).to_be_visible()
    press(page, "pay", "Reject")
    fill(page, "pay", "Reason, if you like", "wrong address")
    press(page, "pay", "Send rejection")
    expect(card(page, "pay")).to_contain_text("decided · 1 more open")
    expect(page.get_by_role("region", name="Tool call pay, decided")).to_be_visible()
    expect(waiting(page, before + 1)).to_be_visible()
    assert desk.done() == []

    press(page, "mail", "Reply")
    fill(page, "mail", "Answer in place of the call", "I wrote myself")
    press(page, "mail", "Send reply")

    done(page)
    expect(card(page, "pay")).to_contain_text("did not allow this call: wrong address")
    expect(card(page, "mail")).to_contain_text("I wrote myself")
    if before:
        expect(waiting(page, before)).to_be_visible()
    else:
        expect(page.get_by_role("link", name=WAITING)).to_be_hidden()
    assert desk.done() == ["add"]


def test_two_tabs(page: Page, desk: Desk, context: BrowserContext) -> None:
    """Decided in one tab, the other one turns within 2 s; it ran once (E83, E84)."""
    ask(page, desk, PAY, MAIL)
    expect(card(page, "mail").get_by_role("button", name="Approve", exact=True)).to_be_visible()
    other = context.new_page()
    other.goto(page.url)
    expect(card(other, "pay").get_by_role("button", name="Approve", exact=True)).to_be_visible()

    press(page, "pay", "Approve")
    expect(card(other, "pay")).to_contain_text("approved by local", timeout=scaled(4) * 1000)
    press(other, "mail", "Approve")

    done(page)
    done(other)
    assert sorted(desk.done()) == ["mail bob", "pay ann 10"]


def test_an_environment_failure(page: Page, desk: Desk) -> None:
    """Retry runs it again; Give up lets the model read the error (E83)."""
    ask(page, desk, Call("login", {"door": "a"}), Call("login", {"door": "b"}))
    cards = card(page, "login")
    expect(cards.first).to_contain_text("login failed because of its environment")

    cards.first.get_by_role("button", name="Retry").click()
    cards.last.get_by_role("button", name="Give up").click()

    done(page)
    expect(cards.first).to_contain_text("retried by local")
    expect(cards.last).to_contain_text("error: the key is missing")


def test_a_call_of_another_frontend(page: Page, desk: Desk) -> None:
    """A pending call shows a field for its result, or Reject (CONSOLE 9)."""
    thread = f"other-{uuid4().hex[:8]}"
    desk.model.add(Reply(calls=(Call("pick", {"of": "colours"}),)), Reply(text="Red it is."))
    offered = [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]
    body = {**question(thread, f"run-{thread}", "Go"), "tools": offered}
    httpx.post(f"{desk.server.url}/agui", json=body, trust_env=False, timeout=scaled(30))
    page.goto(f"/console/chat/{thread}")
    expect(card(page, "pick")).to_contain_text("A page was asked to run this")
    expect(page.get_by_role("link", name=WAITING)).to_be_visible()

    press(page, "pick", "Send a result")
    fill(page, "pick", "Result", "red")
    press(page, "pick", "Send result")

    done(page, "Red it is.")
    expect(card(page, "pick")).to_contain_text("answered by local")


def test_asked_while_nobody_looked(page: Page, desk: Desk) -> None:
    """hitl-02: both are there on load, in the badge and in Threads; one turns in Try it (E84)."""
    page.goto("/console")
    before = len(api(desk.server, "/questions")["questions"])
    page.goto("about:blank")
    threads = [f"quiet-{uuid4().hex[:8]}" for _ in range(2)]
    for thread in threads:
        desk.model.add(Reply(calls=(PAY,)))
        talk(desk.server, thread, "Go")

    page.goto("/console")
    expect(waiting(page, before + 2)).to_be_visible()
    page.get_by_role("link", name=WAITING).click()
    for thread in threads:
        expect(page.get_by_role("grid", name="Threads")).to_contain_text(thread)
    desk.model.add(Reply(text="All done."))
    page.goto(f"/console/chat/{threads[0]}")
    expect(card(page, "pay").get_by_role("button", name="Approve", exact=True)).to_be_visible()
    decide(desk, page.url, "cancelled")

    expect(card(page, "pay")).to_contain_text("rejected by local", timeout=scaled(4) * 1000)
    expect(waiting(page, before + 1)).to_be_visible(timeout=scaled(4) * 1000)
    done(page)
    assert desk.done() == []


@pytest.mark.parametrize(("status", "body"), [(503, "{}"), (200, "{not json")])
def test_the_list_fails(page: Page, desk: Desk, complaints: Any, status: int, body: str) -> None:
    """hitl-06: the card says that it cannot refresh and stays answerable; it recovers (E84)."""
    complaints.allow("503")
    lists = re.compile("/questions$")
    page.route(lists, lambda route: route.fulfill(status=status, body=body))
    ask(page, desk, PAY, MAIL)
    expect(card(page, "pay")).to_contain_text("cannot refresh")
    press(page, "pay", "Approve")
    expect(card(page, "pay")).to_contain_text("approved")

    page.unroute(lists)
    expect(card(page, "pay")).not_to_contain_text("cannot refresh", timeout=scaled(8) * 1000)
    press(page, "mail", "Approve")

    done(page)
    wait_until(lambda: sorted(desk.done()) == ["mail bob", "pay ann 10"], 5, "both are done")


def test_an_overtaken_list_changes_nothing(page: Page, desk: Desk) -> None:
    """A list that was asked for before a decision and comes after it takes nothing back (E84)."""
    ask(page, desk, PAY, MAIL)
    expect(card(page, "mail").get_by_role("button", name="Approve", exact=True)).to_be_visible()
    held = HeldAnswer(page, re.compile("/questions$"))
    page.reload()
    expect(card(page, "mail").get_by_role("button", name="Approve", exact=True)).to_be_visible()
    held.wait()
    decide(desk, page.url, "cancelled")
    expect(card(page, "pay")).to_contain_text("rejected by local")
    held.release()
    page.evaluate("() => fetch('/console/api/questions').then((answer) => answer.text())")
    drawn(page)

    expect(card(page, "pay").get_by_text("rejected by local")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390])
def test_the_badge_fits_a_narrow_header(page: Page, desk: Desk, width: int) -> None:
    """E62: on a phone nothing in the header lies on anything else while something waits."""
    page.set_viewport_size({"width": width, "height": 800})
    ask(page, desk, PAY)
    expect(card(page, "pay").get_by_role("button", name="Approve", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=WAITING)).to_be_visible()
    drawn(page)

    parts = page.locator(".mark, .header-end > *, .crumbs, .connection")
    boxes = [box for part in parts.all() if (box := part.bounding_box())]

    overlaps = [
        (a, b)
        for a, b in itertools.combinations(boxes, 2)
        if a["x"] + a["width"] > b["x"] + 1
        and b["x"] + b["width"] > a["x"] + 1
        and a["y"] + a["height"] > b["y"] + 1
        and b["y"] + b["height"] > a["y"] + 1
    ]
    assert len(boxes) >= 8 and overlaps == []
    assert max(box["x"] + box["width"] for box in boxes) <= width


def test_a_question_is_accessible(
    page: Page, desk: Desk, shoot: Callable[[Page, str], Path]
) -> None:
    """Cards have no violation that axe finds, also with a form open."""
    ask(page, desk, PAY, MAIL)
    press(page, "pay", "Approve with changes")
    expect(card(page, "pay").get_by_role("textbox")).to_be_visible()
    expect(card(page, "mail").get_by_role("button", name="Approve", exact=True)).to_be_visible()

    shoot(page, "questions")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]})
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize(
    ("mode", "text", "answer"),
    [
        ("approve", "", {"status": "resolved", "payload": {"approved": True}}),
        ("reject", "  ", {"status": "cancelled"}),
        ("reject", " no ", {"status": "cancelled", "payload": {"reason": "no"}}),
        ("edit", "[1]", {"problem": "Arguments are a JSON object."}),
        ("reply", " ", {"problem": "An answer in place of the call needs a text."}),
        ("give-up", "", {"status": "resolved", "payload": {"retry": False}}),
        ("result", "", {"status": "resolved", "payload": {"result": ""}}),
    ],
)
def test_what_a_button_answers(page: Page, mode: str, text: str, answer: Any) -> None:
    """An answer is checked before it is sent (E83)."""
    page.goto("/console/chat")

    found = module(
        page, "question_words.js", "(m, mode, text) => m.payloadOf(mode, text)", mode, text
    )

    assert found == answer


@pytest.mark.parametrize(
    ("kind", "decision", "words"),
    [
        ("approval", {"status": "resolved", "payload": True}, "approved"),
        ("approval", {"status": "resolved", "payload": {"approved": False}}, "rejected"),
        ("approval", {"status": "resolved", "payload": {"result": "x"}}, "replied"),
        ("approval", {"status": "cancelled", "payload": {"reason": "no"}}, "rejected: no"),
        ("approval", {"status": "cancelled", "by": "expiry"}, "expired"),
        ("environment", {"status": "resolved", "payload": {"retry": False}}, "given up"),
        ("environment", {"status": "cancelled"}, "given up"),
        ("client", {"status": "resolved"}, "answered"),
    ],
)
def test_what_a_decision_is_called(page: Page, kind: str, decision: Any, words: str) -> None:
    """Whoever made it, in whatever form (E84)."""
    page.goto("/console/chat")

    found = module(page, "question_words.js", "(m, k, d) => m.decisionWords(k, d)", kind, decision)

    assert found == words
