"""`backscroll verify` as a process, on what a server has left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import httpx
from processes import ServerProcess


def verify(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command and return what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "backscroll", "verify", *words],
        capture_output=True,
        text=True,
        timeout=30,
    )


def say(server: ServerProcess, thread: str, *texts: str) -> str:
    """Say something in a thread and return the events that came back."""
    messages = [{"id": f"u{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
    body = {"threadId": thread, "runId": uuid4().hex, "messages": messages, "tools": []}
    more = {"context": [], "state": {}, "forwardedProps": {}, "protocolVersion": "1.0"}
    url = f"{server.url}/agui"
    return httpx.post(url, json={**body, **more}, trust_env=False, timeout=20).text


def test_a_thread_of_a_server_is_verified(tmp_path: Path) -> None:
    """While it is served, and from its data directory afterwards; the exit status is 0."""
    with ServerProcess(data_dir=tmp_path) as server:
        say(server, "my thread", "hello")
        say(server, "my thread", "hello", "once more")
        served = verify("my thread", "--data-dir", str(tmp_path))
    alone = verify("my%20thread", "--data-dir", str(tmp_path))

    for done in (served, alone):
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 requests:" in done.stdout and "0 wrong or gone" in done.stdout


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """A directory or a thread that does not exist is said, and no directory is made."""
    nowhere = tmp_path / "nowhere"

    no_folder = verify("t", "--data-dir", str(nowhere))
    no_thread = verify("t", "--data-dir", str(tmp_path))

    assert no_folder.returncode == 1 and "no such directory" in no_folder.stderr
    assert no_thread.returncode == 1 and "there is no thread t" in no_thread.stderr
    assert not nowhere.exists()
