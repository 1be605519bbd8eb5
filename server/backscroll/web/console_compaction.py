"""The operator API that acts on compaction; each action leaves an entry in the thread's log."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from backscroll.agui.refusal import Problem, RequestRefused
from backscroll.runs.operator import Operator
from backscroll.web.answers import DIGITS, json_answer, json_body, services_of, thread_of

FOCUS_CHARS = 2_000
SUMMARY_CHARS = 200_000


def compaction_routes(thread: str) -> list[BaseRoute]:
    """Return the routes of the actions; `thread` is the path of a thread."""
    compact = f"{thread}/compact"
    return [
        Route(compact, compact_now, methods=["POST"]),
        Route(compact, set_settings, methods=["PATCH"]),
        Route(f"{compact}/dry_run", dry_run, methods=["POST"]),
        Route(f"{compact}/failures", reset_failures, methods=["DELETE"]),
        Route(f"{compact}/cache", forget_cache, methods=["DELETE"]),
        Route(f"{compact}/summary", edit_summary, methods=["PUT"]),
        Route(f"{compact}/undo", undo, methods=["POST"]),
        Route(f"{thread}/pins/{{message}}", pin, methods=["PUT"]),
        Route(f"{thread}/pins/{{message}}", unpin, methods=["DELETE"]),
        Route("/models/{provider}/{model}/limit", clear_limit, methods=["DELETE"]),
    ]


async def compact_now(request: Request) -> Response:
    """Begin a summary; what came of it is an entry of the log."""
    body = await _body(request, focus=str)
    focus = _text(body, "focus", FOCUS_CHARS) if "focus" in body else ""
    await _desk(request).compact(thread_of(request), focus, _by(request))
    return json_answer({"requested": True}, 202)


async def dry_run(request: Request) -> Response:
    """Return what the next call would do; nothing is written and no model is called."""
    body = await _body(request, window=int, settings=dict, forced=bool)
    window = body.get("window")
    if window is not None and not 0 < window < 10**DIGITS:
        raise RequestRefused.of_problems([Problem("window", "must be more than 0")])
    found = await _desk(request).dry_run(
        thread_of(request),
        window=window,
        settings=body.get("settings"),
        forced=body.get("forced", False),
    )
    return json_answer(found)


async def set_settings(request: Request) -> Response:
    """Set compaction settings of one thread; null takes one back to the agent's."""
    body = await json_body(request)
    number = await _desk(request).configure(thread_of(request), body, _by(request))
    return json_answer({"compaction": number})


async def reset_failures(request: Request) -> Response:
    """Forget the failures of the summariser."""
    return json_answer({"compaction": await _desk(request).reset(thread_of(request), _by(request))})


async def forget_cache(request: Request) -> Response:
    """Forget summaries and marks."""
    number = await _desk(request).forget(thread_of(request), _by(request))
    return json_answer({"compaction": number})


async def edit_summary(request: Request) -> Response:
    """Replace the text of the present summary."""
    body = await _body(request, text=str, sha256=str)
    text, sha256 = _text(body, "text", SUMMARY_CHARS), _text(body, "sha256", 64)
    number = await _desk(request).edit(thread_of(request), text, sha256, _by(request))
    return json_answer({"compaction": number})


async def undo(request: Request) -> Response:
    """Go back to an older summary, or to the whole history."""
    body = await _body(request, to=str)
    number = await _desk(request).undo(thread_of(request), body.get("to"), _by(request))
    return json_answer({"compaction": number})


async def pin(request: Request) -> Response:
    """Keep a message's group whole in every view."""
    number = await _desk(request).pin(thread_of(request), _message(request), _by(request))
    return json_answer({"compaction": number})


async def unpin(request: Request) -> Response:
    """Take the pins off a message's group."""
    number = await _desk(request).unpin(thread_of(request), _message(request), _by(request))
    return json_answer({"compaction": number})


async def clear_limit(request: Request) -> Response:
    """Forget the limit that a model stated."""
    provider, model = (unquote(request.path_params[name]) for name in ("provider", "model"))
    cleared = await _desk(request).clear_limit(provider, model, _by(request))
    return json_answer({"cleared": cleared})


def _desk(request: Request) -> Operator:
    return services_of(request).worker.operator


def _by(request: Request) -> str:
    """Return who asks, as the entry names them."""
    return services_of(request).owner


def _message(request: Request) -> str:
    return unquote(str(request.path_params["message"]))


async def _body(request: Request, **kinds: type) -> dict[str, Any]:
    """Return the body with its members of these kinds; what is null counts as absent."""
    body = {name: value for name, value in (await json_body(request)).items() if value is not None}
    problems = [
        Problem(name, f"must be {_KINDS[kind]}")
        for name, kind in kinds.items()
        if name in body and type(body[name]) is not kind
    ]
    if problems:
        raise RequestRefused.of_problems(problems)
    return body


def _text(body: dict[str, Any], name: str, most: int) -> str:
    text = body.get(name)
    if not isinstance(text, str):
        raise RequestRefused.of_problems([Problem(name, "is missing")])
    if len(text) > most:
        raise RequestRefused.of_problems([Problem(name, f"has more than {most} characters")])
    return text


_KINDS = {str: "text", int: "a whole number", dict: "an object", bool: "true or false"}
