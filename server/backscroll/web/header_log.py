"""What the HTTP server's own log may tell of headers."""

from __future__ import annotations

import logging

SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "sec-websocket-protocol"}
)


def hide_secret_headers() -> None:
    """Have the values of headers that carry secrets shown as `***`.

    At level debug the WebSocket library logs every header of a handshake, one record each with
    name and value as its arguments.
    """
    log = logging.getLogger("uvicorn.error")
    if _hide not in log.filters:
        log.addFilter(_hide)


def _hide(record: logging.LogRecord) -> bool:
    args = record.args
    if isinstance(args, tuple) and len(args) == 2 and str(args[0]).lower() in SECRET_HEADERS:
        record.args = (args[0], "***")
    return True
