"""Filters: the onion around turns, iterations, model calls, tool calls and outgoing text.

A filter overrides the hooks it wants: `turn`, `iteration`, `chat` and `tool` wrap everything
further in, as `hook(request, chain) -> response`; `tokens` makes a transform per stream. The
first registered filter is the outermost.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

from backscroll.kernel.content import Content
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.message import Message, Role
from backscroll.kernel.model import Reasoning, Text
from backscroll.kernel.request import ChatRequest, ChatResponse, ToolRequest, ToolResponse
from backscroll.kernel.turn import Continue, IterationRequest, TurnRequest, TurnResult

Req = TypeVar("Req")
Res = TypeVar("Res")

ChatHandler = Callable[[ChatRequest], Awaitable[ChatResponse]]
ToolHandler = Callable[[ToolRequest], Awaitable[ToolResponse]]
TurnHandler = Callable[[TurnRequest], Awaitable[TurnResult]]
IterationHandler = Callable[[IterationRequest], Awaitable[Continue | TurnResult]]

HOOKS = ("turn", "iteration", "chat", "tool", "tokens")


class TokenTransform(Protocol):
    """What one stream's text goes through on its way out; it may hold deltas back."""

    def feed(self, delta: Text | Reasoning) -> Iterable[Text | Reasoning]:
        """Return what can go out now."""
        ...

    def finish(self) -> Iterable[Text | Reasoning]:
        """Return what was held, after a normal end; not called when the stream broke."""
        ...


class Filter:
    """Base of all filters; override at least one hook. One object serves many conversations."""

    name: str = ""

    async def turn(self, request: TurnRequest, chain: TurnHandler) -> TurnResult:
        """Wrap a whole turn: every iteration of one `invoke` or `resume`."""
        return await chain(request)

    async def iteration(
        self, request: IterationRequest, chain: IterationHandler
    ) -> Continue | TurnResult:
        """Wrap one model call and the tool batch it asks for."""
        return await chain(request)

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Wrap one model call."""
        return await chain(request)

    async def tool(self, request: ToolRequest, chain: ToolHandler) -> ToolResponse:
        """Wrap one tool execution; it runs inside concurrent tasks."""
        return await chain(request)

    def tokens(self) -> TokenTransform:
        """Return a fresh transform for one stream's text."""
        raise TypeError(f"filter {self.label!r} transforms no tokens")

    async def aclose(self) -> None:
        """Let go of connections of the filter's own; called when its agent is closed."""

    @property
    def label(self) -> str:
        """The filter's name, or its class's."""
        return self.name or type(self).__name__

    def message(self, role: Role, text: Content) -> Message:
        """Make a message of this filter's own, marked as such."""
        return Message(role, text, origin=f"filter:{self.label}")

    @classmethod
    def of(cls, name: str, **hooks: Any) -> Filter:
        """Make a filter of functions, one per hook; an unknown hook is a TypeError."""
        unknown = sorted(set(hooks) - set(HOOKS))
        if unknown:
            raise TypeError(f"Filter.of() has no hook {unknown[0]!r}; hooks are {', '.join(HOOKS)}")
        return _FunctionFilter(name, hooks)


class _FunctionFilter(Filter):
    """A filter whose hooks are functions given to `Filter.of`."""

    def __init__(self, name: str, hooks: dict[str, Any]) -> None:
        self.name = name
        self.hooks = tuple(hooks)
        self.__dict__.update(hooks)


def hooks_of(item: Filter) -> tuple[str, ...]:
    """Return the names of the hooks a filter takes part in."""
    if isinstance(item, _FunctionFilter):
        return item.hooks
    return tuple(name for name in HOOKS if getattr(type(item), name) is not getattr(Filter, name))


def check_filters(filters: Sequence[object]) -> tuple[Filter, ...]:
    """Return the filters; raises `not_a_filter` or `filter_without_hooks` with the position."""
    checked: list[Filter] = []
    for position, item in enumerate(filters):
        where = f"filters[{position}]"
        if not isinstance(item, Filter):
            found = item.__name__ if isinstance(item, type) else type(item).__name__
            message = f"{where}: expected a filter object, got {found!r}"
            raise AssemblyError("not_a_filter", message, where)
        if not hooks_of(item):
            names = ", ".join(HOOKS)
            message = f"{where}: {item.label!r} overrides no hook; hooks are {names}"
            raise AssemblyError("filter_without_hooks", message, where)
        checked.append(item)
    return tuple(checked)


def build_chain(
    hooks: Iterable[Callable[[Req, Callable[[Req], Awaitable[Res]]], Awaitable[Res]]],
    terminal: Callable[[Req], Awaitable[Res]],
    *results: type,
) -> Callable[[Req], Awaitable[Res]]:
    """Fold hooks around a terminal, the first outermost; without hooks it is the terminal.

    A hook that returns none of the `results` types raises a TypeError that names it.
    """
    chain = terminal
    for hook in reversed(list(hooks)):
        chain = _link(hook, chain, results or (object,))
    return chain


def _link(
    hook: Callable[[Req, Callable[[Req], Awaitable[Res]]], Awaitable[Res]],
    inner: Callable[[Req], Awaitable[Res]],
    results: tuple[type, ...],
) -> Callable[[Req], Awaitable[Res]]:
    async def run(request: Req) -> Res:
        name = getattr(hook, "__qualname__", type(hook).__name__)
        begun: Any = hook(request, inner)
        if not inspect.isawaitable(begun):
            got = type(begun).__name__
            raise TypeError(f"{name}: expected a coroutine (async def), got {got}")
        result: Any = await begun
        if not isinstance(result, results):
            expected = " or ".join(cls.__name__ for cls in results)
            hint = "; await what the chain returns" if inspect.isawaitable(result) else ""
            raise TypeError(f"{name}: expected {expected}, got {type(result).__name__}{hint}")
        return cast("Res", result)

    return run


def around(
    before: Callable[[Any], Any] | None = None, after: Callable[[Any], Any] | None = None
) -> Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]:
    """Make a hook equal to `after(await chain(before(request)))`; both parts sync or async."""

    async def hook(request: Any, chain: Callable[[Any], Awaitable[Any]]) -> Any:
        if before is not None:
            request = await _settled(before(request))
        response = await chain(request)
        return response if after is None else await _settled(after(response))

    return hook


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
