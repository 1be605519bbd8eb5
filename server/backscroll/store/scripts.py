"""Lua scripts: one file each, run by their SHA."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeVar

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from backscroll.store.connection import Client

T = TypeVar("T")

RESEND_AFTER_S = (0.02, 0.1, 0.5, 1.0)
"""How long to wait before each time that an unanswered write is sent again."""

Argument = str | bytes | int


class Script:
    """A Lua script; the files named in `uses` are put in front of it."""

    def __init__(self, name: str, uses: Sequence[str] = ()) -> None:
        self.name = name
        self.text = "\n".join(script_text(part) for part in (*uses, name))
        self.sha = hashlib.sha1(self.text.encode()).hexdigest()

    async def run(self, client: Client, keys: Sequence[str], args: Sequence[Argument] = ()) -> Any:
        """Run the script and return its answer (Any: what it answers is the script's own)."""
        try:
            return await client.evalsha(self.sha, len(keys), *keys, *args)
        except NoScriptError:
            # The server restarted or dropped its scripts: the text loads and runs it.
            return await client.eval(self.text, len(keys), *keys, *args)


async def resend(send: Callable[[bool], Awaitable[T]]) -> T:
    """Return the answer to a write, sending it again while the connection breaks before it comes.

    `send` is told whether this is a repetition: the write may have happened already.
    """
    again = False
    for pause_s in RESEND_AFTER_S:
        try:
            return await send(again)
        except (RedisConnectionError, RedisTimeoutError):
            again = True
            await asyncio.sleep(pause_s)
    return await send(again)


@lru_cache
def script_text(name: str) -> str:
    """Return the text of a script file."""
    return files("backscroll.store").joinpath("scripts", f"{name}.lua").read_text("utf-8")
