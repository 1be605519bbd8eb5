"""A model on loopback that speaks OpenAI chat completions, plays a script and keeps what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]  # Any: JSON as it came


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: its deltas in order, how it ends, and how slowly it comes."""

    deltas: Sequence[Mapping[str, Any]]
    finish: str = "stop"
    pause_s: float = 0.0
    usage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer instead of a reply."""

    status: int
    error: Mapping[str, Any]


Script = Callable[[Body], Reply | Failure]


def says(*texts: str, pause_s: float = 0.0) -> Reply:
    """Reply with text, one delta per argument."""
    return Reply([{"content": text} for text in texts], pause_s=pause_s)


def calls(*wanted: tuple[str, str, Mapping[str, Any]], before: str = "") -> Reply:
    """Reply with tool calls `(id, name, arguments)`, after some text."""
    deltas: list[Mapping[str, Any]] = [{"content": before}] if before else []
    for index, (call_id, name, arguments) in enumerate(wanted):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": call_id, "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    return Reply(deltas, finish="tool_calls")


def too_long(tokens: int, window: int) -> Failure:
    """Refuse as a llama.cpp server does when the request is larger than its window."""
    message = f"request ({tokens} tokens) exceeds the available context size ({window} tokens)"
    error = {"code": 400, "type": "exceed_context_size_error", "message": message}
    return Failure(400, {**error, "n_prompt_tokens": tokens, "n_ctx": window})


def in_order(*replies: Reply | Failure) -> Script:
    """Play the replies one after another; one more request than replies is a failure."""
    left = iter(replies)
    over = Failure(500, {"message": "the script has no more replies", "type": "script"})
    return lambda body: next(left, over)


@dataclass
class ScriptedModel:
    """The server; use it as a context manager and give `url` as OPENAI_BASE_URL."""

    script: Script
    requests: list[Body] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The base address, with the version in it as people expect."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def env(self) -> dict[str, str]:
        """The environment that points a server process here."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "none-needed"}

    def answer(self, body: Body) -> Reply | Failure:
        """Keep the request and play the script; one request at a time."""
        with self._lock:
            self.requests.append(body)
            return self.script(body)

    def __enter__(self) -> Self:
        """Start to serve on a free port."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop to serve."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = model.answer(body)
            if isinstance(reply, Failure):
                self._send(reply.status, "application/json", [json.dumps({"error": reply.error})])
            elif body.get("stream"):
                self._send(200, "text/event-stream", _stream(body, reply), reply.pause_s)
            else:
                self._send(200, "application/json", [json.dumps(_whole(body, reply))])

        def _send(
            self, status: int, kind: str, pieces: Sequence[str] | Iterator[str], pause_s: float = 0
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Connection", "close")
            self.end_headers()
            pause = threading.Event()
            try:
                for piece in pieces:
                    self.wfile.write(piece.encode())
                    self.wfile.flush()
                    pause.wait(pause_s)
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the test reads `requests`."""

    return Handler


def _stream(body: Body, reply: Reply) -> Iterator[str]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    head["model"] = body.get("model", "scripted")

    def chunk(**members: object) -> str:
        return f"data: {json.dumps({**head, **members})}\n\n"

    def choice(delta: Mapping[str, Any], finish: str | None = None) -> str:
        return chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    yield choice({"role": "assistant", "content": None})
    for delta in reply.deltas:
        yield choice(delta)
    yield choice({}, reply.finish)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield chunk(choices=[], usage=_usage(body, reply))
    yield "data: [DONE]\n\n"


def _whole(body: Body, reply: Reply) -> Body:
    tool_calls = [call for delta in reply.deltas for call in delta.get("tool_calls", ())]
    message: Body = {"role": "assistant"}
    message["content"] = "".join(delta.get("content") or "" for delta in reply.deltas) or None
    if tool_calls:
        message["tool_calls"] = [{k: v for k, v in c.items() if k != "index"} for c in tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1}
    model = body.get("model", "scripted")
    return {**head, "model": model, "choices": [choice], "usage": _usage(body, reply)}


def _usage(body: Body, reply: Reply) -> Body:
    sent, made = reply.usage or (len(json.dumps(body["messages"])) // 4, len(reply.deltas))
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
