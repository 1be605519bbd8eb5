"""The command `backscroll`."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from backscroll import __version__
from backscroll.agent.loader import Source, load_agent
from backscroll.kernel.errors import BackscrollError
from backscroll.runs.verify import Checked, verify_thread
from backscroll.settings import Settings
from backscroll.store.connection import connect
from backscroll.store.embedded import EmbeddedValkey
from backscroll.store.keys import LOCAL_OWNER, Keys, ThreadKey
from backscroll.store.thread_log import ThreadLog
from backscroll.supervise import Workers, end_with_parent
from backscroll.web.serving import listen
from backscroll.web.worker_server import WorkerSetup, run_worker

DEMO = "backscroll.demo_agent:agent"


@click.group()
@click.version_option(__version__)
def main() -> None:
    """Backscroll serves chat agents over AG-UI and shows what they were told."""


@main.command()
@click.argument("agent", required=False)
@click.option("--host", help="The address to listen on.")
@click.option("--port", type=int, help="The port; 0 takes a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where conversations are kept.")
@click.option("--workers", type=int, help="How many worker processes share the port.")
@click.option("--redis-url", help="A Redis to use instead of the embedded Valkey.")
def serve(**given: Any) -> None:  # Any: click hands over text, numbers and paths
    """Serve AGENT (module:attribute), or the demo agent, until Ctrl-C."""
    settings = _settings({name: value for name, value in given.items() if value is not None})
    _log_to_stderr(settings.log_level)
    _check_host(settings.host)
    agent = _load(settings.agent)
    listener = _listen(settings)
    with listener:
        valkey, url = _redis(settings)
        try:
            sys.exit(_serve(settings, agent, listener, url))
        finally:
            if valkey is not None:
                valkey.stop()


@main.command()
@click.argument("thread")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where conversations are kept.")
@click.option("--redis-url", help="A Redis to use instead of the embedded Valkey.")
def verify(thread: str, **given: Any) -> None:  # Any: click hands over text and paths
    """Rebuild every request of THREAD and compare it with the hashes in its record.

    Prints a line for each that differs or cannot be compared. The exit status is 1 if one differs
    or cannot be rebuilt. Nothing is written.
    """
    settings = _settings({name: value for name, value in given.items() if value is not None})
    if not settings.redis_url and not settings.data_dir.is_dir():
        raise click.ClickException(f"--data-dir {settings.data_dir}: there is no such directory")
    valkey, url = _redis(settings)
    try:
        sys.exit(asyncio.run(_verify(url, settings.key_prefix, thread)))
    except BackscrollError as error:
        raise click.ClickException(str(error)) from error
    finally:
        if valkey is not None:
            valkey.stop()


@main.command(hidden=True)
@click.option("--listen-fd", type=int, required=True)
@click.option("--ready-fd", type=int, required=True)
@click.option("--parent", type=int, required=True)
def worker(listen_fd: int, ready_fd: int, parent: int) -> None:
    """Run one worker process of `serve`; its settings come from the environment."""
    end_with_parent(parent)
    settings = _settings({})
    _log_to_stderr(settings.log_level)
    agent = _load(settings.agent)
    listener = socket.socket(fileno=listen_fd)
    _run(_setup(settings, agent, settings.redis_url), listener, lambda: _tell(ready_fd))


def _serve(settings: Settings, agent: Source, listener: socket.socket, url: str) -> int:
    """Run the workers in this process or in several; returns the exit status."""
    port = listener.getsockname()[1]
    announce = _announcer(settings.host, port, settings.workers)
    if settings.workers == 1:
        _run(_setup(settings, agent, url), listener, announce)
        return 0
    environment = _environment(settings, redis_url=url, port=port)
    return Workers(settings.workers, listener, environment, announce, settings.drain_s).run()


def _run(setup: WorkerSetup, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    try:
        run_worker(setup, listener, on_ready)
    except BackscrollError as error:
        raise click.ClickException(str(error)) from error


async def _verify(url: str, prefix: str, name: str) -> int:
    """Print what does not agree in a thread; returns the exit status."""
    try:
        thread = ThreadKey.from_key(name)
    except ValueError:
        # Not spelt as the console spells it: the id as its client chose it.
        thread = ThreadKey(LOCAL_OWNER, name)
    clients = connect(url)
    try:
        log = ThreadLog(clients, Keys(prefix), "verify")
        if not (await log.head(thread)).exists:
            raise click.ClickException(f"there is no thread {name}")
        checked: list[Checked] = []
        async for found in verify_thread(log, thread):
            checked.append(found)
            if found.verdict != "same":
                click.echo(str(found))
    finally:
        await clients.close()
    same = sum(found.verdict == "same" for found in checked)
    wrong = sum(found.is_wrong for found in checked)
    click.echo(f"{len(checked)} requests: {same} as recorded, {wrong} wrong or gone")
    return 1 if wrong else 0


def _settings(given: dict[str, Any]) -> Settings:
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(str(part) for part in first["loc"])
        raise click.ClickException(
            f"--{name.replace('_', '-')} (or BACKSCROLL_{name.upper()}): {first['msg']}, "
            f"got {first['input']!r}"
        ) from error


def _check_host(host: str) -> None:
    """Refuse what is not loopback: nothing asks for a password yet."""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise click.ClickException(
            f"--host {host}: only loopback (127.0.0.1, ::1, localhost) can be served, because "
            "there is no authentication yet"
        )


def _load(name: str) -> Source:
    try:
        return load_agent(DEMO if name == "demo" else name)
    except BackscrollError as error:
        raise click.ClickException(str(error)) from error


def _listen(settings: Settings) -> socket.socket:
    host = "127.0.0.1" if settings.host == "localhost" else settings.host
    try:
        return listen(host, settings.port)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = "it is in use; stop the other program or choose another with --port"
        raise click.ClickException(f"port {settings.port} on {host}: {reason}") from error


def _redis(settings: Settings) -> tuple[EmbeddedValkey | None, str]:
    """Return the URL of a Redis that answers, and the embedded one if that is ours."""
    if settings.redis_url:
        try:
            asyncio.run(_ping(settings.redis_url))
        except BackscrollError as error:
            raise click.ClickException(f"--redis-url (or BACKSCROLL_REDIS_URL): {error}") from error
        return None, settings.redis_url
    valkey = EmbeddedValkey(settings.data_dir, fsync=settings.appendfsync)
    try:
        return valkey, valkey.start()
    except BackscrollError as error:
        raise click.ClickException(str(error)) from error


async def _ping(url: str) -> None:
    clients = connect(url)
    try:
        await clients.ping()
    finally:
        await clients.close()


def _setup(settings: Settings, agent: Source, url: str) -> WorkerSetup:
    return WorkerSetup(agent=agent, redis_url=url, **_plain(settings))


def _plain(settings: Settings) -> dict[str, Any]:
    """Return the settings that a worker takes, by name."""
    names = WorkerSetup.__dataclass_fields__.keys() - {"agent", "redis_url"}
    return {name: getattr(settings, name) for name in names}


def _environment(settings: Settings, **changes: Any) -> dict[str, str]:
    """Return the settings as variables for worker processes."""
    values = settings.model_copy(update=changes).model_dump(mode="json")
    return {f"BACKSCROLL_{name.upper()}": _as_variable(value) for name, value in values.items()}


def _as_variable(value: Any) -> str:
    return json.dumps(value) if isinstance(value, list) else str(value)


def _announcer(host: str, port: int, workers: int) -> Callable[[], None]:
    base = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = (
        f"Backscroll {__version__} serves with {workers} worker{'s' if workers > 1 else ''}.",
        f"  console   http://{base}/console/",
        f"  chat      http://{base}/console/chat",
        f"  AG-UI     ws://{base}/agui   and   POST http://{base}/agui",
        "Stop with Ctrl-C.",
    )
    return lambda: click.echo("\n".join(lines))


def _tell(ready_fd: int) -> None:
    try:
        os.write(ready_fd, b".")
    except OSError:
        logging.getLogger(__name__).debug("nobody waits for this worker any more")


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
