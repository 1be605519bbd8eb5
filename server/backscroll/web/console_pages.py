"""The console's own files: one shell for every page, and everything else by content hash."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from backscroll.agui.refusal import RequestRefused
from backscroll.web.answers import SECURITY_HEADERS

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class ConsoleFiles:
    """The files of the console, read once at start; nothing outside the folder is served."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        }
        digest = hashlib.sha256()
        for name, data in self._files.items():
            digest.update(name.encode() + b"\0" + data + b"\0")
        self.hash = digest.hexdigest()[:12]
        shell = self._files.get("index.html", b"")
        self._shell = shell.replace(b"{hash}", self.hash.encode())

    async def page(self, request: Request) -> Response:
        """Return the shell; the page itself reads the address."""
        if request.url.path in ("/console", "/console/"):
            return RedirectResponse("/console/threads", 307, SECURITY_HEADERS)
        headers = {**SECURITY_HEADERS, "Cache-Control": "no-store"}
        return Response(self._shell, 200, headers, "text/html; charset=utf-8")

    async def static(self, request: Request) -> Response:
        """Return one file; its address changes with its content."""
        name = request.path_params["path"]
        data = self._files.get(name)
        if data is None or request.path_params["hash"] != self.hash or name == "index.html":
            raise RequestRefused("not_found", f"There is no file {name} in this console.")
        suffix = Path(name).suffix
        kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        headers = {**SECURITY_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
        return Response(data, 200, headers, kind)

    async def icon(self, request: Request) -> Response:
        """Return the icon that browsers ask for by themselves."""
        data = self._files.get("icon.svg", b"")
        return Response(data, 200, SECURITY_HEADERS, "image/svg+xml")


def console_folder() -> Path:
    """Return where the console is: inside the package, or beside the server in a checkout."""
    here = Path(__file__).resolve().parents[1]
    packaged = here / "console"
    return packaged if packaged.is_dir() else here.parents[1] / "console"
