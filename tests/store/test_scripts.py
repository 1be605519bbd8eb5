"""Running scripts by SHA, and sending unanswered writes again."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from backscroll.store.connection import RedisClients, connect
from backscroll.store.scripts import Script, resend, script_text
from cutting_proxy import cutting_proxy
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

NAMES = sorted(
    path.name.removesuffix(".lua")
    for path in files("backscroll.store").joinpath("scripts").iterdir()
)


async def test_runs_when_the_server_forgot_it(clients: RedisClients, prefix: str) -> None:
    """A server that restarted or flushed its scripts gets the text, once."""
    script = Script("set_meta")
    await clients.write.hset(prefix, "a", "1")

    for _ in range(2):
        await clients.write.script_flush()
        assert await script.run(clients.write, [prefix], ["b", "2"]) == 1
    assert (await clients.write.script_exists(script.sha)) == [True]
    assert await clients.read.hget(prefix, "b") == b"2"


async def test_runs_by_its_sha(clients: RedisClients, prefix: str) -> None:
    """A known script travels as forty characters."""
    script = Script("set_meta")
    await script.run(clients.write, [prefix], ["b", "2"])
    before = (await clients.read.info("commandstats")).get("cmdstat_eval", {"calls": 0})["calls"]

    await script.run(clients.write, [prefix], ["b", "3"])

    after = (await clients.read.info("commandstats")).get("cmdstat_eval", {"calls": 0})["calls"]
    assert after == before


async def test_an_error_of_a_script_is_not_a_lost_answer(
    clients: RedisClients, prefix: str
) -> None:
    """It is raised at once, since sending it again would fail again."""
    sent = []

    async def send(again: bool) -> object:
        sent.append(again)
        return await clients.write.eval("return redis.error_reply('no')", 0)

    with pytest.raises(ResponseError, match="no"):
        await resend(send)
    assert sent == [False]


async def test_sends_again_what_was_not_answered(valkey_url: str, prefix: str) -> None:
    """The second time it says that the command may have run already."""
    async with cutting_proxy(valkey_url) as proxy:
        clients = connect(proxy.url)
        await clients.write.ping()
        proxy.cuts = 1
        sent = []

        async def send(again: bool) -> int:
            sent.append(again)
            return int(await clients.write.incr(prefix))

        assert await resend(send) == 2
        assert sent == [False, True]
        await clients.close()


async def test_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stays away is reported, after a bounded number of tries."""
    monkeypatch.setattr("backscroll.store.scripts.RESEND_AFTER_S", (0.0, 0.0))
    sent = []

    async def send(again: bool) -> None:
        sent.append(again)
        raise RedisConnectionError("away")

    with pytest.raises(RedisConnectionError, match="away"):
        await resend(send)
    assert sent == [False, True, True]


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short_and_says_what_it_does(name: str) -> None:
    """At most 25 lines, a comment first, no command that Redis 7.0 lacks."""
    text = script_text(name)

    assert len(text.splitlines()) <= 25
    assert text.startswith("-- ")
    commands = set(re.findall(r"redis\.call\('([A-Z]+)'", text))
    assert commands <= set(
        "DEL EXISTS GET HDEL HGET HGETALL HINCRBY HMGET HSET HSETNX LINDEX LLEN LSET LTRIM PEXPIRE "
        "PTTL PUBLISH RPUSH SET TIME UNLINK XADD XREVRANGE ZADD ZREM ZSCORE".split()
    )
