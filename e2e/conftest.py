"""A real browser on a real server; a test fails when the page complains about anything."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from console_story import story  # noqa: F401
from deadlines import scaled, stretch_limits
from needs import check_markers, chromium_path, needs
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, WebError, expect
from processes import ServerProcess

ARTEFACTS = Path(__file__).resolve().parent.parent / "artefacts"
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
REPORT_POLICY = """addEventListener('securitypolicyviolation', (event) => console.error(
  'policy: ' + event.violatedDirective + ' refused ' + (event.blockedURI || 'inline')))"""


expect.set_options(timeout=scaled(5) * 1000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests more time on a slow machine."""
    stretch_limits(items, Path(__file__).parent)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, or fail it in CI."""
    check_markers(item)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Start the Chromium of this machine; without its sandbox only as root in a container."""
    needs("chromium")
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    flags = [*FLAGS, *(["--no-sandbox"] if is_root else [])]
    return {**browser_type_launch_args, "executable_path": chromium_path(), "args": flags}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Serve the demo agent with two workers on the embedded store, once for all tests."""
    data_dir = tmp_path_factory.mktemp("data")
    with ServerProcess(data_dir=data_dir, workers=2) as process:
        yield process


@pytest.fixture
def origin(server: ServerProcess) -> str:
    """Say whose console is looked at; a module may name another server."""
    return server.url


@pytest.fixture
def browser_context_args(browser_context_args: dict[str, Any], origin: str) -> dict[str, Any]:
    """Make `page.goto("/console")` mean our server."""
    return {**browser_context_args, "base_url": origin}


class Complaints:
    """What pages said that they must not say, and every request that left the origin."""

    def __init__(self, origin: str) -> None:
        """Watch pages that belong to this origin."""
        self.origin = origin
        self.heard: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    def allow(self, pattern: str) -> None:
        """Expect complaints that match: a test of a lost network makes some."""
        self._allowed.append(re.compile(pattern))

    def watch(self, context: BrowserContext) -> None:
        """Listen to every page of the context, those to come included."""
        context.add_init_script(REPORT_POLICY)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def unexpected(self) -> list[str]:
        """Return what was heard and not allowed."""
        return [said for said in self.heard if not any(p.search(said) for p in self._allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            self.heard.append(f"console: {message.text} ({message.location['url']})")

    def _on_error(self, error: WebError) -> None:
        self.heard.append(f"page error: {error.error}")

    def _on_request(self, request: Request) -> None:
        inside = (self.origin, "data:", "blob:", "about:")
        if not request.url.startswith(inside):
            self.heard.append(f"request outside the origin: {request.url}")


@pytest.fixture
def complaints(origin: str) -> Iterator[Complaints]:
    """Fail the test when a page complained."""
    heard = Complaints(origin)
    yield heard
    if unexpected := heard.unexpected():
        pytest.fail("the page complained:\n" + "\n".join(unexpected), pytrace=False)


@pytest.fixture
def new_context(
    new_context: Callable[..., BrowserContext], complaints: Complaints
) -> Callable[..., BrowserContext]:
    """Make browser contexts that are watched; `page` and `context` come from here too."""

    def make(**options: Any) -> BrowserContext:
        context = new_context(**options)
        complaints.watch(context)
        return context

    return make


@pytest.fixture
def shoot() -> Callable[[Page, str], Path]:
    """Take a picture of a page into artefacts/, under the given name."""

    def take(page: Page, name: str) -> Path:
        path = ARTEFACTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=path, animations="disabled")
        return path

    return take
