"""Our own Valkey: one server per directory, gone with its owner, nothing acknowledged lost."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import redis
from backscroll.kernel.errors import StoreError
from backscroll.store import embedded, valkey_process
from backscroll.store.embedded import EmbeddedValkey, remove_socket_folder, socket_path
from backscroll.store.valkey_process import Answer, command, end, is_alive, pid_at, ping, spawn
from deadlines import wait_until

OWNER = """
import sys
from backscroll.store.embedded import EmbeddedValkey
server = EmbeddedValkey(sys.argv[1], dies_with_us=sys.argv[2] == "True")
print(server.start(), flush=True)
input()
server.stop()
"""


@pytest.fixture
def data() -> Iterator[Path]:
    """Give a directory that does not exist yet and whose path is short."""
    with tempfile.TemporaryDirectory(prefix="e-") as folder:
        yield Path(folder) / "data"


@pytest.fixture
def valkey(data: Path) -> Iterator[EmbeddedValkey]:
    """Give an embedded Valkey that a test may start."""
    server = EmbeddedValkey(data)
    yield server
    server.stop()


def client(url: str) -> redis.Redis:
    """Return a plain client."""
    return redis.Redis.from_url(url, protocol=2)


def pid_of(server: EmbeddedValkey) -> int:
    """Return the process id of the server that answers."""
    pid = pid_at(socket_path(server.data))
    assert pid is not None
    return pid


def owner_process(data: Path, dies_with_us: bool = True) -> subprocess.Popen[bytes]:
    """Start another process that owns the directory, and return when its server answers."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data), str(dies_with_us)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"unix://")
    return process


def close(process: subprocess.Popen[bytes]) -> None:
    """Let go of a process that has ended."""
    process.communicate()


def test_starts_and_owns_a_server(valkey: EmbeddedValkey) -> None:
    """With an append-only file, without eviction, in a directory for us alone."""
    with client(valkey.start()) as answers:
        assert answers.config_get("appendonly") == {"appendonly": "yes"}
        assert answers.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert answers.config_get("port") == {"port": "0"}

    assert valkey.is_owner
    assert stat.S_IMODE(valkey.data.stat().st_mode) == 0o700


def test_keeps_data_over_a_restart(valkey: EmbeddedValkey) -> None:
    """Stopping ends the server at once and cleanly."""
    with client(valkey.start()) as answers:
        answers.set("a", "1")
    pid = pid_of(valkey)
    valkey.stop()
    assert not is_alive(pid)
    assert not valkey.is_owner

    with client(valkey.start()) as answers:
        assert answers.get("a") == b"1"


def test_starting_again_changes_nothing(valkey: EmbeddedValkey) -> None:
    """While its server answers, the owner keeps it."""
    url, pid = valkey.start(), pid_of(valkey)

    assert valkey.start() == url
    assert pid_of(valkey) == pid


def test_a_second_process_uses_the_first_ones_server(data: Path, valkey: EmbeddedValkey) -> None:
    """It does not own it, and stopping it leaves it alone; the next owner has the same data."""
    first = owner_process(data)
    with client(valkey.start()) as answers:
        answers.set("a", "1")
    assert not valkey.is_owner
    pid = pid_of(valkey)
    valkey.stop()
    assert is_alive(pid)

    first.communicate(b"\n")

    assert not is_alive(pid)
    with client(valkey.start()) as answers:
        assert answers.get("a") == b"1"
    assert valkey.is_owner


@pytest.mark.parametrize("dies_with_us", [True, False])
def test_a_killed_owner_takes_its_server_along(
    data: Path, valkey: EmbeddedValkey, dies_with_us: bool
) -> None:
    """By the death signal on Linux, by a watcher anywhere; the data is there afterwards."""
    if dies_with_us and sys.platform != "linux":
        pytest.skip("Only Linux has the signal.")
    owner = owner_process(data, dies_with_us)
    with client(valkey.start()) as answers:
        answers.set("a", "1")
    pid = pid_of(valkey)

    owner.kill()
    close(owner)

    wait_until(lambda: not is_alive(pid), 10, "the server is gone")
    with client(valkey.start()) as answers:
        assert answers.get("a") == b"1"


def test_a_killed_server_loses_nothing_acknowledged(valkey: EmbeddedValkey) -> None:
    """Every answered write is there when the owner starts the server again."""
    with client(valkey.start()) as answers:
        pipe = answers.pipeline(transaction=False)
        for n in range(1, 5001):
            pipe.execute_command("XADD", "log", f"{n}-0", "b", "x" * 200)
        acknowledged = pipe.execute()
    os.kill(pid_of(valkey), signal.SIGKILL)

    with client(valkey.start()) as answers:
        assert answers.xlen("log") == len(acknowledged) == 5000
        assert answers.xrevrange("log", count=1)[0][0] == b"5000-0"


def test_a_server_that_hangs_is_replaced(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner starts another one when it does not answer for too long."""
    monkeypatch.setattr(valkey_process, "ANSWER_S", 0.1)
    monkeypatch.setattr(embedded, "end", partial(end, within_s=0.1))
    server = EmbeddedValkey(data, start_within_s=1.0)
    server.start()
    hung = pid_of(server)
    os.kill(hung, signal.SIGSTOP)

    server.start()

    assert not is_alive(hung)
    assert pid_of(server) != hung
    server.stop()


@pytest.mark.parametrize("name", ["my data", "会话 データ", 'it\'s "data" #1 %20?', "x" * 150])
def test_any_directory_will_do(data: Path, name: str) -> None:
    """Blanks, quotes, CJK and very long paths."""
    server = EmbeddedValkey(data / name)
    with client(server.start()) as answers:
        assert answers.ping()
    folder = socket_path(server.data).parent
    server.stop()

    assert (data / name / "valkey.log").exists()
    assert folder == server.data or not folder.exists()


def test_the_server_of_a_killed_owner_is_adopted(data: Path, valkey: EmbeddedValkey) -> None:
    """It was left running, so it is used, and ended with us."""
    data.mkdir()
    process = spawn(
        command(data, socket_path(data), "everysec"), data / "valkey.log", dies_with_us=False
    )
    wait_until(lambda: ping(socket_path(data)) is Answer.UP, 10, "the orphan answers")

    valkey.start()

    assert valkey.is_owner
    assert pid_of(valkey) == process.pid
    valkey.stop()
    assert process.wait(timeout=10) == 0


def test_a_server_on_its_way_out_is_not_adopted(data: Path, valkey: EmbeddedValkey) -> None:
    """It still answers for a moment; a new one follows when it is gone, with its data."""
    owner = owner_process(data)
    with client(valkey.start()) as answers:
        answers.set("a", "1")
    old = pid_of(valkey)
    owner.kill()
    close(owner)

    url = valkey.start()

    assert not is_alive(old)
    assert pid_of(valkey) != old
    with client(url) as answers:
        assert answers.get("a") == b"1"


def test_a_directory_that_is_a_file_is_refused(data: Path) -> None:
    """The message names the path, the reason and the remedy."""
    data.write_text("")

    for path in (data, data / "inside"):
        with pytest.raises(
            StoreError, match=r"data'? .*(File exists|Not a directory); choose|cannot"
        ):
            EmbeddedValkey(path).start()


@pytest.mark.skipif(sys.platform != "linux", reason="It needs a file system without writing.")
@pytest.mark.parametrize("path", ["/proc/backscroll", "/proc/self", "/sys"])
def test_a_directory_that_cannot_be_written_is_refused(path: str) -> None:
    """Whether it cannot be made, or nothing can be made in it."""
    with pytest.raises(StoreError, match="cannot be used: .*; choose another one, or make it"):
        EmbeddedValkey(path).start()


def test_a_lock_without_a_server_is_reported(data: Path) -> None:
    """Another process owns the directory but does not serve in time."""
    data.mkdir()
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(StoreError, match="another process owns the data directory"):
            EmbeddedValkey(data, start_within_s=0.1).start()


def test_a_server_that_ends_is_reported_with_its_last_words(data: Path) -> None:
    """The end of its log says why, and the directory is free for the next try."""
    data.mkdir()
    (data / "valkey.log").write_text("old words\n")
    (data / "appendonlydir").write_text("in the way")

    with pytest.raises(StoreError, match=r"did not start:\n(?s:.*)append") as caught:
        EmbeddedValkey(data).start()
    assert "old words" not in str(caught.value)

    (data / "appendonlydir").unlink()
    server = EmbeddedValkey(data)
    server.start()
    server.stop()


def test_a_listener_that_never_answers_is_reported(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting another server on the same file would be worse."""
    monkeypatch.setattr(embedded, "pid_at", lambda _: None)
    monkeypatch.setattr(embedded, "ORPHAN_LEAVES_S", 0.05)
    first = owner_process(data)
    os.kill(first.pid, signal.SIGSTOP)
    (data / "lock").unlink()

    with pytest.raises(StoreError, match="listens at .* but does not answer"):
        EmbeddedValkey(data).start()

    os.kill(first.pid, signal.SIGCONT)
    first.communicate(b"\n")


def test_a_long_path_has_its_socket_elsewhere(data: Path) -> None:
    """In a directory for us alone, named by the data directory."""
    deep = data / ("x" * 120)

    path = socket_path(deep)

    assert len(os.fsencode(path)) < 104
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert socket_path(deep) == path != socket_path(data / ("y" * 120))
    assert socket_path(data) == data / "valkey.sock"
    for name in ("x", "y"):
        remove_socket_folder(data / (name * 120))
    assert not path.parent.exists()


def test_a_socket_directory_of_others_is_refused(data: Path) -> None:
    """Who can write there could put another server in our place."""
    folder = socket_path(data / ("x" * 121)).parent
    folder.chmod(0o755)

    with pytest.raises(StoreError, match="must be a directory that only you can use"):
        EmbeddedValkey(data / ("x" * 121)).start()
    folder.rmdir()


def test_no_place_for_a_socket_is_reported(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary folder cannot be used."""
    monkeypatch.setattr(tempfile, "tempdir", str(data / "none"))

    with pytest.raises(StoreError, match="a place for a socket cannot be made"):
        EmbeddedValkey(data / ("x" * 120)).start()
