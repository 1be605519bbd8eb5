"""The console's pure modules, in the browser they are made for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from console_pages import module
from playwright.sync_api import Browser, Page
from processes import ServerProcess

ROOT = Path(__file__).resolve().parent.parent
FOLDS = sorted((ROOT / "tests/data/fold").glob("*.json"))


@pytest.fixture(scope="module")
def shell(browser: Browser, server: ServerProcess) -> Iterator[Page]:
    """Open one page that has the console's modules."""
    errors: list[str] = []
    context = browser.new_context(base_url=server.url, timezone_id="UTC")
    context.on("weberror", lambda event: errors.append(str(event.error)))
    page = context.new_page()
    page.goto("/console/threads")
    yield page
    context.close()
    assert errors == []


@pytest.mark.parametrize("path", FOLDS, ids=lambda path: path.stem)
def test_folds_as_the_server_does(shell: Page, path: Path) -> None:
    """Every fixture that both folds are held to gives its rows (E11, E15)."""
    story = json.loads(path.read_text())

    rows = module(
        shell, "fold.js", "(m, e, f) => m.foldEntries(e, f)", story["entries"], story["floor"]
    )

    assert rows == story["rows"]


@pytest.mark.parametrize("path", FOLDS, ids=lambda path: path.stem)
def test_folding_goes_on_from_rows(shell: Page, path: Path) -> None:
    """A fold that begins with the rows of the first half ends with the same rows."""
    story = json.loads(path.read_text())
    source = """(m, entries, floor) => {
      const half = entries.length >> 1;
      const before = m.foldEntries(entries.slice(0, half), floor);
      const rows = structuredClone(before);
      const head = entries[half - 1].seq;
      const fold = new m.Fold({rows: before, total: rows.length, head, floor});
      for (const entry of entries.slice(half)) {
        for (const row of fold.add(entry)) rows[row.row - 1] = row;
      }
      return rows;
    }"""

    rows = module(shell, "fold.js", source, story["entries"], story["floor"])

    rows_of = lambda found: [(r["row"], r["family"], r["entries"], r["status"]) for r in found]  # noqa: E731
    assert rows_of(rows) == rows_of(story["rows"])


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("m.count(18204)", "18\u202f204"),
        ("m.signed(-4098)", "\u22124\u202f098"),
        ("m.change(118940, 61204)", "\u221249 %"),
        ("m.change(100, 102.2)", "+2.2 %"),
        ("m.percent(61204, 128000)", "48 %"),
        ("m.duration(0.35)", "0.4 ms"),
        ("m.duration(420)", "420 ms"),
        ("m.duration(2100)", "2.1 s"),
        ("m.duration(184000)", "3 min 4 s"),
        ("m.bytes(18420)", "18.4 kB"),
        ("m.ago(0, 125000)", "2 min ago"),
        ("m.plural(1, 'row')", "1 row"),
    ],
)
def test_numbers_as_people_read_them(shell: Page, call: str, shown: str) -> None:
    """Thin spaces, real minus signs, units of a sensible size."""
    assert module(shell, "format.js", f"(m) => {call}") == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a⟦U+202E⟧b"),
        ("nul\0", "nul␀"),
        ("tab\there", "tab␉here"),
        ("a" * 300, "a" * 199 + "…"),
    ],
)
def test_names_show_what_cannot_be_seen(shell: Page, text: str, shown: str) -> None:
    """Controls and bidi overrides in a name become symbols, and a name has an end (E65)."""
    assert module(shell, "format.js", "(m, text) => m.name(text)", text) == shown


def test_lone_surrogates_are_shown(shell: Page) -> None:
    """Half a character is made visible, a whole one stays (E65)."""
    shown = module(shell, "format.js", r"(m) => m.body('\ud800 🌍 \udc00')")

    assert shown == "⟦U+D800⟧ 🌍 ⟦U+DC00⟧"


def test_data_uris_are_named_by_type_and_size(shell: Page) -> None:
    """A picture in a body is not text and not a picture."""
    text = "see data:image/png;base64," + "A" * 4000

    assert module(shell, "format.js", "(m, text) => m.body(text)", text) == (
        "see [image/png, 3.0 kB]"
    )


@pytest.mark.parametrize("thread", ["t1", "a b", "a/b", "..", "ä%?#", "x!()*'", "🌍"])
def test_any_thread_id_round_trips(shell: Page, thread: str) -> None:
    """An id becomes an address and the same id again."""
    source = """(m, id) => {
      const url = new URL('http://h' + m.address('context', {thread: m.keyOf(id)}, {call: 3}));
      const route = m.parse(url.pathname, url.search);
      return [route.page, m.ownerAndId(route.thread).id, route.params.get('call')];
    }"""

    assert module(shell, "route.js", source, thread) == ["context", thread, "3"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/console", "threads"),
        ("/console/threads/t", "thread"),
        ("/console/threads/t/compactions/3", "compactions"),
        ("/console/threads/t/compactions/0", "not-found"),
        ("/console/threads/t/timeline/3", "not-found"),
        ("/console/threads/t/nonsense", "not-found"),
        ("/console/chat/t", "chat"),
        ("/elsewhere", "not-found"),
    ],
)
def test_addresses_lead_to_pages(shell: Page, path: str, name: str) -> None:
    """What is not a page of the console is not found."""
    assert module(shell, "route.js", "(m, path) => m.parse(path).page", path) == name


def test_unknown_parameters_are_kept(shell: Page) -> None:
    """Changing one parameter leaves all others."""
    source = "(m) => m.query(new URLSearchParams('x=1&seq=4'), {seq: null, q: 'a b'})"

    assert module(shell, "route.js", source) == "?x=1&q=a+b"


def test_difference_rebuilds_both_texts(shell: Page) -> None:
    """Whatever two texts are, the pieces give both back (E37)."""
    source = r"""(m) => {
      const letters = 'ab \n你x';
      let seed = 7;
      const random = (n) => (seed = (seed * 16807) % 2147483647) % n;
      const letter = () => letters[random(letters.length)];
      const text = () => Array.from({length: random(14)}, letter).join('');
      for (let round = 0; round < 3000; round += 1) {
        const [before, after] = [text(), text()];
        const {pieces} = m.diff(before, after);
        const side = (not) => pieces.map(({op, text}) => (op === not ? '' : text)).join('');
        if (side('+') !== before || side('-') !== after) return [before, after];
      }
      return 'all';
    }"""

    assert module(shell, "diff.js", source) == "all"


def test_difference_shows_what_was_cut_out(shell: Page) -> None:
    """Text cut from the middle is one piece (E37)."""
    source = "(m, a, b) => m.diff(a, b).pieces.filter((piece) => piece.op !== '=')"

    pieces = module(shell, "diff.js", source, "one two three four", "one four")

    assert pieces == [{"op": "-", "text": "two three "}]


def test_window_has_the_rows_in_sight(shell: Page) -> None:
    """Positions are arithmetic; far rows come to stand at a third of the height."""
    source = """(m) => {
      const at = {scrollTop: 2800, viewport: 280, rowHeight: 28, count: 1000};
      return [m.rowsInSight(at, 2), m.anchorOf({...at, scrollTop: 2810}), m.scrollTo(at, 105),
        m.scrollTo(at, 110), Math.round(m.scrollTo(at, 900)), m.atEnd({...at, scrollTop: 27720})];
    }"""

    assert module(shell, "window.js", source) == [
        {"first": 98, "end": 112},
        {"index": 100, "offset": 10},
        2800,
        2828,
        25107,
        True,
    ]


def test_spans_become_rows_and_pairs(shell: Page) -> None:
    """A range folds, a pinned message parts it, positions without a span were superseded."""
    spans = [
        {"fate": "injected", "sent": [1, 1], "role": "system"},
        {"fate": "summarised", "history": [1, 11], "sent": [2, 2]},
        {"fate": "kept", "history": [12, 12], "sent": [3, 3]},
        {"fate": "summarised", "history": [13, 170], "sent": [2, 2]},
        {"fate": "kept", "history": [173, 174], "sent": [4, 5]},
    ]
    source = """(m, spans) => {
      const {left, right, pairs, counts} = m.pairUp(spans);
      const keys = left.map((row) => row.key + (row.cut ? '|' : ''));
      return [keys, right.map((row) => row.key), pairs, counts];
    }"""

    left, right, pairs, counts = module(shell, "spans.js", source, spans)

    assert left == ["r1", "h12", "r13|", "h173", "h174", "superseded"]
    assert right == ["s1", "s2", "s3", "s4", "s5"]
    assert pairs == [[0, 1], [1, 2], [2, 1], [3, 3], [4, 4]]
    assert counts == {"injected": 1, "summarised": 169, "kept": 3}


def test_feed_takes_each_entry_once_and_names_gaps(shell: Page) -> None:
    """Entries at or below the cursor are old; a hole above the floor is a gap (E18)."""
    source = """(m) => {
      const seqs = (numbers, cursor, floor) => {
        const {fresh, gap} = m.take(numbers.map((seq) => ({seq})), cursor, floor);
        return [fresh.map((entry) => entry.seq), gap];
      };
      return [seqs([4, 5, 6], 5, 0), seqs([8, 9], 5, 0), seqs([8, 9], 5, 7), seqs([3], null, 0)];
    }"""

    assert module(shell, "feed.js", source) == [
        [[6], None],
        [[8, 9], [6, 7]],
        [[8, 9], None],
        [[3], None],
    ]


@pytest.mark.parametrize(
    ("state", "following", "text"),
    [
        ({}, {}, "live · seq 18\u202f204 · 0 behind"),
        ({"head": 18210}, {}, "live · seq 18\u202f204 · 6 behind"),
        ({}, {"paused": True, "waiting": 128}, "paused · 128 new"),
        ({"link": "waiting", "since": 100_000}, {}, "reconnecting · last seq 18\u202f204"),
        ({"link": "waiting", "since": 0}, {}, "offline since 00:00"),
        ({"resync": 310}, {}, "caught up · deltas up to seq 310 removed"),
        ({"gap": [1201, 1264]}, {}, "gap · seq 1\u202f201–1\u202f264 missing"),
        ({"thread": None, "seq": None}, {}, "live"),
    ],
)
def test_badge_says_how_the_connection_is(
    shell: Page, state: dict[str, Any], following: dict[str, Any], text: str
) -> None:
    """Every state of the connection has its words."""
    feed = {"link": "open", "since": 0, "thread": "t", "seq": 18204, "head": 18204, "floor": 0}
    feed |= {"resync": None, "gap": None, "reason": ""} | state
    given = {"paused": False, "waiting": 0} | following

    said = module(shell, "badge.js", "(m, ...args) => m.badge(...args).text", feed, given, 120_000)

    assert said == text


def test_keys_do_not_fire_while_typing(shell: Page) -> None:
    """Letters are text in a field, the browser's with a modifier, and can be switched off (E64)."""
    source = """(m) => {
      const idle = {key: 'j', pending: '', typing: false, modified: false, singles: true};
      const presses = [{}, {typing: true}, {modified: true}, {singles: false}, {key: 'g'},
        {key: 't', pending: 'g'}, {key: 'Escape', typing: true}];
      return presses.map((press) => m.actionOf({...idle, ...press}).action);
    }"""

    said = module(shell, "keys.js", source)

    assert said == ["down", None, None, None, None, "go-threads", "close"]


@pytest.mark.parametrize(
    ("request_", "text", "wrong"),
    [
        ({"matches": True, "sent_matches": True}, "matches the recorded hash", False),
        ({"matches": False, "sent_matches": True}, "differs from the recorded hash", True),
        ({"sent_matches": True}, "hash not comparable · messages match theirs", False),
        ({"sent_matches": False}, "messages differ from the recorded hash", True),
        ({"missing": ["m1"]}, "hash not comparable", False),
    ],
)
def test_a_rebuilt_request_is_compared(
    shell: Page, request_: dict[str, Any], text: str, wrong: bool
) -> None:
    """A body is compared by its bytes, or where it has none by its messages; both are said."""
    said = module(shell, "request_view.js", "(m, r) => m.matchWords(r)", request_)

    assert said == {"text": f"derived · {text}", "wrong": wrong}


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _tokens() -> dict[str, tuple[str, str]]:
    css = (ROOT / "console/console.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)
    return {name: (light, dark) for name, light, dark in found}


@pytest.mark.parametrize("ground", ["bg", "surface", "sunken", "selection"])
def test_colours_can_be_read(ground: str) -> None:
    """Text has 4.5:1 on every ground, edges and graphics 3:1, in light and dark."""
    tokens = _tokens()
    grounds = {"bg", "surface", "sunken", "selection", "line"}

    for name, pair in tokens.items():
        least = 3 if name in ("line-strong", "focus") else 4.5
        for shade in (0, 1):
            if name not in grounds:
                ratio = _contrast(pair[shade], tokens[ground][shade])
                assert ratio >= least, (name, ground, ("light", "dark")[shade], ratio)
