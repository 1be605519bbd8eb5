"""The scripted provider's HTTP server: raw asyncio, so that every byte and close is ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from provider_kinds import KINDS, Kind
from provider_rules import Refused, Rules, check_openai
from provider_rules_anthropic import check_anthropic, check_count
from provider_script import Hold, Reply, error, openai_body, openai_events, usage_of, words
from provider_script_anthropic import anthropic_body, anthropic_error, anthropic_events

COUNT = "/messages/count_tokens"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the server behaves beside its script; see scripted_provider."""

    strict: bool = True
    kind: str = "generic"
    extra_keys: tuple[str, ...] = ()
    alternate: bool = False
    reasoning: Any = None
    api_key: str | None = None
    window: int | None = None
    chars_per_token: float = 4.0
    overflow: str = "openai"
    tools_with_history: bool = False
    hold_counts: bool = False
    drop_reused: int = 0
    drop_all: int = 0
    routes: dict[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> Kind:
        """The kind of server that is played."""
        return KINDS[self.kind]

    def rules(self) -> Rules:
        """Return the part the request check reads: the kind's rules, and what was set beside."""
        base = self.server.rules
        return replace(
            base,
            extra_keys=(*base.extra_keys, *self.extra_keys),
            alternate=self.alternate,
            reasoning=self.reasoning or base.reasoning,
            tools_with_history=self.tools_with_history,
        )


@dataclass(slots=True)
class Recorded:
    """One request as it arrived, and what became of it."""

    number: int
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    at: float
    problem: str | None = None
    status: int | None = None
    sent: int = 0
    finished_at: float | None = None
    closed_at: float | None = None

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)

    @property
    def is_anthropic(self) -> bool:
        """Whether it came over the messages wire."""
        return self.path.endswith(("/messages", COUNT))

    @property
    def is_count(self) -> bool:
        """Whether it only asks for the size of a prompt."""
        return self.path.endswith(COUNT)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the body."""
        found: list[dict[str, Any]] = self.json["messages"]
        return found


@dataclass(slots=True)
class Rule:
    """Replies for requests whose body contains a text; the last one repeats."""

    text: str
    replies: list[Reply]


class Script:
    """What to answer: rules by content first, then the queue, then the fallback."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything that was scripted or recorded, and all settings."""
        self.queue: list[Reply] = []
        self.rules: list[Rule] = []
        self.fallback: Reply | None = None
        self.settings = Settings()
        self.records: list[Recorded] = []
        self.counts: list[Recorded] = []
        self.holds: dict[str, asyncio.Event] = {}
        self.open_holds: set[str] = set()
        self.answer: Callable[[Recorded], Reply | None] | None = None
        self.count: Callable[[Any], int] = self._count

    def configure(self, **changes: Any) -> None:
        """Change settings."""
        known = {f.name for f in fields(Settings)}
        assert changes.keys() <= known, f"expected some of {sorted(known)}, got {sorted(changes)}"
        self.settings = replace(self.settings, **changes)

    def next(self, record: Recorded) -> Reply:
        """Return the reply to a request that was accepted."""
        if record.is_count:
            return Reply(body={"input_tokens": self.count(record.json)})
        if self.answer is not None and (made := self.answer(record)) is not None:
            return made
        text = "\n".join(_strings(record.json["messages"]))
        for rule in self.rules:
            if rule.text in text and rule.replies:
                return rule.replies[0] if len(rule.replies) == 1 else rule.replies.pop(0)
        if self.queue:
            return self.queue.pop(0)
        played = f"the script has ended: there is no reply for request {record.number + 1}"
        return self.fallback or error(400, played, "script_ended", "script_ended")

    def _count(self, body: Any) -> int:
        """Count the tokens of a request: its texts, and four for each message."""
        messages, tools = body.get("messages", []), body.get("tools", [])
        chars = sum(len(text) for text in _strings([messages, tools]))
        return math.ceil(chars / self.settings.chars_per_token) + 4 * len(messages)

    def check(self, record: Recorded) -> Reply | None:
        """Return the refusal a real server would send, if there is a reason for one."""
        refusal = self._refusal(record)
        if refusal is None or not record.is_anthropic:
            return refusal
        inner = refusal.body["error"]
        kind = "authentication_error" if refusal.status == 401 else "invalid_request_error"
        return anthropic_error(refusal.status, inner["message"], kind)

    def _refusal(self, record: Recorded) -> Reply | None:
        key, server = self.settings.api_key, self.settings.server
        header = "x-api-key" if record.is_anthropic else server.key_header
        bearer = record.headers.get("authorization", "").removeprefix("Bearer ")
        given = record.headers.get(header, bearer if record.is_anthropic else "")
        given = given.removeprefix("Bearer ")
        if key is not None and given != key:
            record.problem = f"Incorrect API key provided: {given}."
            return _refusal(server.refuse(record.problem, None, True))
        if self.settings.strict:
            check = check_anthropic if record.is_anthropic else check_openai
            check = check_count if record.is_count else check
            try:
                check(record.body, self.settings.rules())
            except Refused as refused:
                record.problem = str(refused)
                refuse = KINDS["generic"].refuse if record.is_anthropic else server.refuse
                return _refusal(refuse(str(refused), refused.param, False))
        return None if record.is_count else self._overflow(record.json, record.is_anthropic)

    def _overflow(self, body: dict[str, Any], is_anthropic: bool) -> Reply | None:
        window = self.settings.window
        if window is None:
            return None
        used = self.count(body)
        output = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if self.settings.overflow == "llama.cpp":
            return _llama_overflow(used, window) if used >= window else None
        if used + output <= window:
            return None
        if is_anthropic and used <= window:
            text = f"exceed context limit: {used} + {output} > {window}"
            return error(400, f"input length and `max_tokens` {text}, decrease input length")
        if is_anthropic:
            return error(400, f"prompt is too long: {used} tokens > {window} maximum")
        if self.settings.kind != "generic":
            return _refusal(self.settings.server.overflow(used, output, window))
        asked = f"your messages resulted in {used} tokens."
        if used <= window:
            asked = (
                f"you requested {used + output} tokens "
                f"({used} in the messages, {output} in the completion)."
            )
        text = f"This model's maximum context length is {window} tokens. However, {asked}"
        return error(400, f"{text} Please reduce the length.", "context_length_exceeded")


def _refusal(answer: tuple[int, Any]) -> Reply:
    status, body = answer
    return Reply(status=status, body=body)


def _llama_overflow(used: int, window: int) -> Reply:
    message = (
        f"request ({used} tokens) exceeds the available context size ({window} tokens), "
        "try increasing it"
    )
    numbers = {"n_prompt_tokens": used, "n_ctx": window}
    body = {"code": 400, "message": message, "type": "exceed_context_size_error", **numbers}
    return Reply(status=400, body={"error": body})


class Gone(Exception):
    """The client closed the connection, or the script says that we do."""


class Connection:
    """One client connection: reads requests, plays replies, notices when the client leaves."""

    def __init__(
        self,
        script: Script,
        number: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        control: Callable[[str, bytes], Any],
    ) -> None:
        self.script, self.number, self.control = script, number, control
        self.reader, self.writer = reader, writer
        self.current: Recorded | None = None

    async def serve(self) -> None:
        """Answer requests until one side closes."""
        try:
            served = 0
            while (request := await self._read()) is not None:
                await self._answer(*request, reused=served > 0)
                served += 1
        except (Gone, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            if self.current is not None and self.current.closed_at is None:
                self.current.closed_at = time.monotonic()
            with contextlib.suppress(ConnectionError):
                self.writer.close()

    async def _read(self) -> tuple[str, dict[str, str], bytes] | None:
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        lines = head.decode("latin-1").split("\r\n")
        pairs = (line.split(":", 1) for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, value in pairs}
        size = int(headers.get("content-length", "0"))
        body = await self.reader.readexactly(size)
        return lines[0].split(" ")[1], headers, body

    async def _answer(self, path: str, headers: dict[str, str], body: bytes, reused: bool) -> None:
        settings = self.script.settings
        if path.startswith("/control/") or path == "/readyz":
            await self._send_body(200, self.control(path, body), {})
            return
        if path in settings.routes:
            status, value = settings.routes[path]
            await self._send_body(status, value, {})
            return
        if not path.endswith(("/chat/completions", "/messages", COUNT)):
            await self._send_body(404, {"error": {"message": f"no route {path}"}}, {})
            return
        records = self.script.counts if path.endswith(COUNT) else self.script.records
        record = Recorded(len(records), path, headers, body, self.number, time.monotonic())
        records.append(record)
        self.current = record
        self._drop(settings, reused)
        if record.is_count and settings.hold_counts:
            await self._hold(Hold("count"))
        reply = self.script.check(record) or self.script.next(record)
        await self._play(record, reply)
        record.finished_at = time.monotonic()

    def _drop(self, settings: Settings, reused: bool) -> None:
        """Close without a byte, as a server does that just gave up an idle connection."""
        if settings.drop_all or (reused and settings.drop_reused):
            name = "drop_all" if settings.drop_all else "drop_reused"
            self.script.configure(**{name: getattr(settings, name) - 1})
            raise Gone

    async def _play(self, record: Recorded, reply: Reply) -> None:
        record.status = reply.status
        request = {} if reply.body is not None else record.json
        if reply.body is not None or not request.get("stream"):
            if reply.hold_after is not None:
                await self._hold(Hold())
            value = reply.body
            if value is None:
                value = self._body(record, reply)
            await self._send_body(reply.status, value, reply.headers)
            return
        await self._stream(record, reply, self._events(record, reply))

    def _body(self, record: Recorded, reply: Reply) -> dict[str, Any]:
        model = str(record.json.get("model"))
        if record.is_anthropic:
            return anthropic_body(reply, model, self._anthropic_usage(reply, record.json))
        form = self.script.settings.server.form
        return openai_body(reply, model, self._usage(reply, record.json), form)

    def _events(self, record: Recorded, reply: Reply) -> list[str | Hold]:
        request = record.json
        model = str(request.get("model"))
        if record.is_anthropic:
            return anthropic_events(reply, model, self._anthropic_usage(reply, request))
        form = self.script.settings.server.form
        asked = (request.get("stream_options") or {}).get("include_usage")
        usage = self._usage(reply, request) if asked or form.usage == "last" else None
        return openai_events(reply, model, usage, form)

    def _anthropic_usage(self, reply: Reply, request: dict[str, Any]) -> dict[str, int]:
        usage = self._usage(reply, request) or usage_of(0, 0)
        if "input_tokens" in usage:
            return usage
        return {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
        }

    async def _stream(self, record: Recorded, reply: Reply, events: list[str | Hold]) -> None:
        if isinstance(events[0], Hold):
            await self._hold(events[0])
            events = events[1:]
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._head(reply.status, {**head, **reply.headers})
        for event in events:
            if isinstance(event, Hold):
                await self._flush()
                await self._hold(event)
                continue
            for piece in _pieces(event.encode(), reply.split):
                self.writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if reply.split:
                    await self._flush()
            record.sent += 1
            await self._flush()
            if reply.pause_s:
                await self._until_gone(reply.pause_s)
        if reply.end == "open":
            await self._hold(Hold("open"))
        if reply.end == "reset":
            self.writer.transport.abort()
        if reply.end in ("drop", "reset"):
            raise Gone
        self.writer.write(b"0\r\n\r\n")
        await self._flush()

    def _usage(self, reply: Reply, request: dict[str, Any]) -> dict[str, Any] | None:
        if reply.usage != "auto":
            return None if reply.usage is None else dict(reply.usage)
        output = len(words(reply.text)) + len(words(reply.reasoning)) + 8 * len(reply.calls)
        return usage_of(self.script.count(request), output)

    async def _hold(self, hold: Hold) -> None:
        """Wait for a release or for the client to leave."""
        event = self.script.holds.setdefault(hold.name, asyncio.Event())
        self.script.open_holds.add(hold.name)
        released = asyncio.ensure_future(event.wait())
        try:
            await self._until_gone(None, released)
        finally:
            self.script.open_holds.discard(hold.name)

    async def _until_gone(
        self, seconds: float | None, other: asyncio.Future[Any] | None = None
    ) -> None:
        """Wait that long, or for another future; raise Gone as soon as the client closes."""
        left = asyncio.ensure_future(self.reader.read(1))
        waited = {left} if other is None else {left, other}
        try:
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if left.done() and not left.cancelled():
                raise Gone
        finally:
            for future in waited:
                if not future.done():
                    future.cancel()
            await asyncio.wait(waited)

    async def _send_body(self, status: int, value: Any, headers: dict[str, str]) -> None:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        raw = text.encode()
        kind = "text/plain" if isinstance(value, str) else "application/json"
        length = {"content-type": kind, "content-length": str(len(raw))}
        self._head(status, {**length, **headers})
        self.writer.write(raw)
        await self._flush()

    def _head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def _flush(self) -> None:
        if self.reader.at_eof() or self.writer.is_closing():
            raise Gone
        await self.writer.drain()


def _pieces(raw: bytes, size: int | None) -> Iterator[bytes]:
    step = size or max(len(raw), 1)
    for start in range(0, len(raw), step):
        yield raw[start : start + step]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
