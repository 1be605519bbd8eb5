"""Answers of the operator API, and reading its parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from backscroll.agui.input import parse_object
from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.store.keys import ThreadKey
from backscroll.web.services import Services

DIGITS = 15
"""More digits than any number of ours has."""

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types backscroll"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def json_answer(value: Any, status: int = 200) -> Response:
    """Return JSON values as an answer that nobody keeps."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "backslashreplace"
    )
    headers = {**SECURITY_HEADERS, "Cache-Control": "no-store"}
    return Response(body, status, headers, "application/json")


def services_of(request: Request) -> Services:
    """Return the services of the worker that answers."""
    services: Services = request.app.state.services
    return services


def thread_of(request: Request) -> ThreadKey:
    """Return the thread a path names; raises `not_found` for what is no key."""
    # Routes are matched on the raw path, so a key is still encoded once here.
    key = unquote(request.path_params["thread"])
    try:
        return ThreadKey.from_key(key)
    except ValueError as error:
        raise no_thread(key) from error


def no_thread(key: str) -> RequestRefused:
    """Return the refusal for a thread that does not exist, or is someone else's."""
    return RequestRefused("not_found", f"There is no thread {key}.", {"thread": key})


def number(
    query: Mapping[str, str], name: str, default: int | None = None, most: int | None = None
) -> int | None:
    """Return a whole number from a query; raises `invalid_input` naming the parameter."""
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise RequestRefused.of_problems([Problem(name, "must be a whole number from 0 on")])
    return int(text) if most is None else min(int(text), most)


def path_number(request: Request, name: str) -> int:
    """Return a number that a path names; raises `not_found` for what is none."""
    text = str(request.path_params[name])
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise RequestRefused("not_found", f"There is no route {request.url.path}.")
    return int(text)


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    """Return the body of a request; raises `too_large` before more than the limit is held."""
    stated = headers.get(b"content-length", b"0")
    size = int(stated) if stated.isdigit() and len(stated) <= DIGITS else 0
    parts: list[bytes] = []
    got = 0
    while size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused("not_json", "the body ended early")
        parts.append(message.get("body", b""))
        got += len(parts[-1])
        size = max(size, got)
        if not message.get("more_body", False):
            break
    if size > limit:
        message_text = f"the request has {size:,} bytes or more, allowed are {limit:,}"
        raise RequestRefused("too_large", message_text, {"limit": limit})
    return b"".join(parts)


async def json_body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request's body, an empty one for no body."""
    headers = {name.lower(): value for name, value in request.scope["headers"]}
    limits = services_of(request).limits.input
    data = await read_body(request.receive, headers, limits.input_bytes)
    return parse_object(data, limits) if data else {}


def choice(query: Mapping[str, str], name: str, allowed: tuple[str, ...], default: str) -> str:
    """Return one of some words from a query; raises `invalid_input` naming the parameter."""
    value = query.get(name, default)
    if value not in allowed:
        raise RequestRefused.of_problems([Problem(name, f"must be one of {', '.join(allowed)}")])
    return value


def words(query: Mapping[str, str], name: str) -> frozenset[str]:
    """Return a comma list from a query."""
    return frozenset(word for word in query.get(name, "").split(",") if word)
