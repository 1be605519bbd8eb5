"""The console's own files."""

from __future__ import annotations

from pathlib import Path

import pytest
from backscroll.agui.refusal import RequestRefused
from backscroll.web.console_pages import ConsoleFiles, console_folder
from starlette.requests import Request


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a small console, beside a file that is none of it."""
    (tmp_path / "secret").write_text("no")
    console = tmp_path / "console"
    (console / "pages").mkdir(parents=True)
    (console / "index.html").write_text('<script src="/console/static/{hash}/main.js">')
    (console / "main.js").write_text("export {}")
    (console / "console.css").write_text("a {}")
    (console / "pages" / "chat.js").write_text("export {}")
    (console / "icon.svg").write_text("<svg/>")
    (console / "data.bin").write_bytes(b"\x00")
    (console / ".hidden").write_text("no")
    return console


def asking(url: str, **params: str) -> Request:
    """Return a request."""
    scope = {"type": "http", "path": url, "headers": [], "query_string": b""}
    return Request({**scope, "server": ("localhost", 80), "path_params": params})


async def test_every_page_is_the_shell(folder: Path) -> None:
    """With the hash of the files in it, under a strict policy, kept by nobody."""
    files = ConsoleFiles(folder)

    page = await files.page(asking("/console/threads/t"))

    assert f"/console/static/{files.hash}/main.js".encode() in page.body
    assert page.headers["cache-control"] == "no-store"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "trusted-types backscroll" in policy


@pytest.mark.parametrize("path", ["/console", "/console/"])
async def test_the_console_begins_with_the_threads(folder: Path, path: str) -> None:
    """Its bare address leads there."""
    answer = await ConsoleFiles(folder).page(asking(path))

    assert (answer.status_code, answer.headers["location"]) == (307, "/console/threads")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("main.js", "text/javascript; charset=utf-8"),
        ("console.css", "text/css; charset=utf-8"),
        ("pages/chat.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("data.bin", "application/octet-stream"),
    ],
)
async def test_a_file_is_kept_for_ever(folder: Path, name: str, kind: str) -> None:
    """Its address changes with its content."""
    files = ConsoleFiles(folder)

    answer = await files.static(asking("/x", hash=files.hash, path=name))

    assert answer.headers["content-type"] == kind
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("name", ["../secret", "index.html", ".hidden", "nope.js", "", "/etc"])
async def test_nothing_else_is_served(folder: Path, name: str) -> None:
    """Only what was in the folder at the start, and the shell not as a file."""
    files = ConsoleFiles(folder)

    with pytest.raises(RequestRefused) as error:
        await files.static(asking("/x", hash=files.hash, path=name))

    assert error.value.code == "not_found"


async def test_an_old_address_is_gone(folder: Path) -> None:
    """A page of an older console does not mix with files of this one."""
    files = ConsoleFiles(folder)
    with pytest.raises(RequestRefused):
        await files.static(asking("/x", hash="000000000000", path="main.js"))
    (folder / "main.js").write_text("export const a = 1")

    assert ConsoleFiles(folder).hash != files.hash


async def test_the_icon_that_browsers_ask_for(folder: Path) -> None:
    """A missing one would be an error in the browser's console."""
    icon = await ConsoleFiles(folder).icon(asking("/favicon.ico"))

    assert (icon.body, icon.headers["content-type"]) == (b"<svg/>", "image/svg+xml")


def test_the_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the server in a checkout, inside the package when installed."""
    assert (console_folder() / "index.html").is_file()
    package = tmp_path / "site" / "backscroll"
    (package / "console").mkdir(parents=True)
    monkeypatch.setattr(
        "backscroll.web.console_pages.__file__", str(package / "web" / "console_pages.py")
    )

    assert console_folder() == package / "console"
