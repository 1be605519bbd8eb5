"""The operator API on threads."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import tool_call
from backscroll.kernel.tool import tool
from backscroll.kernel.usage import Usage
from backscroll.store.keys import ThreadKey
from backscroll.web import console_threads as module
from played_model import Said
from served import Served, served
from working import agent_of, begun, held, key

LIST = "/console/api/threads"


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def names(server: Served, query: str = "") -> list[str]:
    """Return the keys of the threads a list shows."""
    return [head["thread"] for head in (await server.get(f"{LIST}?{query}"))["threads"]]


async def three(server: Served) -> None:
    """Make three threads, the third one failed."""
    for n, text in enumerate(("Refund order", "王小明 asks", "Broken"), 1):
        await server.run(f"t{n}", f"r{n}", text)


def scripted() -> Any:
    """Return the agent of `three`."""
    return agent_of("one", "two", ModelError("auth", "no"), "more", "more", "more")


async def test_the_head_of_a_thread(valkey_url: str, prefix: str) -> None:
    """Everything the list shows, and nothing that is unknown."""
    script = (Said("", [tool_call("c", "add", {"a": 1, "b": 2})]), Said("3", usage=Usage(10, 2)))
    async with served(agent_of(*script, tools=[add]), valkey_url, prefix) as server:
        await server.run("t 1", "r1", "Add 1 and 2")
        (head,) = (await server.get(LIST))["threads"]
        one = await server.get(f"{LIST}/t%25201")

    assert (head["thread"], head["thread_id"], head["owner"]) == ("t%201", "t 1", "local")
    assert (head["title"], head["agent"], head["status"]) == ("Add 1 and 2", "a", "ok")
    assert (head["runs"], head["messages"], head["errors"], head["questions"]) == (1, 4, 0, 0)
    assert head["model"] == "played-1" and head["context"]["call"] == 2
    assert "run" not in head and "worker" not in head
    assert one["counts"]["call"] == 4 and one["counts"]["message"] == 4
    assert one["models"] == ["played-1"] and one["floor"] == 0 and one["head"] == head["entries"]
    assert "lease" not in one and "state" not in one


async def test_a_running_thread_names_its_run_and_lease(valkey_url: str, prefix: str) -> None:
    """Whose it is, until when, and the state it shares."""
    async with served(agent_of(held()), valkey_url, prefix) as server:
        await begun(server.worker, "r1")
        await server.worker.log.append(key(), [], fence=0, state=b'{"a":1}')
        one = await server.get(f"{LIST}/t")
        lease = (await server.worker.log.head(key())).lease

    assert (one["status"], one["run"], one["worker"]) == ("running", "r1", server.worker.name)
    assert one["lease"] == {"fence": 1, "until": lease} and one["state"] == {"a": 1}


async def test_the_list_is_newest_first_and_paged(valkey_url: str, prefix: str) -> None:
    """`next` leads through all of them, each once."""
    async with served(scripted(), valkey_url, prefix) as server:
        await three(server)
        every = await names(server)
        pages, cursor = [], ""
        while cursor is not None:
            answer = await server.get(f"{LIST}?limit=1{cursor and '&cursor=' + cursor}")
            pages.append([head["thread"] for head in answer["threads"]])
            cursor = answer.get("next")

    assert every == ["t3", "t2", "t1"] and pages == [["t3"], ["t2"], ["t1"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=refund", ["t1"]),
        ("q=王小明", ["t2"]),
        ("q=T3", ["t3"]),
        ("status=error", ["t3"]),
        ("status=ok,running", ["t2", "t1"]),
        ("has=failures", ["t3"]),
        ("has=compactions", []),
        ("has=questions", []),
        ("agent=a", ["t3", "t2", "t1"]),
        ("agent=b", []),
        ("owner=local", ["t3", "t2", "t1"]),
        ("owner=ann", []),
        ("from=9999999999999", []),
        ("to=1", []),
        ("sort=thread", ["t1", "t2", "t3"]),
        ("sort=-thread&limit=2", ["t3", "t2"]),
        ("sort=-errors&limit=1", ["t3"]),
        ("sort=title", ["t3", "t1", "t2"]),
    ],
)
async def test_the_list_is_filtered_and_sorted(
    valkey_url: str, prefix: str, query: str, found: list[str]
) -> None:
    """By text, status, what it has, agent, owner and time, in any order."""
    async with served(scripted(), valkey_url, prefix) as server:
        await three(server)

        assert await names(server, query) == found


async def test_every_column_can_be_sorted_by(valkey_url: str, prefix: str) -> None:
    """Threads without a value have a place too; a sorted list is paged as well."""
    async with served(scripted(), valkey_url, prefix) as server:
        await three(server)
        for column in module._SORTS:
            assert len(await names(server, f"sort={column}")) == 3
        first = await server.get(f"{LIST}?sort=thread&limit=2")
        second = await server.get(f"{LIST}?sort=thread&limit=2&cursor={first['next']}")

    assert [h["thread"] for h in second["threads"]] == ["t3"] and "next" not in second


async def test_a_search_works_in_bounded_steps(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may hold less than asked for and yet lead on; nothing is shown twice or left out."""
    monkeypatch.setattr(module, "PAGE", 1)
    monkeypatch.setattr(module, "SCANNED", 2)
    async with served(scripted(), valkey_url, prefix) as server:
        await three(server)
        first = await server.get(f"{LIST}?q=refund")
        second = await server.get(f"{LIST}?q=refund&cursor={first['next']}")

    assert first["threads"] == [] and [h["thread"] for h in second["threads"]] == ["t1"]
    assert "next" not in second


async def test_a_thread_whose_index_lags_is_listed_once(valkey_url: str, prefix: str) -> None:
    """The cursor is a place in the index, which may be behind the thread's own time."""
    async with served(scripted(), valkey_url, prefix) as server:
        await three(server)
        keys, write = server.worker.keys, server.worker.clients.write
        for name in (keys.threads(), keys.threads("local")):
            await write.zadd(name, {"t3": 3000, "t2": 2000, "t1": 1000})
        first = await server.get(f"{LIST}?limit=2")
        second = await server.get(f"{LIST}?limit=2&cursor={first['next']}")

    assert [h["thread"] for h in first["threads"] + second["threads"]] == ["t3", "t2", "t1"]


async def test_the_runs_of_a_thread(valkey_url: str, prefix: str) -> None:
    """Oldest first, with status, error, calls and usage."""
    script = (Said("x", usage=Usage(10, 2)), ModelError("auth", "no"), held())
    async with served(agent_of(*script), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        await server.run("t", "r2", "hi", "more")
        await begun(server.worker, "r3", "hi", "more", "again")
        runs = (await server.get(f"{LIST}/t/runs"))["runs"]
        none = (await server.get(f"{LIST}/nope/runs"))["runs"]

    assert [(r["run"], r["status"]) for r in runs] == [
        ("r1", "ok"),
        ("r2", "error"),
        ("r3", "running"),
    ]
    assert runs[0]["calls"] == 1 and runs[0]["usage"][0]["input_tokens"] == 10
    assert runs[1]["error"] == "auth" and "ended" not in runs[2] and none == []
    assert runs[0]["seq"][1] < runs[1]["seq"][0]


async def test_the_messages_of_a_thread(valkey_url: str, prefix: str) -> None:
    """By position, by id, by text; superseded ones included and marked."""
    script = (Said("", [tool_call("c", "add", {"a": 1, "b": 2})]), Said("Three 三"), "again")
    async with served(agent_of(*script, tools=[add]), valkey_url, prefix) as server:
        await server.run("t", "r1", "Add")
        await server.run("t", "r2", "Add")
        path = f"{LIST}/t/messages"
        every = (await server.get(path))["messages"]
        some = (await server.get(f"{path}?from=2&to=3"))["messages"]
        found = (await server.get(f"{path}?q=ADD {{"))["messages"]
        asked = (await server.get(f"{path}?q=三&fields=full"))["messages"]
        by_id = (await server.get(f"{path}?ids={every[4]['id']},u1,nope"))["messages"]
        odd = await server.http.get(f"{path}?fields=all")

    assert [m["role"] for m in every] == ["user", "assistant", "tool", "assistant", "assistant"]
    assert [m.get("marks") for m in every[1:]] == [["superseded"]] * 3 + [None]
    assert [m["position"] for m in some] == [2, 3] and some[1]["tool_call_id"] == "c"
    assert every[1]["preview"].startswith("add(") and every[1]["tokens"] > 0
    assert [m["position"] for m in found] == [2] and [m["position"] for m in asked] == [4]
    assert asked[0]["message"]["content"] == "Three 三" and "message" not in every[0]
    assert [m["id"] for m in by_id] == ["u1", every[4]["id"]] and odd.status_code == 422


async def test_one_message_whole(valkey_url: str, prefix: str) -> None:
    """Whatever its id, and also when it is superseded."""
    message = {"id": "a/b ?", "role": "user", "content": "hi"}
    async with served(agent_of("x", "y"), valkey_url, prefix) as server:
        await server.run("t", "r1", message)  # type: ignore[arg-type]
        first = (await server.get(f"{LIST}/t/messages"))["messages"][1]["id"]
        await server.run("t", "r2", message)  # type: ignore[arg-type]
        superseded = await server.get(f"{LIST}/t/messages/{first}")
        found = await server.get(f"{LIST}/t/messages/a%2Fb%20%3F")
        gone = await server.http.get(f"{LIST}/t/messages/nope")

    assert (found["content"], superseded["content"]) == ("hi", "x") and gone.status_code == 404


async def test_a_run_is_stopped_by_an_operator(valkey_url: str, prefix: str) -> None:
    """The active one, or the one that is named; another is not touched."""
    async with served(agent_of(held()), valkey_url, prefix) as server:
        await begun(server.worker, "r1")
        path = f"{LIST}/t/cancel"
        other = (await server.http.post(path, json={"run": "r0"})).json()
        stopped = (await server.http.post(path)).json()

    assert (other, stopped) == ({"stopping": False}, {"stopping": True})


async def test_threads_of_other_owners_are_named_by_owner(valkey_url: str, prefix: str) -> None:
    """Operators see all of them, under keys that tell them apart."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        ann = ThreadKey("ann", "t")
        await server.worker.log.append(ann, [], fence=0, state=b"{}")
        await server.run("t", "r", "hi")
        both = await names(server)
        one = await server.get(f"{LIST}/ann%2Ft")

    assert set(both) == {"ann/t", "t"} and (one["owner"], one["thread_id"]) == ("ann", "t")
