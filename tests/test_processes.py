"""The processes that other tests rely on: they start, they fail aloud, they end."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import psutil
import pytest
from deadlines import scaled
from needs import NEEDS, needs
from processes import HttpProcess, LlamaProcess, free_port

SERVE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def serving(code: str = SERVE) -> HttpProcess:
    """Make a process of a few lines of Python."""
    port = free_port()
    return HttpProcess([sys.executable, "-c", code, str(port)], port, env={})


def test_process_ends_with_the_block() -> None:
    """The process answers inside the block and is gone after it."""
    with serving() as process:
        pid = process.pid
        assert httpx.get(process.url, trust_env=False).status_code == 200

    assert not psutil.pid_exists(pid)


def test_process_that_dies_shows_its_output() -> None:
    """A process that ends before it answers fails the test with what it printed."""
    process = serving("raise SystemExit('the port is taken')")

    with pytest.raises(AssertionError, match="the port is taken"):
        process.start()


def test_process_that_never_answers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not answer in time is stopped, and the deadline is named."""
    process = serving("import threading; print('busy', flush=True); threading.Event().wait()")
    monkeypatch.setattr(process, "ready_within_s", 0.5)

    with pytest.raises(AssertionError, match=rf"expected within {scaled(0.5):g} s(.|\n)*busy"):
        process.start()

    assert process.exit_status() is None


def test_failure_in_the_block_carries_the_output() -> None:
    """When a test fails, what the process had printed is attached to the failure."""
    process = serving("print('hello from inside', flush=True)\n" + SERVE)

    with pytest.raises(ValueError, match="mine") as caught, process:
        raise ValueError("mine")

    assert "hello from inside" in caught.value.__notes__[0]


def test_needs_skip_on_a_developers_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing skips with a sentence that says how to get it."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr("needs.chromium_path", lambda: None)

    with pytest.raises(pytest.skip.Exception, match="make browser"):
        needs("chromium")


def test_needs_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI nothing may be missing."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr("needs.chromium_path", lambda: None)

    with pytest.raises(pytest.fail.Exception, match="CI must have it"):
        needs("chromium")


def test_every_need_has_a_sentence() -> None:
    """Each need says what is missing, as a sentence."""
    assert all(need.sentence.endswith(".") for need in NEEDS.values())


@pytest.mark.needs("model")
@pytest.mark.timeout(90)
def test_local_model_answers(tmp_path: Path) -> None:
    """The real model streams an answer and refuses what is longer than its window."""
    hello = {"role": "user", "content": "Say hello."}
    long = {"role": "user", "content": "word " * 2000}

    def ask(model: LlamaProcess, message: dict[str, str], **more: object) -> httpx.Response:
        url, body = f"{model.url}/v1/chat/completions", {"messages": [message], **more}
        return httpx.post(url, json=body, trust_env=False, timeout=60)

    with LlamaProcess(n_ctx=512) as model:
        said = ask(model, hello, max_tokens=8, stream=True)
        refused = ask(model, long)

    assert said.status_code == 200 and said.text.rstrip().endswith("data: [DONE]")
    assert refused.json()["error"]["type"] == "exceed_context_size_error"
