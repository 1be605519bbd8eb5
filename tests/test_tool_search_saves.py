"""What tool search saves and costs, as the bench counts it and the document says it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from processes import ROOT


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Run the bench once."""
    report = tmp_path_factory.mktemp("bench") / "report.json"
    command = [sys.executable, str(ROOT / "bench" / "tool_search.py"), "--json", str(report)]
    subprocess.run(command, check=True, capture_output=True, timeout=90)
    return json.loads(report.read_text(encoding="utf-8"))


@pytest.mark.timeout(120)
def test_what_a_turn_saves(figures: Any) -> None:
    """TS7: of fifty tools the two needed are called, for at least 70 % fewer prompt tokens."""
    assert 11_000 < figures["schema_tokens"] < 13_000
    assert figures["search"]["tools"] == figures["all_tools"]["tools"]
    assert figures["search"]["tools"] == ["find_orders", "create_invoices"]
    assert figures["ratio_prompt_tokens"] <= 0.3


@pytest.mark.timeout(120)
def test_what_a_warm_cache_changes(figures: Any) -> None:
    """With a warm cache of prompts fewer tokens are sent, and more of them are paid in full."""
    everything, search = figures["warm"]["all_tools"], figures["warm"]["search"]

    assert search["prompt_tokens"] < everything["prompt_tokens"]
    assert search["cost"] > everything["cost"]


@pytest.mark.timeout(120)
def test_the_document_says_the_same(figures: Any) -> None:
    """Each figure of the document is the one that is measured."""
    text = (ROOT / "docs" / "how-to" / "tool-search.md").read_text(encoding="utf-8")
    turns = [figures[name] for name in ("all_tools", "search")]
    rows = [f"| {turn['requests']} | {turn['prompt_tokens']:,} |" for turn in turns]
    for talk in figures["warm"].values():
        new = talk["prompt_tokens"] - talk["cached_tokens"]
        rows.append(f"| {talk['prompt_tokens']:,} | {new:,} | {talk['cost']:,} |")
    saved = 100 * (1 - figures["ratio_prompt_tokens"])

    said = [f"{figures['schema_tokens']:,} tokens of schemas", f"{saved:.1f} % less", *rows]
    said.append(f"{figures['ratio_warm_cost']:.2f} times as much")
    assert [words for words in said if words not in text] == []
