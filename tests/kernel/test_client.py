"""One chat call and one tool call, with every failure contained where it should be."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from backscroll.kernel.client import ChatClient, Job, response_of
from backscroll.kernel.errors import ClientError, LeaseLost, ToolError
from backscroll.kernel.filter import ChatHandler, Filter, ToolHandler
from backscroll.kernel.message import user
from backscroll.kernel.model import ModelOptions
from backscroll.kernel.request import ChatRequest, ChatResponse, ToolRequest, ToolResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import Tool, ToolContext, ToolResult, client_tool, tool
from scripted_model import ScriptedModel, reply

T = TypeVar("T")
WHO = contextvars.ContextVar("WHO", default="nobody")


@tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def of(function: Callable[..., Any], **options: Any) -> Tool:
    """Make a tool of a function, described."""
    return tool(description="Do.", name="it", **options)(function)


async def call(function: Callable[..., Any], **options: Any) -> ToolResponse:
    """Call a function as a tool."""
    return await ChatClient(tools=[of(function, **options)]).call_tool("it")


async def test_a_chat_without_filters_is_the_model() -> None:
    """LAY4: the chain holds no wrapper and gives what the model gives."""
    client = ChatClient(ScriptedModel(reply("hi")))

    assert client.chat_chain is client.terminal
    assert (await client.chat(ChatRequest((user("x"),)))).text == "hi"


async def test_what_a_filter_rewrites_is_sent() -> None:
    """REQ1: tools, system and options set by a filter reach the provider."""

    class Change(Filter):
        async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
            options = request.options.replace(temperature=0.25)
            changed = request.replace(system=("S",), tools=(add.spec(),), options=options)
            return await chain(changed)

    model = ScriptedModel(reply("hi"))
    client = ChatClient(model, filters=[Change()], options=ModelOptions(top_p=0.5))
    await client.chat(ChatRequest((user("x"),)))

    sent = model.requests[0]
    assert (sent.system, sent.tools) == (("S",), (add.spec(),))
    assert (sent.options.temperature, sent.options.top_p) == (0.25, 0.5)


async def test_a_tool_call_gives_text() -> None:
    """A value becomes text, defaults are filled in."""
    response = await ChatClient(tools=[add]).call_tool("add", {"a": 1})

    assert response == ToolResponse("3")


async def test_an_unknown_tool_names_the_known_ones() -> None:
    """RUN10: an unknown name, and a tool of the client, raise with the known names."""
    client = ChatClient(tools=[add, client_tool("pick", "Pick.")])

    for name in ("nope", "pick"):
        with pytest.raises(ClientError, match="add, pick") as caught:
            await client.call_tool(name)
        assert caught.value.code == "unknown_tool"


async def test_invalid_arguments_do_not_run_the_body() -> None:
    """TOOL4: the field is named, the failure is semantic."""
    response = await ChatClient(tools=[add]).call_tool("add", {"a": "x"})

    assert response.outcome == "error" and "a:" in response.content
    assert response.error is not None and response.error.kind == "semantic"


async def test_writes_and_contents() -> None:
    """RUN11: a plain dict is content, a ToolResult carries writes, an error drops them."""
    assert (await call(lambda: {"result": 1})).content == '{"result":1}'
    assert await call(lambda: ToolResult("1", {"x": 2})) == ToolResponse("1", {"x": 2})
    failed = await call(lambda: ToolResult("no", {"x": 2}, is_error=True))
    assert (failed.writes, failed.outcome, failed.content) == (None, "error", "no")


@pytest.mark.parametrize("value", [b"bytes", object(), ValueError("x"), float("nan")])
def test_what_cannot_be_written_is_a_semantic_error(value: object) -> None:
    """Bytes, objects, exceptions and NaN as results tell the model what is wrong."""
    response = response_of(value, Texts())

    assert response.outcome == "error" and "cannot be written" in response.content


async def test_exceptions_become_results() -> None:
    """ERR3: the model reads the message, the failure keeps its kind."""

    def broken() -> None:
        raise ToolError("no disk", kind="environment")

    response = await call(broken)

    assert response.content == "error: no disk"
    assert response.error is not None and response.error.kind == "environment"


async def test_a_lost_lease_is_never_contained() -> None:
    """What no layer contains goes through."""

    def lost() -> None:
        raise LeaseLost("t", 1, 2)

    with pytest.raises(LeaseLost):
        await call(lost)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("in_thread", [True, False])
async def test_a_tool_that_exits_ends_nothing(in_thread: bool, kind: type[BaseException]) -> None:
    """A tool that calls sys.exit, or the like, has failed; the server and the turn go on."""

    def plain() -> None:
        raise kind("enough")

    async def task() -> None:
        raise kind("enough")

    response = await call(plain if in_thread else task)

    assert (response.content, response.outcome) == ("error: enough", "error")


async def test_a_timeout_covers_the_body_only() -> None:
    """RUN6: a slow body times out as transient; a slow filter does not count."""

    class Slow(Filter):
        async def tool(self, request: ToolRequest, chain: ToolHandler) -> ToolResponse:
            for _ in range(20):
                await asyncio.sleep(0.01)
            return await chain(request)

    async def hang() -> None:
        await asyncio.Event().wait()

    response = await call(hang, timeout_s=0.05)
    assert response.error is not None and response.error.kind == "transient"
    assert "timed out after 0.05 s" in response.content

    quick = ChatClient(tools=[of(lambda: "ok", timeout_s=0.05)], filters=[Slow()])
    assert (await quick.call_tool("it")).content == "ok"


async def test_a_timeout_of_the_tool_itself_is_its_own() -> None:
    """A TimeoutError that the body raises is not our limit."""

    async def inner() -> None:
        raise TimeoutError("upstream")

    response = await call(inner, timeout_s=5)
    assert response.content == "error: upstream"


async def test_an_abandoned_thread_is_reported() -> None:
    """A plain function that outlives its time goes on alone, and operators hear of it."""
    release, notes = threading.Event(), list[Any]()

    class Listener:
        async def report(self, report: Any) -> None:
            notes.append(report)

    observer: Any = Listener()
    client = ChatClient(tools=[of(lambda: release.wait(10), timeout_s=0.05)])
    response = await client.call_tool("it", observer=observer)
    release.set()

    assert response.error is not None
    assert [note.kind for note in notes] == ["tool_abandoned"]


async def test_a_body_that_cancels_itself_fails() -> None:
    """A CancelledError nobody asked for is the tool's failure, not the end of the turn."""

    async def odd() -> None:
        raise asyncio.CancelledError

    response = await call(odd)
    assert response.outcome == "error" and "CancelledError" in response.content


async def test_cancelling_the_caller_goes_through() -> None:
    """Cancelling the task that called the tool cancels the body."""
    started = asyncio.Event()

    async def hang() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(call(hang))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_filter_that_raises_is_contained() -> None:
    """A tool filter's exception is told to the model like the tool's own."""

    class Broken(Filter):
        async def tool(self, request: ToolRequest, chain: ToolHandler) -> ToolResponse:
            raise ValueError("filter")

    response = await ChatClient(tools=[add], filters=[Broken()]).call_tool("add", {"a": 1})
    assert response.content == "error: filter"


async def test_plain_functions_run_off_the_loop() -> None:
    """RUN4: a plain function runs in a thread and sees the caller's context variables."""
    WHO.set("caller")

    response = await call(lambda: f"{WHO.get()} {threading.current_thread() is not MAIN}")

    assert response.content == "caller True"


async def test_the_body_gets_its_context() -> None:
    """A tool reads the context, its own call id and the message's id."""

    async def look(ctx: ToolContext) -> str:
        return f"{ctx['tenant']} {ctx.call_id} {ctx.message_id}"

    client = ChatClient(tools=[of(look)])
    response = await client.call_tool("it", {}, {"tenant": "north"}, call_id="c", message_id="m")
    assert response.content == "north c m"


async def test_an_executor_is_used_for_plain_functions() -> None:
    """The agent's executor runs plain functions and gives the default timeout."""

    class Executor:
        timeout_s = 3.0

        def __init__(self) -> None:
            self.calls = 0

        async def call(self, function: Callable[[], T]) -> T:
            self.calls += 1
            return function()

        async def run(self, jobs: Sequence[Job], *, serial: bool) -> list[ToolResponse]:
            return []

        async def aclose(self) -> None: ...

    executor = Executor()
    await ChatClient(tools=[add], executor=executor).call_tool("add", {"a": 1})
    assert executor.calls == 1


MAIN = threading.main_thread()


async def test_a_body_may_raise_anything() -> None:
    """Exceptions that are no Exception are results as well; a plain tuple is data."""

    class Odd(BaseException):
        pass

    @tool
    async def odd() -> str:
        """Raise something odd."""
        raise Odd("odd")

    @tool
    def pair() -> tuple[int, str]:
        """Return a pair."""
        return (1, "a")

    client = ChatClient(tools=[odd, pair])

    assert (await client.call_tool("odd")).content == "error: odd"
    assert (await client.call_tool("pair")).content == '[1,"a"]'


async def test_waiting_for_a_thread_is_bounded() -> None:
    """No thread within the time limit is a failure of the environment, and the body never runs."""
    ran: list[str] = []

    class Busy:
        timeout_s = None

        async def run(self, jobs: Any, *, serial: bool) -> Any: ...
        async def call(self, function: Any) -> Any:
            await asyncio.Event().wait()

        async def aclose(self) -> None: ...

    @tool(timeout_s=0.05)
    def late() -> None:
        """Run late."""
        ran.append("late")

    response = await ChatClient(tools=[late], executor=Busy()).call_tool("late")

    assert response.error is not None and response.error.kind == "environment"
    assert response.content == "error: no thread was free within 0.05 s"
    assert ran == []


async def test_a_function_that_returns_an_awaitable() -> None:
    """What such a function returns is awaited, under the tool's time limit."""

    async def inner(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @tool(timeout_s=0.2)
    def wrapped(seconds: float) -> Any:
        """Return a coroutine."""
        return inner(seconds)

    client = ChatClient(tools=[wrapped])

    assert (await client.call_tool("wrapped", {"seconds": 0})).content == "done"
    assert "timed out" in (await client.call_tool("wrapped", {"seconds": 9})).content
