"""The pool of threads: bounded, and never in the way."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading

import pytest
from backscroll.agent.threads import Threads
from backscroll.kernel.errors import ToolError
from deadlines import wait_until

VAR: contextvars.ContextVar[str] = contextvars.ContextVar("VAR", default="unset")


class Odd(BaseException):
    """An exception that is no Exception."""


async def test_runs_with_the_callers_context() -> None:
    """RUN4: the function runs on another thread and reads the caller's context variables."""
    VAR.set("set")

    value, thread = await Threads(1).run(lambda: (VAR.get(), threading.current_thread()))

    assert value == "set"
    assert thread is not threading.current_thread() and thread.daemon


async def test_exceptions_come_out() -> None:
    """What the function raises is raised where it is awaited, whatever it is."""
    threads = Threads(1)

    def fail(error: BaseException) -> None:
        raise error

    with pytest.raises(ValueError, match="no"):
        await threads.run(lambda: fail(ValueError("no")))
    with pytest.raises(Odd):
        await threads.run(lambda: fail(Odd()))
    with pytest.raises(RuntimeError, match="StopIteration: 7"):
        await threads.run(lambda: fail(StopIteration(7)))


async def test_threads_are_reused() -> None:
    """One call after the other needs one thread."""
    threads = Threads(8)

    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(5)}

    assert len(names) == 1


async def test_a_call_given_up_while_it_waits_does_not_run() -> None:
    """A call that is cancelled before there is a thread for it never runs."""
    threads, release, ran = Threads(1), threading.Event(), threading.Event()
    first = asyncio.ensure_future(threads.run(lambda: release.wait(10)))
    second = asyncio.ensure_future(threads.run(ran.set))
    await asyncio.sleep(0)

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()

    assert await first is True
    await threads.run(lambda: None)
    assert not ran.is_set()


async def test_a_call_given_up_keeps_its_thread() -> None:
    """A running function goes on; its thread is free again when it returns."""
    threads, begun, release = Threads(1), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait(10)

    first = asyncio.ensure_future(threads.run(block))
    await asyncio.wait_for(begun.wait(), 5)
    first.cancel()

    second = asyncio.ensure_future(threads.run(lambda: "next"))
    await asyncio.wait([first])
    assert not second.done()
    release.set()

    assert await second == "next"


async def test_a_closed_pool_takes_nothing() -> None:
    """After close, calls fail with kind `environment` and the threads end."""
    threads = Threads(2)
    (thread,) = [await threads.run(threading.current_thread)]

    threads.close()

    with pytest.raises(ToolError) as caught:
        await threads.run(lambda: 1)
    assert caught.value.kind == "environment"
    wait_until(lambda: not thread.is_alive(), 5, "the thread ends")


async def test_a_forgotten_pool_lets_its_threads_go() -> None:
    """Threads end when nobody has the pool any longer."""
    threads = Threads(2)
    thread = await threads.run(threading.current_thread)

    del threads
    gc.collect()

    wait_until(lambda: not thread.is_alive(), 5, "the thread ends")
