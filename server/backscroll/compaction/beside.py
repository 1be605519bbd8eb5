"""Large work beside the event loop, so that other runs of the worker go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from backscroll.kernel.message import Message

T = TypeVar("T")

LARGE_CHARS = 500_000
"""The text above which counting tokens and choosing lines would hold the loop for too long."""


async def beside(work: Callable[[], T], *lists: Iterable[Message]) -> T:
    """Return what work on these messages gives; it is done in a thread where they are large.

    Who is cancelled waits for the thread: what the work uses is then nobody else's.
    """
    if sum(len(message.text) for messages in lists for message in messages) <= LARGE_CHARS:
        return work()
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
