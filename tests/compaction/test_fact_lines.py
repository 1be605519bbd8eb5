"""Lines of results: rows, hits, and what of a line is shown."""

from __future__ import annotations

import pytest
from backscroll.compaction.fact_lines import (
    ResultReader,
    best_hits,
    result_hits,
    salient_lines,
    split_lines,
    window,
)
from backscroll.compaction.fact_rules import RULES
from deadlines import growth

LOG = "\n".join(
    f"2026-11-30T10:00:{n % 60:02} INFO worker-{n % 4} GET /orders/{n * 7919:08x} 200 {n % 900}ms"
    for n in range(2_000)
)


def found(body: str) -> list[tuple[str, str]]:
    """Return rule and line of each hit."""
    return [(hit.rule.name, hit.line) for hit in result_hits(body, RULES)]


def test_rows_are_no_facts() -> None:
    """FAC4: of a log with an id in each row only the line that is no row is found."""
    assert found(f"{LOG}\ndeploy_id = dpl_7\n{LOG}") == [("value", "deploy_id = dpl_7")]


def test_errors_are_found_among_rows() -> None:
    """Errors are exempt from the row rule, at most two of one shape."""
    body = "\n".join(f"ERROR worker {n}: lost order ord_{n}" for n in range(40))

    assert [rule for rule, _ in found(f"{body}\nValueError: other")] == ["error"] * 3


def test_a_line_has_its_best_rule() -> None:
    """A line is found once, by the rule of best rank."""
    assert found("ERROR E44 in src/a.py\nport: 8080\nsee https://a.example/b") == [
        ("error", "ERROR E44 in src/a.py"),
        ("value", "port: 8080"),
        ("url", "see https://a.example/b"),
    ]
    assert found("") == []


def test_json_on_one_line_is_read_by_member() -> None:
    """A long line of JSON is taken apart, so that its rows are rows and its facts facts."""
    rows = ",".join(f'{{"id":"ord_{n}","total":{n}}}' for n in range(50))
    body = f'{{"deploy_id":"dpl_7","rows":[{rows}]}}'

    assert found(body) == [("value", '"deploy_id":"dpl_7"')]
    assert split_lines('{"a":1}') == ['{"a":1}']


@pytest.mark.parametrize("piece", ["a", "1", "a1", "a.", " a", ".", "a/", "k: 1", '"', "\n", "[{"])
def test_reads_in_linear_time(piece: str) -> None:
    """A body of ten times as many equal pieces costs about ten times as much."""

    def read(count: int) -> object:
        return result_hits(piece * count, RULES)

    assert growth(lambda: read(20_000), lambda: read(200_000)) < 40


def test_salient_lines_are_the_best_in_their_order() -> None:
    """Up to 4 lines are kept, the best ranks first, printed in their old order."""
    body = "v1.2.3 out\nport = 80\nlib 3.4.5\nERROR <b>boom</b>\nid dpl_7\nhost-a.b:54\nTypeError x"

    assert [line.text for line in salient_lines(result_hits(body, RULES))] == [
        "port = 80", "ERROR bboom/b", "host-a.b:54", "TypeError x"
    ]  # fmt: skip
    assert salient_lines(result_hits("nothing here", RULES)) == ()


def test_salient_lines_are_short() -> None:
    """A salient line has at most 160 characters, around what was found."""
    (line,) = salient_lines(result_hits("x " * 500 + "ERROR here " + "y " * 500, RULES))

    assert len(line.text) <= 160
    assert "ERROR here" in line.text


def test_a_window_ends_at_blanks() -> None:
    """Around a hit, whole words are shown where there are blanks."""
    line = "alpha beta gamma HIT delta epsilon"

    assert window(line, 17, 20, 8, 8) == "gamma HIT delta"
    assert window(line, 17, 20, 99, 99) == line
    assert window("a" * 50, 20, 30, 5, 5) == "a" * 20


def test_the_best_hits_keep_their_order() -> None:
    """A limit takes the best ranks and leaves the order alone."""
    hits = result_hits("1.2.3\nk = 5\nERROR", RULES)

    assert [hit.rule.name for hit in best_hits(hits, 2)] == ["value", "error"]


def test_a_result_is_read_once() -> None:
    """A reader remembers the best hits of a body, as many as a message gives to the facts."""
    body = "\n".join(f"key{chr(97 + n)} of {'x' * n} = {n}" for n in range(9))
    reader = ResultReader()

    assert reader.best(body) is reader.best(body)
    assert list(reader.best(body)) == best_hits(result_hits(body, RULES), 6)
