"""The console socket."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import websockets
from backscroll.store.entry import NewEntry
from backscroll.web import console_socket as module
from cutting_proxy import cutting_proxy
from deadlines import scaled
from played_model import Said
from served import Served, served, until
from working import agent_of, begun, entries, held, key


class Console:
    """A tab of the console."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def ask(self, **frame: Any) -> None:
        """Send one frame."""
        await self.socket.send(json.dumps(frame))

    async def read(self) -> Any:
        """Return the next frame."""
        async with asyncio.timeout(scaled(10)):
            return json.loads(await self.socket.recv())

    async def entries(self, until_seq: int) -> list[Any]:
        """Read batches of a thread up to a seq, and return their entries."""
        found: list[Any] = []
        while not found or found[-1]["seq"] < until_seq:
            found += (await self.read()).get("entries", [])
        return found


@asynccontextmanager
async def console(server: Served) -> AsyncIterator[Console]:
    """Open a tab."""
    async with server.socket("/console/ws") as socket:
        yield Console(socket)


async def head_of(server: Served) -> int:
    """Return the head of thread t."""
    return (await server.worker.log.head(key())).seq


async def test_entries_of_all_kinds_and_then_live(valkey_url: str, prefix: str) -> None:
    """After a seq, then as they come; each once and rising, small bodies with them."""
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        first = await head_of(server)
        async with console(server) as tab:
            await tab.ask(subscribe={"thread": "t", "after": 2})
            begin = await tab.read()
            seen = await tab.entries(first)
            await server.run("t", "r2", "hi", "more")
            seen += await tab.entries(await head_of(server))
        logged = await entries(server.worker)

    assert begin == {"thread": "t", "entries": [], "floor": 0, "head": first}
    assert [e["seq"] for e in seen] == [e.seq for e in logged][2:]
    assert {e["kind"] for e in seen} == {"event", "message", "call"}
    assert all(("body" in e) is (e["bytes"] <= 2000) for e in seen)


async def test_without_a_seq_from_the_head(valkey_url: str, prefix: str) -> None:
    """What was before is not sent; an unknown thread is followed from its beginning."""
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        head = await head_of(server)
        async with console(server) as tab, console(server) as other:
            await tab.ask(subscribe={"thread": "t"})
            await other.ask(subscribe={"thread": "new"})
            assert (await tab.read())["head"] == head and (await other.read())["head"] == 0
            await server.run("t", "r2", "hi", "more")
            await server.run("new", "r3", "hi")

            assert (await tab.read())["entries"][0]["seq"] == head + 1
            assert (await other.read())["entries"][0]["seq"] == 1


@pytest.mark.parametrize("after", [9999, 1])
async def test_what_cannot_be_continued(valkey_url: str, prefix: str, after: int) -> None:
    """The notice, then everything after the floor."""
    async with served(agent_of("one"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        head = await head_of(server)
        await server.worker.clients.write.hset(server.worker.keys.meta(key()), "floor", 3)
        async with console(server) as tab:
            await tab.ask(subscribe={"thread": "t", "after": after})
            notice = await tab.read()
            seen = await tab.entries(head)

    assert notice == {"thread": "t", "resync": {"floor": 3, "head": head}}
    assert [e["seq"] for e in seen] == list(range(4, head + 1))


async def test_a_thread_that_is_deleted_and_made_again(valkey_url: str, prefix: str) -> None:
    """The notice that nothing of it is left, then the new one from its first entry."""
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi", "there")
        async with console(server) as tab:
            await tab.ask(subscribe={"thread": "t"})
            await tab.read()
            await server.worker.threads.delete(key())
            notice = await tab.read()
            await server.run("t", "r2", "hi")
            seen = await tab.entries(await head_of(server))
        logged = await entries(server.worker)

    assert notice == {"thread": "t", "resync": {"floor": 0, "head": 0}}
    assert [e["seq"] for e in seen] == [e.seq for e in logged]


async def test_batches_are_bounded(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives together goes out together, up to a limit."""
    monkeypatch.setattr(module, "BATCH", 3)
    async with served(agent_of("one two three"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        head = await head_of(server)
        async with console(server) as tab:
            await tab.ask(subscribe={"thread": "t", "after": 0})
            sizes, last = [], 0
            while last < head:
                batch = (await tab.read())["entries"]
                sizes.append(len(batch))
                last = batch[-1]["seq"] if batch else 0

    assert max(sizes) <= 3 and sum(sizes) == head


async def test_changed_heads_of_threads(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it begins, then only those that changed; what is gone is said once."""
    monkeypatch.setattr(module, "HEADS_S", 0.05)
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t1", "r1", "hi")
        async with console(server) as tab:
            await tab.ask(subscribe={"threads": True})
            assert await tab.read() == {"threads": [], "gone": []}
            await server.worker.threads.rename(key("t1"), "Renamed")
            frames = [await tab.read()]
            await server.run("t2", "r2", "hi")
            while not any(h["status"] == "ok" for h in _heads(frames, "t2")):
                frames.append(await tab.read())
            await server.worker.threads.delete(key("t1"))
            while frames[-1]["gone"] != ["t1"]:
                frames.append(await tab.read())

    assert [head["title"] for head in _heads(frames, "t1")] == ["Renamed"]
    assert _heads(frames, "t2")[-1]["messages"] == 2


def _heads(frames: list[Any], thread: str) -> list[Any]:
    return [head for frame in frames for head in frame["threads"] if head["thread"] == thread]


@pytest.mark.parametrize(
    ("frame", "path"),
    [
        ({}, "subscribe"),
        ({"subscribe": True}, "subscribe"),
        ({"subscribe": {}}, "subscribe"),
        ({"subscribe": {"threads": False}}, "subscribe"),
        ({"subscribe": {"thread": "a b"}}, "subscribe.thread"),
        ({"subscribe": {"thread": 7}}, "subscribe.thread"),
        ({"unsubscribe": {"thread": None}}, "subscribe.thread"),
        ({"subscribe": {"thread": "t", "after": -1}}, "subscribe.after"),
        ({"subscribe": {"thread": "t", "after": "1"}}, "subscribe.after"),
        ({"subscribe": {"thread": "t", "after": True}}, "subscribe.after"),
        ({"subscribe": {"thread": "t", "after": 10**30}}, "subscribe.after"),
    ],
)
async def test_a_bad_frame_is_refused_and_the_socket_stays_open(
    valkey_url: str, prefix: str, frame: Any, path: str
) -> None:
    """The problem is named by its path."""
    async with served(agent_of("x"), valkey_url, prefix) as server, console(server) as tab:
        await tab.ask(**frame)
        error = (await tab.read())["error"]
        await tab.ask(subscribe={"thread": "t"})

        assert (await tab.read())["thread"] == "t"
    assert error["code"] == "invalid_input"
    assert error["details"]["problems"][0]["path"] == path


async def test_what_is_no_json(valkey_url: str, prefix: str) -> None:
    """Text or bytes, it is answered."""
    async with served(agent_of("x"), valkey_url, prefix) as server, console(server) as tab:
        for data in ("not json", b"bytes", "[]"):
            await tab.socket.send(data)

            assert (await tab.read())["error"]["code"] == "not_json"


async def test_a_subscription_ends_or_is_replaced(valkey_url: str, prefix: str) -> None:
    """Subscribing again begins anew, and after unsubscribing nothing comes."""
    async with served(agent_of("one", "two"), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        async with console(server) as tab:
            await tab.ask(subscribe={"thread": "t"})
            await tab.read()
            await tab.ask(subscribe={"thread": "t", "after": 0})
            await tab.read()
            again = await tab.entries(await head_of(server))
            await tab.ask(unsubscribe={"thread": "t"})
            await tab.ask(subscribe={"thread": "other"})
            assert (await tab.read())["thread"] == "other"
            await server.run("t", "r2", "hi", "more")
            await tab.ask(**{})

            assert "error" in await tab.read()
    assert [e["seq"] for e in again][:2] == [1, 2]


async def test_subscriptions_are_bounded(
    valkey_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more than allowed is refused."""
    monkeypatch.setattr(module, "SUBSCRIPTIONS", 1)
    async with served(agent_of("x"), valkey_url, prefix) as server, console(server) as tab:
        await tab.ask(subscribe={"thread": "t1"})
        await tab.read()
        await tab.ask(subscribe={"thread": "t2"})

        assert (await tab.read())["error"]["code"] == "too_many_feeds"


async def test_a_tab_that_leaves_is_no_fault(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """websocket-02: in the middle of a batch, or before it is answered."""
    async with served(agent_of(Said("x" * 50_000), held()), valkey_url, prefix) as server:
        await server.run("t", "r1", "hi")
        for _ in range(3):
            socket = await server.socket("/console/ws")
            await socket.send('{"subscribe":{"thread":"t","after":0}}')
            await socket.send('{"subscribe":{"threads":true}}')
            await socket.send("bad")
            socket.transport.abort()
        await until(lambda: server.worker.connections == 0, "the connections are gone")
        await begun(server.worker, "r2", "hi", "more")

    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


async def test_a_store_that_is_away_closes_the_socket(valkey_url: str, prefix: str) -> None:
    """1013, so the console comes again with its last seq."""
    async with cutting_proxy(valkey_url) as proxy:
        async with served(agent_of("x"), proxy.url, prefix) as server, console(server) as tab:
            proxy.cuts = 1_000_000
            await tab.ask(subscribe={"threads": True})
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await tab.read()

    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1013, "unavailable")


async def test_a_fault_of_ours_closes_the_socket(
    valkey_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An entry that cannot be read is logged, and the console is told."""
    async with served(agent_of("x"), valkey_url, prefix) as server:
        entry = NewEntry("note", "n", b"{}", "operator", "")
        await server.worker.log.append(key(), [entry], fence=0)
        name = server.worker.keys.log(key())
        await server.worker.clients.write.delete(name)
        await server.worker.clients.write.xadd(name, {"odd": "odd"}, id="1-0")
        async with console(server) as tab:
            await tab.ask(subscribe={"thread": "t", "after": 0})
            with pytest.raises(websockets.ConnectionClosed) as closed:
                while True:
                    await tab.read()

    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1011
    assert "a console subscription failed" in caplog.text
