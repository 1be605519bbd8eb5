"""Who may call from a browser: pure rules over the Host and Origin headers."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class OriginRules:
    """The host names the server answers to, and the foreign origins that may call it."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def host_allowed(self, host: str | None) -> bool:
        """Say whether a Host header names this server; a wrong one is how DNS rebinding looks."""
        if not host:
            return False
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return name in LOOPBACK_HOSTS or name in self.hosts

    def origin_allowed(self, origin: str | None, host: str | None) -> bool:
        """Say whether a page of this origin may call; no Origin at all is no page."""
        if origin is None:
            return True
        if origin in self.origins:
            return True
        try:
            found = urlsplit(origin)
        except ValueError:
            return False
        return found.scheme in ("http", "https") and found.netloc == host

    def is_foreign(self, origin: str | None, host: str | None) -> bool:
        """Say whether an allowed origin is another one, so that the answer must name it."""
        return origin is not None and origin in self.origins
