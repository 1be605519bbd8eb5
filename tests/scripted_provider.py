"""A strict scripted model provider: a real HTTP server on loopback that plays prepared answers.

    with ScriptedProvider() as provider:                 # a thread of this process
        provider.add(Reply(text="Hello"), Reply(calls=(Call("add", {"a": 1}),)))
        model = OpenAIModel("scripted", base_url=provider.base_url, api_key="k")
        ...
        assert provider.requests[0].messages[-1]["content"] == "hi"

`ScriptedProcess()` is the same as a process of its own (for e2e, several workers, crashes); both
have every method of `ProviderControl`. The fixture `provider` gives a ScriptedProvider.

What is answered, in this order: `provider.script.answer(record) -> Reply | None` (in-process
only), rules by content (`when("Summarise", Reply(...))`, the last reply of a rule repeats), the
queue (`add`), the fallback (`otherwise`). After that a 400 says that the script has ended.

It speaks chat completions (`/v1/chat/completions`) and messages (`/v1/messages`; give an
AnthropicModel `base_url=provider.url`); the same Reply is played on both. Prompts are counted
(`/v1/messages/count_tokens`) like usage, without the script; those requests are in `counts`.

Before that each request is checked by the rules of real servers (provider_rules: roles, pairing of
calls and results, no empty text, unique names, schema form, one system message first) and refused
with 400 when it breaks one; `provider.problems` lists such refusals and should be empty.

Settings (`configure(...)`): `strict` (True) · `kind` ("generic"; "openai", "azure", "mistral" and
the others of provider_kinds: their rules, refusals and streams) · `extra_keys` accepted in the
body · `alternate` (roles must alternate) · `reasoning` ("allow", "refuse", "demand" reasoning on
messages with calls) · `api_key` (401 without it, echoing what was sent) · `window` (refuse above
it; `chars_per_token` 4.0 and four per message count, or set `provider.script.count`) · `overflow`
("openai": prompt plus output, "llama.cpp": the prompt alone) · `tools_with_history` (tool blocks
need tools) · `hold_counts` (counting waits for `release("count")`) · `drop_reused` (close the next
n requests that come on a reused connection, without a byte) · `drop_all` (the same for any request)
· `routes` ({"/v1/models": (200, {...})}: fixed answers).

Replies: see provider_script.Reply. A `Hold(name)` in a stream waits for `release(name)`.

Records: `requests` is a list of Recorded: `body` (exact bytes), `json`, `messages`, `headers`,
`problem`, `status`, `sent` (events written), `finished_at`, `closed_at` (when its connection was
seen closed). Waiting: `wait_requests(n)`, `wait_closed(n, within_s=1)`, `wait_held(name)`; async
tests use `await_requests`, `await_closed`, `await_held`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

import httpx
import pytest
from deadlines import wait_until
from processes import PROGRAMS, HttpProcess, free_port
from provider_script import Call, Hold, Reply, error, usage_of
from provider_server import Connection, Recorded, Rule, Script, Settings

__all__ = [
    "Call", "Hold", "ProviderControl", "ProviderServer", "Recorded", "Reply", "ScriptedProcess",
    "ScriptedProvider", "Settings", "error", "provider", "usage_of",
]  # fmt: skip


class ProviderControl:
    """What tests do with a scripted provider, wherever it runs."""

    url: str

    def do(self, command: str, **values: Any) -> Any:
        """Carry out one command of the control API and return its JSON answer."""
        raise NotImplementedError

    @property
    def base_url(self) -> str:
        """The base URL a model of the OpenAI family is given."""
        return f"{self.url}/v1"

    def add(self, *replies: Reply) -> None:
        """Add replies to the queue."""
        self.do("add", replies=[reply.to_json() for reply in replies])

    def when(self, text: str, *replies: Reply) -> None:
        """Answer requests whose messages contain the text with these; the last one repeats."""
        self.do("when", text=text, replies=[reply.to_json() for reply in replies])

    def otherwise(self, reply: Reply | None) -> None:
        """Answer with this whenever the queue is empty."""
        self.do("otherwise", reply=reply and reply.to_json())

    def configure(self, **settings: Any) -> None:
        """Change settings."""
        self.do("configure", **settings)

    def release(self, name: str = "hold") -> None:
        """Let the streams that wait at this Hold go on."""
        self.do("release", name=name)

    def reset(self) -> None:
        """Forget script, records and settings."""
        self.do("reset")

    @property
    def requests(self) -> list[Recorded]:
        """All requests so far."""
        return [_record(item) for item in self.do("requests")]

    @property
    def counts(self) -> list[Recorded]:
        """All requests to count a prompt so far."""
        return [_record(item) for item in self.do("counts")]

    @property
    def problems(self) -> list[str]:
        """Why requests were refused as malformed, in order."""
        asked = (*self.requests, *self.counts)
        return [record.problem for record in asked if record.problem]

    def wait_requests(self, count: int, within_s: float = 10) -> list[Recorded]:
        """Return the requests as soon as there are that many."""
        wait_until(lambda: len(self.requests) >= count, within_s, f"{count} requests arrived")
        return self.requests

    def wait_closed(self, number: int = -1, within_s: float = 1) -> Recorded:
        """Return the record of a request as soon as its connection was seen closed."""
        closed: Callable[[], bool] = lambda: self.requests[number].closed_at is not None  # noqa: E731
        wait_until(closed, within_s, "the connection of the request is closed")
        return self.requests[number]

    def wait_held(self, name: str = "hold", within_s: float = 10) -> None:
        """Return as soon as a stream waits at this Hold."""
        wait_until(lambda: name in self.do("held"), within_s, f"a stream waits at {name!r}")

    async def await_requests(self, count: int, within_s: float = 10) -> list[Recorded]:
        """As `wait_requests`, for async tests."""
        return await asyncio.to_thread(self.wait_requests, count, within_s)

    async def await_closed(self, number: int = -1, within_s: float = 1) -> Recorded:
        """As `wait_closed`, for async tests."""
        return await asyncio.to_thread(self.wait_closed, number, within_s)

    async def await_held(self, name: str = "hold", within_s: float = 10) -> None:
        """As `wait_held`, for async tests."""
        await asyncio.to_thread(self.wait_held, name, within_s)


class ProviderServer:
    """The server itself, on the running event loop."""

    def __init__(self) -> None:
        self.script = Script()
        self._connections: dict[asyncio.Task[None], Connection] = {}
        self._server: asyncio.Server | None = None
        self._count = 0

    async def start(self, port: int = 0) -> int:
        """Listen on loopback and return the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=2**20)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Close every connection and the port."""
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def do(self, command: str, values: dict[str, Any]) -> Any:
        """Carry out one command; runs on the server's loop."""
        script = self.script
        replies = [Reply.from_json(item) for item in values.get("replies", ())]
        if command == "add":
            script.queue += replies
        elif command == "when":
            script.rules.insert(0, Rule(values["text"], replies))
        elif command == "otherwise":
            script.fallback = values["reply"] and Reply.from_json(values["reply"])
        elif command == "configure":
            script.configure(**values)
        elif command == "release":
            script.holds.pop(values["name"], asyncio.Event()).set()
        elif command == "reset":
            script.clear()
        elif command == "held":
            return sorted(script.open_holds)
        elif command == "requests":
            return [_plain(record) for record in script.records]
        elif command == "counts":
            return [_plain(record) for record in script.counts]
        return {}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        connection = Connection(self.script, self._count, reader, writer, self._control)
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = connection
        try:
            # Only `stop` cancels; asyncio would report a cancelled handler as a failure.
            with contextlib.suppress(asyncio.CancelledError):
                await connection.serve()
        finally:
            del self._connections[task]

    def _control(self, path: str, body: bytes) -> Any:
        if path == "/readyz":
            return {"ready": True}
        return self.do(path.removeprefix("/control/"), json.loads(body or b"{}"))


class ScriptedProvider(ProviderControl):
    """A scripted provider in a thread of this process; use it as a context manager."""

    def __init__(self) -> None:
        self.server = ProviderServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def script(self) -> Script:
        """The live script, for `answer` and `count`."""
        return self.server.script

    def do(self, command: str, **values: Any) -> Any:
        """Carry out one command on the server's thread."""

        async def run() -> Any:
            return self.server.do(command, values)

        return self._run(run())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def __enter__(self) -> Self:
        """Start listening."""
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._run(self.server.start())}"
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection and end the thread."""
        self._run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class ScriptedProcess(HttpProcess, ProviderControl):
    """A scripted provider as a process of its own; use it as a context manager."""

    def __init__(self, port: int | None = None) -> None:
        """Choose a free port; nothing runs before `start`."""
        port = port or free_port()
        program = str(PROGRAMS / "scripted_provider_server.py")
        super().__init__([sys.executable, program, "--port", str(port)], port, env={})
        self._client = httpx.Client(base_url=self.url, trust_env=False, timeout=10)

    def do(self, command: str, **values: Any) -> Any:
        """Carry out one command over HTTP."""
        return self._client.post(f"/control/{command}", json=values).raise_for_status().json()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the process and let go of the control connection."""
        self._client.close()
        super().__exit__(kind, error, trace)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """Give a strict scripted provider of this test's own."""
    with ScriptedProvider() as running:
        yield running


def _plain(record: Recorded) -> dict[str, Any]:
    return {**asdict(record), "body": base64.b64encode(record.body).decode()}


def _record(value: dict[str, Any]) -> Recorded:
    return Recorded(**{**value, "body": base64.b64decode(value["body"])})
