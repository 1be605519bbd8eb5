"""A bounded pool of threads that never keeps the process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from backscroll.kernel.errors import ToolError

T = TypeVar("T")

Work = queue.SimpleQueue[Callable[[], None] | None]


class Threads:
    """Runs plain functions off the event loop, at most `size` at once.

    A function that is given up on goes on, and its thread stays taken until it returns. The threads
    are daemons, so that one that never returns does not hold up the end of the process.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._work: Work = queue.SimpleQueue()
        weakref.finalize(self, self._work.put, None)
        self._guard = threading.Lock()
        self._started = self._wanted = 0
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """Return what the function returns; the caller's context variables are readable in it.

        Raises a ToolError of kind `environment` when the pool is closed.
        """
        context = contextvars.copy_context()
        future: Future[T] = Future()
        with self._guard:
            if self._closed:
                raise ToolError("the pool of threads is closed", "environment")
            self._work.put(lambda: self._do(future, lambda: context.run(function)))
            self._wanted += 1
            if self._started < min(self._wanted, self.size):
                self._start()
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Take no more work; threads end when they have nothing left to do."""
        with self._guard:
            self._closed = True
        self._work.put(None)

    def _start(self) -> None:
        self._started += 1
        name = f"tool-{self._started}"
        threading.Thread(target=_serve, args=(self._work,), name=name, daemon=True).start()

    def _do(self, future: Future[T], function: Callable[[], T]) -> None:
        error: BaseException | None = None
        is_wanted = future.set_running_or_notify_cancel()
        if is_wanted:
            try:
                value = function()
            except StopIteration as stop:
                # A future cannot carry this one.
                error = RuntimeError(f"StopIteration: {stop.value}")
            except BaseException as raised:  # the awaiting task decides what to do with it
                error = raised
        with self._guard:
            self._wanted -= 1
        if error is not None:
            future.set_exception(error)
        elif is_wanted:
            future.set_result(value)


def _serve(work: Work) -> None:
    """Do work until told to end; the word is passed on to the next thread."""
    while (item := work.get()) is not None:
        item()
        del item
    work.put(None)
