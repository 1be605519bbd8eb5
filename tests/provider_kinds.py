"""How real servers of the OpenAI family differ: their rules, their refusals, their streams.

Each is put together from what its documentation and its users' reports show; `Settings(kind=…)` of
the scripted provider plays one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provider_rules import Rules
from provider_script import Form

Refuse = Callable[[str, str | None, bool], tuple[int, Any]]
"""Message, parameter, whether it is the key that is wrong: status and body of the refusal."""

Overflow = Callable[[int, int, int], tuple[int, Any]]
"""Prompt, asked output and window in tokens: status and body of the refusal."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of server."""

    rules: Rules
    refuse: Refuse
    overflow: Overflow
    form: Form = field(default_factory=Form)
    key_header: str = "authorization"


def _openai(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    code = "invalid_api_key" if is_auth else None
    inner = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return (401 if is_auth else 400), {"error": inner}


def _azure(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    if not is_auth:
        return _openai(message, param, False)
    return 401, {"error": {"code": "401", "message": f"Access denied: {message}"}}


def _mistral(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    if is_auth:
        return 401, {"detail": f"Unauthorized: {message}"}
    plain = {"object": "error", "type": "invalid_request_error", "param": None, "code": None}
    if not message.startswith(("Unrecognized", "Additional")):
        return 400, {**plain, "message": message}
    problem = {"type": "extra_forbidden", "loc": ["body", param], "msg": "Extra inputs are not"}
    return 422, {**plain, "message": {"detail": [problem, message]}}


def _vllm(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    if is_auth:
        return 401, {"error": f"Unauthorized {message}"}
    return 400, {
        "object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400
    }  # fmt: skip


def _llama_cpp(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    kind, code = ("authentication_error", 401) if is_auth else ("invalid_request_error", 400)
    return code, {"error": {"code": code, "message": message, "type": kind}}


def _bare(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    return (401 if is_auth else 400), {"error": message}


def _deepseek(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    kind = "authentication_error" if is_auth else "invalid_request_error"
    inner = {"message": message, "type": kind, "param": None, "code": "invalid_request_error"}
    return (401 if is_auth else 400), {"error": inner}


def _groq(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    code = {"code": "invalid_api_key"} if is_auth else {}
    inner = {"message": message, "type": "invalid_request_error", **code}
    return (401 if is_auth else 400), {"error": inner}


def _openrouter(message: str, param: str | None, is_auth: bool) -> tuple[int, Any]:
    if is_auth:
        return 401, {"error": {"message": message, "code": 401}}
    raw = json.dumps(_openai(message, param, False)[1])
    meta = {"raw": raw, "provider_name": "Upstream"}
    return 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": meta}}


def _max_context(used: int, output: int, window: int) -> str:
    return (
        f"This model's maximum context length is {window} tokens. However, you requested "
        f"{used + output} tokens ({used} in the messages, {output} in the completion). Please "
        "reduce the length of the messages or completion."
    )


def _with(refuse: Refuse, text: Callable[[int, int, int], str], code: Any = None) -> Overflow:
    def answer(used: int, output: int, window: int) -> tuple[int, Any]:
        status, body = refuse(text(used, output, window), None, False)
        if code is not None:
            body["error"]["code"] = code
        return status, body

    return answer


def _llama_overflow(used: int, output: int, window: int) -> tuple[int, Any]:
    message = f"request ({used} tokens) exceeds the available context size ({window} tokens)"
    inner = {"code": 400, "message": message, "type": "exceed_context_size_error"}
    return 400, {"error": {**inner, "n_prompt_tokens": used, "n_ctx": window}}


def _openrouter_overflow(used: int, output: int, window: int) -> tuple[int, Any]:
    message = (
        f"This endpoint's maximum context length is {window} tokens. However, you requested about "
        f"{used + output} tokens ({used} of text input, {output} in the output)."
    )
    return 400, {"error": {"message": message, "code": 400, "metadata": {"provider_name": None}}}


_CODE = "context_length_exceeded"
_WORDS = Rules(developer=False, tool_choice="words")

KINDS: Mapping[str, Kind] = {
    "generic": Kind(Rules(), _openai, _with(_openai, _max_context, _CODE)),
    "openai": Kind(
        Rules(refused_keys=("max_tokens",), reasoning="refuse", call_id=".{1,40}"),
        _openai,
        _with(_openai, _max_context, _CODE),
    ),
    "azure": Kind(
        Rules(refused_keys=("max_tokens",), reasoning="refuse", call_id=".{1,40}"),
        _azure,
        _with(_azure, _max_context, _CODE),
        Form(filters_first=True),
        key_header="api-key",
    ),
    "vllm": Kind(
        Rules(reasoning_field="reasoning"),
        _vllm,
        _with(_vllm, _max_context),
        Form(reasoning="reasoning"),
    ),
    "ollama": Kind(
        Rules(developer=False, reasoning_field="reasoning", tool_choice="words"),
        _openai,
        _with(_openai, lambda used, output, window: "input length exceeds the context length"),
        Form(reasoning="reasoning"),
    ),
    "llama.cpp": Kind(_WORDS, _llama_cpp, _llama_overflow),
    "lm-studio": Kind(
        Rules(developer=False, tool_choice="words", formats=("json_schema", "text")),
        _bare,
        _with(
            _bare,
            lambda used, output, window: (
                f"Trying to keep the first {used} tokens when context the overflows. However, the "
                f"model is loaded with context length of only {window} tokens, which is not enough."
            ),
        ),
    ),
    "deepseek": Kind(
        Rules(formats=("text", "json_object"), developer=False),
        _deepseek,
        _with(_deepseek, _max_context),
        Form(usage="last"),
    ),
    "deepseek thinking": Kind(
        Rules(
            formats=("text", "json_object"),
            developer=False,
            reasoning="demand_turn",
            tool_choice="auto",
        ),
        _deepseek,
        _with(_deepseek, _max_context),
        Form(usage="last"),
    ),
    "openrouter": Kind(
        Rules(reasoning_field="reasoning"),
        _openrouter,
        _openrouter_overflow,
        Form(reasoning="reasoning", comment=": OPENROUTER PROCESSING\n\n"),
    ),
    "groq": Kind(
        Rules(
            reasoning="refuse", reasoning_field="reasoning", names=False, refused_keys=("logprobs",)
        ),
        _groq,
        _with(
            _groq,
            lambda used, output, window: (
                "Please reduce the length of the messages or completion."
            ),
            _CODE,
        ),
        Form(reasoning="reasoning"),
    ),
    "together": Kind(
        Rules(reasoning_field="reasoning"),
        _openai,
        _with(
            _openai,
            lambda used, output, window: (
                f"The input ({used} tokens) is longer than the model's context length "
                f"({window} tokens)."
            ),
        ),
        Form(reasoning="reasoning", usage="last"),
    ),
    "mistral": Kind(
        Rules(
            extra_keys=("random_seed",),
            refused_keys=(
                "seed", "stream_options", "user", "service_tier", "max_completion_tokens",
            ),
            reasoning="refuse",
            call_id="[a-zA-Z0-9]{9}",
            reply_after_tools=True,
            developer=False,
        ),
        _mistral,
        _with(
            _mistral,
            lambda used, output, window: (
                f"Prompt contains {used} tokens and 0 draft tokens, too large for model with "
                f"{window} maximum context length"
            ),
        ),
        Form(reasoning="thinking", usage="last"),
    ),
}  # fmt: skip
