"""The operator API on a thread's log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui
from agui_checker import assert_valid
from backscroll.kernel.message import tool_call
from backscroll.kernel.tool import tool
from backscroll.runs.entry_json import CUT_CHARS
from backscroll.store.entry import NewEntry
from backscroll.web import console_log as module
from played_model import Said
from served import Served, served
from working import agent_of, key

THREAD = "/console/api/threads/t"


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def told(server: Served) -> int:
    """Let thread t have a run with a tool, and return its head."""
    await server.run("t", "r1", "Add 1 and 2")
    return (await server.worker.log.head(key())).seq


def scripted() -> Any:
    """Return the agent of `told`."""
    return agent_of(
        Said("Let me", [tool_call("c", "add", {"a": 1, "b": 2})]), Said("Three"), "x", tools=[add]
    )


async def seqs(server: Served, query: str) -> list[int]:
    """Return the numbers that a query finds."""
    return [e["seq"] for e in (await server.get(f"{THREAD}/entries?{query}"))["entries"]]


async def test_entries_are_heads_unless_asked_for(valkey_url: str, prefix: str) -> None:
    """Bodies on demand; floor and head beside them."""
    async with served(scripted(), valkey_url, prefix) as server:
        head = await told(server)
        heads = await server.get(f"{THREAD}/entries")
        full = await server.get(f"{THREAD}/entries?fields=full&limit=1")

    assert [e["seq"] for e in heads["entries"]] == list(range(1, head + 1))
    assert (heads["floor"], heads["head"], heads["more"]) == (0, head, False)
    assert all("body" not in e for e in heads["entries"])
    assert full["entries"][0]["body"]["type"] == "RUN_STARTED"
    assert (full["more"], full["next"]) == (True, 1)


async def test_entries_after_before_and_around(valkey_url: str, prefix: str) -> None:
    """The ways to move through a log, each bounded."""
    async with served(scripted(), valkey_url, prefix) as server:
        head = await told(server)
        before = await server.get(f"{THREAD}/entries?before=5&limit=2")
        first = await server.get(f"{THREAD}/entries?before=3")

        assert await seqs(server, "after=3&limit=2") == [4, 5]
        assert await seqs(server, "around=5&limit=4") == [3, 4, 5, 6]
        assert await seqs(server, "around=1&limit=2") == [1, 2]
        assert await seqs(server, f"after={head}") == []
    assert [e["seq"] for e in before["entries"]] == [3, 4] and before["more"] is True
    assert [e["seq"] for e in first["entries"]] == [1, 2] and first["more"] is False


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("kind=message", {"added"}),
        ("kind=call&type=started", {"started"}),
        ("type=RUN_STARTED,RUN_FINISHED", {"RUN_STARTED", "RUN_FINISHED"}),
        ("audience=operator&kind=event", set()),
        ("run=r1&type=RUN_STARTED", {"RUN_STARTED"}),
        ("run=nope", set()),
        ("from=9999999999999", set()),
        ("to=1", set()),
        ("q=THREE&kind=event", {"TEXT_MESSAGE_CONTENT"}),
        ("family=tool&type=TOOL_CALL_START", {"TOOL_CALL_START"}),
    ],
)
async def test_entries_are_filtered(
    valkey_url: str, prefix: str, query: str, types: set[str]
) -> None:
    """By kind, type, family, run, audience, time and text."""
    async with served(scripted(), valkey_url, prefix) as server:
        await told(server)
        found = await server.get(f"{THREAD}/entries?{query}")

    assert {e["type"] for e in found["entries"]} == types


async def test_a_search_goes_on_where_it_stopped(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searching works in bounded steps; `next` leads to the rest."""
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "SEARCHED", 4)
    async with served(scripted(), valkey_url, prefix) as server:
        head = await told(server)
        after, found, steps = 0, [], 0
        while after < head:
            answer = await server.get(f"{THREAD}/entries?type=RUN_FINISHED&after={after}")
            found += [e["seq"] for e in answer["entries"]]
            assert answer["next"] > after and answer["more"] is (answer["next"] < head)
            after, steps = answer["next"], steps + 1

    assert len(found) == 1 and steps > 3


async def test_a_thread_nobody_knows_has_an_empty_log(valkey_url: str, prefix: str) -> None:
    """Reads are pure: asking makes nothing."""
    async with served(scripted(), valkey_url, prefix) as server:
        entries = await server.get("/console/api/threads/nope/entries")
        rows = await server.get("/console/api/threads/nope/rows")

        assert await server.worker.threads.record(key("nope")) is None
    assert (entries["entries"], entries["head"], rows["rows"], rows["total"]) == ([], 0, [], 0)


async def test_one_entry(valkey_url: str, prefix: str) -> None:
    """Whole, with long texts cut and named, or its body as bytes."""
    body = json.dumps({"text": "x" * (CUT_CHARS + 1)}).encode()
    async with served(scripted(), valkey_url, prefix) as server:
        await server.worker.log.append(
            key(), [NewEntry("note", "n", body, "operator", "")], fence=0
        )
        entry = await server.get(f"{THREAD}/entries/1")
        raw = await server.http.get(f"{THREAD}/entries/1?raw=1")
        gone = await server.http.get(f"{THREAD}/entries/2")

    assert entry["cut"] == [{"path": "text", "chars": CUT_CHARS + 1}]
    assert raw.content == body and raw.headers["cache-control"] == "no-store"
    assert "content-security-policy" in raw.headers and gone.status_code == 404


async def test_folded_rows(valkey_url: str, prefix: str) -> None:
    """By number from 1, the last ones, or those around a seq; every seq is in one row."""
    async with served(scripted(), valkey_url, prefix) as server:
        head = await told(server)
        every = await server.get(f"{THREAD}/rows")
        first = await server.get(f"{THREAD}/rows?start=1&limit=2")
        last = await server.get(f"{THREAD}/rows?limit=2")
        around = await server.get(f"{THREAD}/rows?around={head}&limit=2")
        beyond = await server.get(f"{THREAD}/rows?around={head + 99}")

    rows = every["rows"]
    assert [r["row"] for r in rows] == list(range(1, every["total"] + 1))
    assert every["head"] == head and sum(r["entries"] for r in rows) == head
    assert [r["row"] for r in first["rows"]] == [1, 2] and first["start"] == 1
    assert [r["row"] for r in last["rows"]] == [every["total"] - 1, every["total"]]
    assert any(r["seq"][1] >= head for r in around["rows"]) and beyond["rows"]


@pytest.mark.parametrize(
    ("query", "some"),
    [
        ("family=tool", True),
        ("family=compaction", False),
        ("status=ok", True),
        ("status=error", False),
        ("run=r1", True),
        ("run=r2", False),
        ("q=Three", True),
        ("q=nowhere", False),
        ("from=1&to=9999999999999", True),
        ("from=9999999999999", False),
    ],
)
async def test_rows_are_filtered(valkey_url: str, prefix: str, query: str, some: bool) -> None:
    """By family, status, run, text and time."""
    async with served(scripted(), valkey_url, prefix) as server:
        await told(server)
        found = await server.get(f"{THREAD}/rows?{query}")

    assert bool(found["rows"]) is some and found["total"] == len(found["rows"])


async def test_the_exported_events_are_a_valid_stream(valkey_url: str, prefix: str) -> None:
    """The events of a thread, as JSON lines, pass our checker and ag-ui-validate."""
    async with served(scripted(), valkey_url, prefix) as server:
        await told(server)
        await server.run("t", "r2", "Add 1 and 2", "More")
        answer = await server.http.get(f"{THREAD}/export?format=events")

    lines = answer.text.splitlines()
    assert_valid(lines)
    assert_valid_agui(answer.text, max_warnings=0)


async def test_a_download_has_a_name_and_filters(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name says thread, range, format and version; the filters of `entries` hold."""
    monkeypatch.setattr(module, "PAGE", 3)
    async with served(scripted(), valkey_url, prefix) as server:
        await server.run("a/b 会话", "r1", "hi")
        path = "/console/api/threads/a%252Fb%2520%25E4%25BC%259A%25E8%25AF%259D/export"
        answer = await server.http.get(f"{path}?format=entries&kind=message")
        every = await server.http.get(f"{path}?format=entries")

    name = answer.headers["content-disposition"]
    assert name.startswith('attachment; filename="a_2Fb_20_E4') and "_entries_" in name
    assert name.endswith('.jsonl"')
    assert {json.loads(line)["kind"] for line in answer.text.splitlines()} == {"message"}
    numbers = [json.loads(line)["seq"] for line in every.text.splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
