"""The benchmark of compaction, in its smallest form: it runs, and what it plants is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deadlines import scaled
from scripted_provider import Reply, ScriptedProcess

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "bench" / "compaction"
FAMILY = {
    "bird": {
        "place": "user",
        "text": "You must never feed the bird {mark} at night.",
        "probe": "feed the bird {mark} at night",
    }
}
DIGEST = """
import sys; sys.path.insert(0, {bench!r})
from hashlib import sha256
from session import make_session
session = make_session(3, 30, "noisy")
text = "".join(str(message.to_dict()) for call in session.calls for message in call.history)
print(sha256((text + str(session.places)).encode()).hexdigest())
"""

SIZES = """
import sys; sys.path.insert(0, {bench!r})
from statistics import median
from backscroll.compaction.tokens import Sizes
from session import make_session
found = [m for m in make_session(1, 200, {bulk!r}).messages if m.name == "search"]
sizes = sorted(Sizes().text(m.text) for m in found if len(m.text) > 80)
print(median(sizes), sizes[-2], sizes[-1])
"""

NOTES = """## Goal
- The parcel service moves to the new queue, and no order may be lost on the way there.
## Done
- The workers were drained first; ord_99x1 and /srv/never/said.py had to wait until the end of it.
- What the reports said about the batches, shards and carriers was read and found to be in order.
"""


def run(*arguments: str, **variables: str) -> str:
    """Run Python in the repository and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=scaled(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:] + done.stdout[-2_000:]
    return done.stdout


def played(tmp_path: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Run the smoke version and return the rows of its report, by strategy."""
    report = tmp_path / "report.json"
    run(str(BENCH), "--smoke", "--bulk", "noisy", "--ours", "", "--json", str(report), *arguments)
    return {row["name"]: row for row in json.loads(report.read_text("utf-8"))}


@pytest.mark.timeout(300)
def test_the_smoke_version_runs(tmp_path: Path) -> None:
    """One seed and 40 turns: nothing over budget, parted, refused or failed, and facts kept.

    Random histories are checked beside it, on both wires; a finding ends the benchmark with 1.
    """
    rows = played(tmp_path, "--histories", "80")
    ours = [row for name, row in rows.items() if name.startswith("Backscroll")]

    assert len(ours) == 7 and len(rows) == 17
    for row in ours:
        assert not row["over_budget"] + row["broken"] + row["refused"] + row["failed"], row
        assert row["facts"] > 0.7
    assert rows["Backscroll, dead summariser"]["calls"] <= 3
    assert rows["fresh start, usual"]["facts"] < rows["Backscroll, dead summariser"]["facts"]


def test_families_of_ones_own_are_measured(tmp_path: Path) -> None:
    """A file names what is planted, so that others measure on what nobody tuned for."""
    file = tmp_path / "families.json"
    file.write_text(json.dumps(FAMILY), "utf-8")
    only = "Backscroll, no"
    rows = played(tmp_path, "--families", str(file), "--only", only, "--histories", "0")

    assert rows["Backscroll, no summariser"]["families"] == {"bird": 1.0}


def test_a_seed_gives_one_session() -> None:
    """The same bytes in processes that hash otherwise; another seed gives others."""
    code = DIGEST.format(bench=str(BENCH))
    first, second = (run("-c", code, PYTHONHASHSEED=seed).strip() for seed in ("1", "2"))
    other = run("-c", code.replace("make_session(3", "make_session(4")).strip()

    assert first == second != other
    assert len(first) == 64


@pytest.mark.parametrize("bulk", ["plain", "noisy"])
def test_results_are_as_large_as_said(bulk: str) -> None:
    """Half of the results have 450 tokens or more, few come near 9,000, and one has 30,000."""
    middle, second, largest = map(
        float, run("-c", SIZES.format(bench=str(BENCH), bulk=bulk)).split()
    )

    assert 380 < middle < 520
    assert 4_000 < second < 10_500
    assert 24_000 < largest < 36_000


def test_what_a_model_writes_is_measured(tmp_path: Path) -> None:
    """Of its text the facts count that are in it, and what it invented is found and marked."""
    report = tmp_path / "spans.json"
    with ScriptedProcess() as model:
        model.otherwise(Reply(text=NOTES))
        where = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none-needed"}
        options = ("--model", "scripted", "--spans", "1", "--json", str(report))
        said = run(str(BENCH / "by_model.py"), *options, **where)
    (span,) = json.loads(report.read_text("utf-8"))

    assert span["in_core"] == 0 and span["in_view"] > 0.65 * span["facts"] > 5
    assert (span["refused"], span["invented"], span["unmarked"]) == ("", 2, [])
    assert "2 identifiers invented, 0 unmarked" in said


def test_a_model_that_is_away_is_a_failure() -> None:
    """Facts that stay without any text of the model prove nothing about it."""
    where = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "none-needed"}
    done = subprocess.run(
        [sys.executable, str(BENCH / "by_model.py"), "--spans", "1"],
        cwd=ROOT, env={**os.environ, **where}, capture_output=True, text=True,
        timeout=scaled(60), check=False,
    )  # fmt: skip

    assert done.returncode == 1 and "1 texts not used" in done.stdout, done.stderr[-2_000:]
