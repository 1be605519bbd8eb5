"""The onion: registration order, honest short cuts, and mistakes found at assembly."""

from __future__ import annotations

from typing import Any

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import (
    ChatHandler,
    Filter,
    around,
    build_chain,
    check_filters,
    hooks_of,
)
from backscroll.kernel.message import Role, assistant, user
from backscroll.kernel.request import ChatRequest, ChatResponse
from hypothesis import given
from hypothesis import strategies as st

REQUEST = ChatRequest((user("x"),))


class Trace(Filter):
    """Writes down when it is entered and left."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name, self.trace = name, trace

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Trace around the chain."""
        self.trace.append(f"{self.name}-before")
        response = await chain(request)
        self.trace.append(f"{self.name}-after")
        return response


async def test_the_first_registered_is_the_outermost() -> None:
    """FIL1: A-before, B-before, terminal, B-after, A-after."""
    trace: list[str] = []

    async def terminal(request: ChatRequest) -> ChatResponse:
        trace.append("terminal")
        return ChatResponse(assistant("ok"))

    chain = build_chain([Trace("A", trace).chat, Trace("B", trace).chat], terminal)
    await chain(REQUEST)

    assert trace == ["A-before", "B-before", "terminal", "B-after", "A-after"]


@given(st.lists(st.sampled_from(["pass", "answer", "twice", "raise"]), max_size=6))
async def test_any_chain_is_an_onion(kinds: list[str]) -> None:
    """FIL1, FIL3: what runs is what a plain nesting of the hooks would run, in that order."""
    trace: list[str] = []

    def hook(name: str, kind: str) -> Any:
        async def around(request: Any, chain: Any) -> list[str]:
            trace.append(f"{name}(")
            if kind == "answer":
                return [name]
            if kind == "raise":
                raise ValueError(name)
            inner: list[str] = await chain(request)
            if kind == "twice":
                inner = await chain(request)
            trace.append(f"){name}")
            return [name, *inner]

        return around

    async def terminal(request: Any) -> list[str]:
        trace.append("terminal")
        return ["end"]

    def expected(at: int) -> tuple[list[str], list[str] | None]:
        if at == len(kinds):
            return ["terminal"], ["end"]
        name, kind = str(at), kinds[at]
        if kind in ("answer", "raise"):
            return [f"{name}("], [name] if kind == "answer" else None
        steps, value = expected(at + 1)
        if value is None:
            return [f"{name}(", *steps], None
        return [f"{name}(", *steps * (1 + (kind == "twice")), f"){name}"], [name, *value]

    chain = build_chain([hook(str(n), kind) for n, kind in enumerate(kinds)], terminal)
    try:
        found = await chain(REQUEST)
    except ValueError:
        found = None

    assert (trace, found) == expected(0)


def test_no_filter_is_the_terminal_itself() -> None:
    """FIL2: an empty chain adds no wrapper."""

    async def terminal(request: Any) -> Any: ...

    assert build_chain([], terminal) is terminal


async def test_a_short_cut_skips_everything_inside() -> None:
    """FIL3: when A answers, neither B nor the terminal runs."""
    trace: list[str] = []

    async def answer(request: Any, chain: Any) -> ChatResponse:
        return ChatResponse(assistant("short"))

    async def terminal(request: Any) -> Any:
        trace.append("terminal")

    response = await build_chain([answer, Trace("B", trace).chat], terminal)(REQUEST)

    assert response.text == "short" and trace == []


async def test_around_is_the_hand_written_hook() -> None:
    """FIL10: before and after, sync or async; an exception in before goes out."""

    async def later(response: ChatResponse) -> ChatResponse:
        return response.replace(model="after")

    async def terminal(request: ChatRequest) -> ChatResponse:
        return ChatResponse(assistant(request.system[0]))

    hook = around(before=lambda r: r.replace(system=("s",)), after=later)
    response = await build_chain([hook], terminal)(REQUEST)
    assert (response.text, response.model) == ("s", "after")

    def broken(request: Any) -> Any:
        raise ValueError("before")

    with pytest.raises(ValueError, match="before"):
        await build_chain([around(before=broken)], terminal)(REQUEST)


class Misspelt(Filter):
    """A filter whose only hook is misspelt."""

    async def chatt(self, request: Any, chain: Any) -> Any: ...


@pytest.mark.parametrize(
    ("item", "kind"),
    [({}, "not_a_filter"), (Trace, "not_a_filter"), (Misspelt(), "filter_without_hooks")],
)
def test_what_is_no_filter_is_refused(item: object, kind: str) -> None:
    """FIL11: a dict, a class and a misspelt hook are refused with their position."""
    with pytest.raises(AssemblyError, match=r"filters\[1\]") as caught:
        check_filters([Trace("A", []), item])
    assert caught.value.kind == kind


def test_filters_of_functions() -> None:
    """FIL14: a function per hook; anything else is a TypeError."""

    async def hook(request: Any, chain: Any) -> Any: ...

    made = Filter.of("x", chat=hook)

    assert hooks_of(made) == ("chat",) and made.label == "x"
    assert check_filters([made]) == (made,)
    with pytest.raises(TypeError, match="order"):
        Filter.of("x", chat=hook, order=3)


async def test_the_default_hooks_pass_on() -> None:
    """A hook that is not overridden changes nothing, and has no tokens."""

    async def terminal(request: Any) -> Any:
        return request

    bare: Any = Filter()
    for name in ("turn", "iteration", "chat", "tool"):
        assert await getattr(bare, name)("r", terminal) == "r"
    with pytest.raises(TypeError):
        bare.tokens()
    await bare.aclose()


def test_a_filters_own_message_names_it() -> None:
    """A message made by a filter carries its origin."""
    message = Trace("A", []).message(Role.USER, "try again")

    assert message.origin == "filter:A"
    assert Filter().label == "Filter"


async def test_a_hook_that_returns_something_else_is_named() -> None:
    """What is neither of the expected results says which hook returned it."""

    async def forgets(request: str, chain: Any) -> Any:
        await chain(request)

    async def terminal(request: str) -> str:
        return request

    with pytest.raises(TypeError, match=r"forgets: expected str or bytes, got NoneType"):
        await build_chain([forgets], terminal, str, bytes)("r")
    assert await build_chain([forgets], terminal)("r") is None


async def test_forgotten_await_is_named() -> None:
    """A hook that returns what the chain gave it without awaiting it is told so, by its name."""

    async def terminal(request: str) -> str:
        return request

    async def forgetful(request: str, chain: Any) -> Any:
        coroutine = chain(request)
        coroutine.close()
        return coroutine

    with pytest.raises(TypeError, match=r"forgetful: expected str, got coroutine; .*await"):
        await build_chain([forgetful], terminal, str)("x")


async def test_plain_hook_is_named() -> None:
    """A hook that is no coroutine function and returns a plain value is named."""

    async def terminal(request: str) -> str:
        return request

    def plain(request: str, chain: Any) -> Any:
        return None

    with pytest.raises(TypeError, match=r"plain: expected a coroutine .*, got NoneType"):
        await build_chain([plain], terminal, str)("x")
