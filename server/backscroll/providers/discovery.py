"""Asking a server how large a model's context window is; at start, never during a turn."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping
from typing import Any

from backscroll.kernel.canon import canonical_json, parse_json
from backscroll.kernel.errors import ModelError
from backscroll.providers.http_model import HttpModel
from backscroll.providers.profiles import vendor

TIMEOUT_S = 3.0

_MODEL_FIELDS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "loaded_context_length",
    "max_input_tokens",
)

_log = logging.getLogger(__name__)


async def learn_window(model: object) -> None:
    """Give a model the window its server states, with its source, if nothing better is known.

    A server that cannot be asked changes nothing: this never raises.
    """
    if not isinstance(model, HttpModel) or model.profile.context_window is not None:
        return
    try:
        found = await _ASK[vendor(model.provider).window_at](model)
    except ModelError as error:
        _log.debug("model %r: its window could not be asked for: %s", model.name, error)
        return
    if found is not None:
        window, source = found
        model.profile = dataclasses.replace(
            model.profile, context_window=window, window_source=source
        )


async def _from_models(model: HttpModel) -> tuple[int, str] | None:
    """Read `/v1/models`, as vLLM, SGLang, OpenRouter, Groq, Together, Mistral, Anthropic do."""
    body = await _get(model, model.endpoint.url(model.models_route))
    listed = body.get("data") if isinstance(body, Mapping) else body
    window = _listed(listed, model.name)
    return None if window is None else (window, "/v1/models")


async def _from_props(model: HttpModel) -> tuple[int, str] | None:
    """Read llama.cpp's `/props`: the window of one slot."""
    body = await _get(model, model.endpoint.root("/props"))
    settings = body.get("default_generation_settings") if isinstance(body, Mapping) else None
    window = _size(settings.get("n_ctx")) if isinstance(settings, Mapping) else None
    return None if window is None else (window, "/props")


async def _from_ollama(model: HttpModel) -> tuple[int, str] | None:
    """Ask Ollama: the window a model runs with, its model file's, else the most it can do."""
    if (window := await _running(model)) is not None:
        return window, "/api/ps"
    asked = canonical_json({"model": model.name}).encode()
    body = await _get(model, model.endpoint.root("/api/show"), asked)
    if not isinstance(body, Mapping):
        return None
    found = re.search(r"^num_ctx\s+(\d+)", str(body.get("parameters") or ""), re.MULTILINE)
    if found is not None:
        return int(found[1]), "/api/show num_ctx"
    info = body.get("model_info")
    for key, value in info.items() if isinstance(info, Mapping) else ():
        if str(key).endswith(".context_length") and (window := _size(value)) is not None:
            return window, "/api/show, the model's maximum"
    return None


async def _running(model: HttpModel) -> int | None:
    """Return the window with which Ollama has loaded a model; servers of old do not say."""
    try:
        body = await _get(model, model.endpoint.root("/api/ps"))
    except ModelError as error:
        if error.kind != "invalid_request":
            raise
        return None
    listed = body.get("models") if isinstance(body, Mapping) else None
    return _listed(listed, model.name if ":" in model.name else f"{model.name}:latest")


async def _from_lm_studio(model: HttpModel) -> tuple[int, str] | None:
    """Read LM Studio's own list: the window a model was loaded with, else its maximum."""
    body = await _get(model, model.endpoint.root("/api/v0/models"))
    listed = body.get("data") if isinstance(body, Mapping) else None
    window = _listed(listed, model.name, tuple(reversed(_MODEL_FIELDS)))
    return None if window is None else (window, "/api/v0/models")


_ASK = {
    "models": _from_models,
    "props": _from_props,
    "ollama": _from_ollama,
    "lm-studio": _from_lm_studio,
}


async def _get(model: HttpModel, url: str, body: bytes | None = None) -> Any:
    """Return a parsed answer; raises ModelError for anything that is none."""
    headers = {"content-type": "application/json", **model.auth_headers()}
    method = "GET" if body is None else "POST"
    reply = await model.transport.request(method, url, headers, body, TIMEOUT_S)
    try:
        return parse_json(reply.text)
    except (ValueError, RecursionError):
        raise ModelError("parse", f"{url}: expected JSON", provider=model.provider) from None


def _listed(listed: Any, name: str, fields: tuple[str, ...] = _MODEL_FIELDS) -> int | None:
    """Return the window that a list of models states for one of them."""
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping) and name in (item.get("id"), item.get("name")):
            sizes = (_size(item.get(field)) for field in fields)
            return next((size for size in sizes if size is not None), None)
    return None


def _size(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else None
