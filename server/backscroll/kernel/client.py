"""ChatClient: one chat call or one tool call through their filters."""

from __future__ import annotations

import asyncio
import inspect
import random as random_module
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from backscroll.kernel.chat_terminal import ChatTerminal
from backscroll.kernel.content import is_parts
from backscroll.kernel.deadline import ENDS, TimedOut, as_failure, within
from backscroll.kernel.errors import (
    ClientError,
    Never,
    ToolError,
    ToolFailure,
    classify_failure,
)
from backscroll.kernel.filter import (
    ChatHandler,
    Filter,
    ToolHandler,
    build_chain,
    check_filters,
    hooks_of,
)
from backscroll.kernel.message import Outcome, result_text
from backscroll.kernel.model import ChatModel, ModelOptions
from backscroll.kernel.ports import CancelToken, Clock, Ids, RandomIds, SystemClock
from backscroll.kernel.request import (
    ChatRequest,
    ChatResponse,
    Note,
    Observer,
    ToolRequest,
    ToolResponse,
)
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import Tool, ToolContext, ToolResult, ToolSet
from backscroll.kernel.tool_schema import Problem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One tool execution of a batch, ready to be scheduled."""

    tool: Tool
    run: Callable[[], Any]  # Any: an awaitable of a ToolResponse


class ToolExecutor(Protocol):
    """Decides how a batch is scheduled; known in the field as a ToolCallingManager."""

    timeout_s: float | None

    async def run(self, jobs: Sequence[Job], *, serial: bool) -> list[ToolResponse]:
        """Run the jobs; the list returned has their order."""
        ...

    async def call(self, function: Callable[[], T]) -> T:
        """Run a plain function off the event loop."""
        ...

    async def aclose(self) -> None:
        """Let go of threads; calls made afterwards fail with kind `environment`."""
        ...


class ChatClient:
    """A model, tools and filters; makes one chat call or one tool call, and no loop.

    Chains are built once, here; a client is immutable.
    """

    def __init__(
        self,
        model: ChatModel | None = None,
        tools: Iterable[Tool] | ToolSet = (),
        filters: Sequence[Filter] = (),
        *,
        executor: ToolExecutor | None = None,
        options: ModelOptions | None = None,
        texts: Texts | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        random: random_module.Random | None = None,
    ) -> None:
        self.model = model
        self.tools = tools if isinstance(tools, ToolSet) else ToolSet(tools)
        self.filters = check_filters(filters)
        self.executor = executor
        self.options = options or ModelOptions()
        self.texts = texts or Texts()
        self.clock, self.ids = clock or SystemClock(), ids or RandomIds()
        streams = [item for item in self.filters if "tokens" in hooks_of(item)]
        self.terminal = ChatTerminal(
            self.clock,
            self.ids,
            random or random_module.Random(),
            lambda: [(item.label, item.tokens()) for item in streams],
        )
        self.chat_chain: ChatHandler = build_chain(self._hooks("chat"), self.terminal, ChatResponse)
        self._tool_hooks = self._hooks("tool")

    async def chat(self, request: ChatRequest) -> ChatResponse:
        """Run the chat chain once; executes no tool. With `stream` set, deltas are delivered."""
        model = request.model or self.model
        filled = request.replace(
            model=model,
            profile=model.profile if model is not None else request.profile,
            options=request.options.over(self.options),
        )
        return await self.chat_chain(filled)

    async def call_tool(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        tools: ToolSet | None = None,
        call_id: str = "",
        message_id: str = "",
        cancel: CancelToken | None = None,
        observer: Observer | None = None,
    ) -> ToolResponse:
        """Run the tool chain once; every failure but an unknown name is in the response."""
        offered = self.tools if tools is None else tools
        found = offered.get(name)
        if found is None or found.body is None:
            known = ", ".join(offered.names()) or "none"
            raise ClientError("unknown_tool", f"there is no tool named {name!r}; known: {known}")
        request = ToolRequest(
            found.info,
            dict(args or {}),
            call_id or self.ids.new("call"),
            dict(context or {}),
            message_id,
            cancel or CancelToken(),
            self.texts,
            observer,
        )
        terminal = ToolTerminal(found, self.executor)
        chain: ToolHandler = build_chain(self._tool_hooks, terminal, ToolResponse)
        try:
            return await chain(request)
        except Never.CONTAINED:
            raise
        except Exception as error:
            return failed(classify_failure(error), self.texts)

    def _hooks(self, name: str) -> list[Any]:
        return [getattr(item, name) for item in self.filters if name in hooks_of(item)]


@dataclass(frozen=True, slots=True)
class ToolTerminal:
    """The innermost tool handler: check the arguments, run the body, make the response."""

    tool: Tool
    executor: ToolExecutor | None = None

    async def __call__(self, request: ToolRequest) -> ToolResponse:
        """Run the tool once; its failures become the response."""
        values = self.tool.check(request.args)
        if isinstance(values, Problem):
            text = request.texts.tool_args_invalid.format(
                name=self.tool.name, field=values.field, problem=values.problem
            )
            return ToolResponse(text, error=ToolFailure("semantic", text), outcome="error")
        timeout_s = self.tool.info.timeout_s
        if timeout_s is None and self.executor is not None:
            timeout_s = self.executor.timeout_s
        try:
            value = await self._body(request, values, timeout_s)
            return response_of(value, request.texts)
        except TimedOut as error:
            return await self._timed_out(request, timeout_s, error.heeded)
        except Never.CONTAINED:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The body cancelled itself; nobody asked our task to stop.
            return failed(classify_failure(error), request.texts)
        except BaseException as error:  # a tool may raise anything; the turn goes on
            return failed(classify_failure(error), request.texts)

    async def _body(
        self, request: ToolRequest, values: dict[str, Any], timeout_s: float | None
    ) -> Any:
        body = self.tool.body
        assert body is not None
        context = ToolContext(
            request.context,
            call_id=request.call_id,
            message_id=request.message_id,
            cancel=request.cancel,
        )
        if self.tool.is_async:
            return await within(timeout_s, body(values, context))
        value = await self._in_thread(lambda: body(values, context), timeout_s)
        return await within(timeout_s, value) if inspect.isawaitable(value) else value

    async def _in_thread(self, function: Callable[[], Any], timeout_s: float | None) -> Any:
        """Run a plain function; the wait for a thread is bounded by the same time, separately."""
        loop = asyncio.get_running_loop()
        began: asyncio.Future[None] = loop.create_future()

        def begin() -> None:
            if not began.done():
                began.set_result(None)

        def run() -> Any:
            loop.call_soon_threadsafe(begin)
            try:
                return function()
            except ENDS as error:
                raise as_failure(error) from error

        call = self.executor.call if self.executor is not None else asyncio.to_thread
        task = asyncio.ensure_future(call(run))
        try:
            await asyncio.wait(
                {task, began}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not task.done() and not began.done():
                raise ToolError(f"no thread was free within {timeout_s:g} s", "environment")
            return await within(timeout_s, task)
        finally:
            began.cancel()
            task.cancel()

    async def _timed_out(
        self, request: ToolRequest, timeout_s: float | None, heeded: bool
    ) -> ToolResponse:
        name = self.tool.name
        text = request.texts.tool_timeout.format(name=name, seconds=f"{timeout_s:g}")
        if not (self.tool.is_async and heeded):
            rest = "it does not heed the cancel" if self.tool.is_async else "its thread goes on"
            await request.report(Note("tool_abandoned", f"{name}: {rest}"))
        return ToolResponse(text, error=ToolFailure("transient", text), outcome="error")


def response_of(value: Any, texts: Texts) -> ToolResponse:
    """Make the response of what a tool's body returned."""
    result = value if isinstance(value, ToolResult) else ToolResult(value)
    content = result.content
    if not is_parts(content):
        try:
            content = result_text(content)
        except (ValueError, TypeError, RecursionError) as error:
            problem = f"the result cannot be written as text: {error}"
            return failed(ToolFailure("semantic", problem, error), texts)
    if result.is_error:
        shown = content if isinstance(content, str) else "the tool reported an error"
        return ToolResponse(content, error=ToolFailure("semantic", shown), outcome="error")
    return ToolResponse(content, dict(result.writes) if result.writes else None)


def failed(failure: ToolFailure, texts: Texts, outcome: Outcome = "error") -> ToolResponse:
    """Make the response of a failure: the model reads its message."""
    return ToolResponse(
        texts.tool_error.format(message=failure.message), error=failure, outcome=outcome
    )
