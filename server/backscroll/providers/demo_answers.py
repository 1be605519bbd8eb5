"""What the demo model says when nobody wrote a script: rules, from the last message alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.canon import canonical_json
from backscroll.kernel.content import FilePart, text_of
from backscroll.kernel.message import Message, Role, ToolCall, parse_call
from backscroll.kernel.model import ModelRequest, Named
from backscroll.kernel.tool import ToolSpec

TOPICS = (
    "Every event of this conversation is numbered and stored before anyone sees it. Close this "
    "page in the middle of an answer, open it again, and it continues from the last number it has "
    "seen, whichever worker answers.",
    "The history is never edited to save tokens. When it outgrows my small window, what I am sent "
    "is shortened instead: first old tool results, then older messages become a summary, and the "
    "messages you see here stay as they are.",
    "The console keeps a record of every call. Open it beside this page: on the left is the whole "
    "history, on the right what I was sent, and each difference says why it is there.",
    "A run belongs to a worker, not to your connection. A socket that drops ends nothing; the Stop "
    "button does, and it closes the connection to the model as well.",
    "Tools run side by side and their results come back in the order in which I asked for them. A "
    "slow one can be stopped, and a large result is shortened in later requests only.",
    "A real model takes my place with one setting. Set OPENAI_API_KEY, or point OPENAI_BASE_URL at "
    "a server of your own, and name the model as openai:NAME in your agent.",
    "Several windows may watch one thread at the same time. Each has its own place in the log, so "
    "a slow one holds up nobody, and all of them see the same events in the same order.",
)

_WORD = re.compile(r"[^\W_]+")
_USE = re.compile(r"\buse\s+(?:the\s+)?([A-Za-z0-9_-]+)[ \t]*", re.IGNORECASE)
_THINK = re.compile(r"\b(think|reason)", re.IGNORECASE)
_HELLO = re.compile(r"^\W*(hi|hello|hey|help|what can you do)\b", re.IGNORECASE)
_RECALL = re.compile(r"\b(remember|recall|first message|earlier|so far)\b", re.IGNORECASE)
_COUNT = re.compile(r"\bcount to (\d{1,3})\b", re.IGNORECASE)
_LONG = re.compile(r"\b(long|story|essay|everything)\b", re.IGNORECASE)
_CODE = re.compile(r"\b[A-Za-z]+-?\d[\w-]*")
_QUOTED = re.compile(r"[\"“']([^\"”']+)[\"”']")
_ABOUT = re.compile(r"\b(?:in|for|about|of|on|named|called|to)\s+([^.,;:!?\n]+)", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

_VERBS = frozenset("get check list read find show fetch search run make do".split())
_FILLERS = _VERBS | frozenset(
    "is are the a an in of for what where when how please do does you can i me my there any some"
    " tell give with and to it on at which".split()
)

QUOTE_CHARS = 160
SHOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Answer:
    """What to say: text, reasoning, and the calls to make."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()


def answer(request: ModelRequest, tokens: int, window: int) -> Answer:
    """Return the reply to a request of that many tokens; equal requests get equal replies."""
    said = [message for message in request.messages if message.origin != "note"]
    last = said[-1] if said else Message(Role.USER, "")
    if last.role is Role.TOOL:
        return Answer(_report(said))
    text = text_of(last.for_model())
    calls = tuple(_wanted(text, request))
    reasoning = _reasoning(text, said, calls) if _THINK.search(text) else ""
    if calls:
        return Answer("", reasoning, calls)
    return Answer(_reply(text, last, said, request.tools, tokens, window), reasoning)


def _wanted(text: str, request: ModelRequest) -> Iterator[tuple[str, Any]]:
    """Yield the calls a message asks for: by `use <tool> <json>`, else by the tool's own words."""
    tools = {tool.name: tool for tool in request.tools}
    if request.tool_choice == "none" or not tools:
        return
    if isinstance(request.tool_choice, Named):
        yield request.tool_choice.name, infer(tools[request.tool_choice.name], text)
        return
    # With its arguments written out, a tool is called as written, also one that is not shown.
    named = [(found[1], text[found.end() :]) for found in _USE.finditer(text)]
    asked = [(name, rest) for name, rest in named if name in tools or rest.startswith("{")]
    for name, rest in asked:
        yield name, _arguments(rest, tools.get(name), text)
    if asked:
        return
    spoken = [tool for tool in request.tools if _is_meant(tool.name, text)]
    for tool in spoken:
        yield tool.name, infer(tool, text)
    if not spoken and request.tool_choice == "required":
        yield request.tools[0].name, infer(request.tools[0], text)


def _arguments(rest: str, tool: ToolSpec | None, text: str) -> Any:
    """Return the JSON text behind a tool's name, broken or not; without one, infer."""
    if tool is not None and not rest.startswith("{"):
        return infer(tool, text)
    try:
        return rest[: json.JSONDecoder().raw_decode(rest)[1]]
    except ValueError:
        return rest.split("\n", 1)[0]


def _is_meant(name: str, text: str) -> bool:
    """Say whether a message holds a tool's name in words: but for its verb, singular or plural."""
    words = _stems(re.sub(r"[_-]+", " ", name))
    return bool(words) and (words - _VERBS or words) <= _stems(text)


def _stems(text: str) -> set[str]:
    words = _WORD.findall(text.lower())
    return {word.removesuffix("s") if len(word) > 3 else word for word in words}


def infer(tool: ToolSpec, text: str) -> dict[str, Any]:
    """Return arguments for a tool, taken from a sentence where possible.

    What the schema requires is always there; an optional number only when its name is spoken.
    """
    properties: Mapping[str, Any] = tool.schema.get("properties") or {}
    required = tool.schema.get("required") or ()
    numbers = iter(_NUMBER.findall(_CODE.sub("", text)))
    out: dict[str, Any] = {}
    for name, schema in properties.items():
        schema = schema if isinstance(schema, Mapping) else {}
        is_spoken = _is_number(schema) and _stems(name) <= _stems(text)
        if name in required or is_spoken:
            out[name] = _value(schema, text, tool.name, numbers)
    return out


def _is_number(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("integer", "number")


def _value(schema: Mapping[str, Any], text: str, name: str, numbers: Iterator[str]) -> Any:
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        said = (v for v in schema["enum"] if str(v).lower() in text.lower())
        return next(said, schema["enum"][0])
    kind = schema.get("type")
    if _is_number(schema):
        found = float(next(numbers, schema.get("default", schema.get("minimum", 1))))
        return int(found) if kind == "integer" or found.is_integer() else found
    if kind == "boolean":
        return bool(schema.get("default", False))
    if kind in ("array", "object"):
        return [] if kind == "array" else {}
    return _phrase(text, name)


def _phrase(text: str, name: str) -> str:
    """Return what a sentence is about: quoted, a code like A-1042, or what is not filler."""
    own = _stems(re.sub(r"[_-]+", " ", name))
    if quoted := _QUOTED.search(text):
        return quoted[1].strip()
    if code := _CODE.search(text):
        return code[0]
    for found in _ABOUT.finditer(text):
        if not _stems(found[1]) <= own | _FILLERS:
            return found[1].strip()
    spoken = (word for word in _WORD.findall(text) if not word.isdigit())
    rest = [w for w in spoken if not _stems(w) <= own and w.lower() not in _FILLERS]
    return " ".join(rest) or text.strip()


def _report(said: Sequence[Message]) -> str:
    """Say what the newest tools answered."""
    results: list[Message] = []
    for message in reversed(said):
        if message.role is not Role.TOOL:
            break
        results.insert(0, message)
    return "\n\n".join(_told(message) for message in results)


def _told(message: Message) -> str:
    name, text = message.name or "the tool", text_of(message.for_model()).strip()
    if message.failed:
        return f"`{name}` did not work: {cut(text, SHOWN_CHARS)}"
    if len(text) <= SHOWN_CHARS:
        return f"`{name}` says: {text or 'nothing'}"
    begin = cut(text, QUOTE_CHARS)
    return (
        f"`{name}` returned {len(text):,} characters. It begins: {begin}\n\nThe whole result is in "
        "the history. Later requests will hold a shortened one; the console shows where."
    )


def _reasoning(text: str, said: Sequence[Message], calls: Sequence[tuple[str, Any]]) -> str:
    plan = f"I will call {', '.join(name for name, _ in calls)}." if calls else "I will answer."
    return (
        f'The question is: "{cut(text, QUOTE_CHARS)}". I can see {len(said)} messages. '
        f"The last one is what counts for a model that follows rules. {plan}"
    )


def _reply(
    text: str,
    last: Message,
    said: Sequence[Message],
    tools: Sequence[ToolSpec],
    tokens: int,
    window: int,
) -> str:
    if _HELLO.search(text) or not text.strip() and not isinstance(last.content, tuple):
        return _introduction(tools, window)
    if found := _COUNT.search(text):
        return " ".join(str(n) for n in range(1, int(found[1]) + 1))
    if _RECALL.search(text):
        return _recalled(said, tokens, window)
    turns = sum(message.role is Role.USER for message in said)
    both = (TOPICS[(2 * turns + n) % len(TOPICS)] for n in range(2))
    topics = TOPICS if _LONG.search(text) else tuple(both)
    files = [part for part in last.content or () if isinstance(part, FilePart)]
    seen = "".join(f" You attached a file of type {part.media_type}." for part in files)
    return "\n\n".join(
        (
            f'You wrote: "{cut(text, QUOTE_CHARS)}".{seen}',
            *topics,
            f"This request held {len(said)} messages, about {tokens:,} of the {window:,} tokens "
            "I can take.",
        )
    )


def _introduction(tools: Sequence[ToolSpec], window: int) -> str:
    lines = [
        "Hello! I am the demo model. I need no key and no network: my answers follow rules.",
        f"My window is small on purpose ({window:,} tokens), so a few dozen messages show how a "
        "long conversation is compacted.",
        "Try: think about something · count to 200, then Stop · tell me a long story · what do "
        "you remember?",
    ]
    if tools:
        names = "\n".join(f"- `{tool.name}`: {tool.description}" for tool in tools)
        example = canonical_json(dict.fromkeys(tools[0].schema.get("properties") or {}, "…"))
        lines.append(
            f"My tools, by plain words or as `use {tools[0].name} {example}`:\n{names}",
        )
    return "\n\n".join(lines)


def _recalled(said: Sequence[Message], tokens: int, window: int) -> str:
    people = [text_of(m.for_model()) for m in said if m.role is Role.USER]
    first = cut(people[0], SHOWN_CHARS) if people else ""
    return (
        f"I can see {len(said)} messages, about {tokens:,} of {window:,} tokens. "
        f'The first thing from you that I was sent is: "{first}"'
    )


def cut(text: str, chars: int) -> str:
    """Return a text on one line, with an ellipsis where it is longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 1] + "…"


def as_calls(answer: Answer, ids: Iterator[str]) -> tuple[ToolCall, ...]:
    """Return the calls of an answer, with ids in order."""
    return tuple(parse_call(next(ids), name, args) for name, args in answer.calls)
