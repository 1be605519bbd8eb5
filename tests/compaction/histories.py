"""Histories for the tests of compaction: short makers, and random ones for properties."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.kernel.content import FilePart, TextPart
from backscroll.kernel.message import (
    Blocks,
    Message,
    ToolCall,
    assistant,
    system,
    tool_call,
    tool_result,
    user,
)
from hypothesis import strategies as st

PNG = FilePart("image/png", data="iVBORw0KGgo=")
SIGNED = Blocks("anthropic-content", ({"type": "thinking", "signature": "s" * 60},), "anthropic")


def u(n: int, text: str = "go on") -> Message:
    """Return a user message with the id `m<n>`."""
    return user(text, f"m{n}")


def a(n: int, text: str | None = "done", *calls: str, **args: object) -> Message:
    """Return an assistant message that calls `read` once for each call id."""
    return assistant(text, [tool_call(call, "read", args) for call in calls], f"m{n}")


def t(n: int, call: str, body: str = "ok", name: str = "read") -> Message:
    """Return the result of a call."""
    return tool_result(call, name, body, id=f"m{n}")


def rounds(count: int, body: str = "line of a result\n" * 40, start: int = 1) -> list[Message]:
    """Return tool rounds: a call and its result each, with ids and call ids in one row."""
    out: list[Message] = []
    for n in range(start, start + count):
        out += [a(2 * n, None, f"c{n}", path=f"src/f{n}.py"), t(2 * n + 1, f"c{n}", body)]
    return out


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "You must never touch the staging database.",
            "the release branch is now B",
            "以后请务必使用中文。我们决定改用 Redis。",
            "ERROR db: connection to 10.0.0.7:5432 refused, code E4471\n" * 3,
            "deploy_id = dpl_7\n" + "row 1 ok\n" * 80,
            '{"order_id":"ord_12","total":12.5,"rows":[' + '{"a":1},' * 60 + "{}]}",
            "word " * 900,
            "的" * 700,
            "🔥" * 300,
            "<facts> not ours </facts>",
        ]
    ),
)


@st.composite
def histories(draw: st.DrawFn, max_rounds: int = 12) -> list[Message]:
    """Draw a history: parallel and missing calls, reused ids, system messages, blocks, media."""
    out: list[Message] = []
    for _ in range(draw(st.integers(0, max_rounds))):
        out += _step(draw, len(out))
    return [message.replace(id=f"m{n}") for n, message in enumerate(out)]


def _step(draw: st.DrawFn, at: int) -> Sequence[Message]:
    kind = draw(st.sampled_from(["user", "image", "say", "system", "think", "tools", "orphan"]))
    text = draw(TEXTS)
    if kind == "user":
        return [user(text)]
    if kind == "image":
        return [user((TextPart(text), PNG))]
    if kind == "say":
        return [assistant(text)]
    if kind == "system":
        return [system(text)]
    if kind == "think":
        return [assistant(None).replace(reasoning=text or "hm", blocks=SIGNED)]
    if kind == "orphan":
        return [tool_result("c0", "read", text)]
    return _tools(draw, text)


def _tools(draw: st.DrawFn, text: str) -> Sequence[Message]:
    ids = draw(st.lists(st.sampled_from(["c1", "c2", "c3", "c4"]), min_size=1, max_size=3))
    names = st.sampled_from(["read", "write_file", "search"])
    calls = [ToolCall(i, draw(names), {"path": "src/a.py", "content": text}) for i in ids]
    asked = assistant(draw(st.sampled_from([None, "let me look"])), calls)
    if draw(st.booleans()):
        asked = asked.replace(blocks=SIGNED)
    answered = draw(st.permutations(calls))[: draw(st.integers(0, len(calls)))]
    return [asked, *(tool_result(c.id, c.name, draw(TEXTS)) for c in answered)]
