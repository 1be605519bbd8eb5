"""What providers say when a prompt does not fit, as data; read in order by `overflow`.

Patterns are searched in lower-cased text. The named groups `used`, `limit`, `output` and `extra`
are token counts; `extra` is added to `used`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
        "exceed_context_size_error",
        "context_length_error",
        "prompt_too_long",
        "outofcontexterror",
        "contextwindowexceedederror",
    }
)

TPM_CODE = "rate_limit_exceeded"
BYTES_CODE = "request_too_large"

OVERFLOW_STATUSES = frozenset({400, 413, 422, 500, 200, None})
VETO_STATUSES = frozenset({401, 402, 403, 404, 408, 429})

VETO_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "rate_limit_error",
        "insufficient_quota",
        "quota_exceeded",
        "resource_exhausted",
        "throttlingexception",
        "toomanyrequestsexception",
        "overloaded_error",
        "overloaded",
        "invalid_api_key",
        "authentication_error",
        "permission_error",
        "billing_error",
        "content_filter",
        "content_policy_violation",
        "model_not_found",
        "not_found_error",
        "string_above_max_length",
    }
)


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence as some provider writes it."""

    name: str
    pattern: re.Pattern[str]


def _all(*pairs: tuple[str, str]) -> tuple[Wording, ...]:
    number = r"(?P<\1>\\d[\\d,_]{0,15})"
    return tuple(
        Wording(name, re.compile(re.sub(r"<(\w+)>", number, pattern))) for name, pattern in pairs
    )


HEAL = _all(
    ("calls_without_results", r"tool_use` ids were found without"),
    ("calls_without_results", r"must be followed by tool messages"),
    ("calls_without_results", r"did not have response messages"),
    ("calls_without_results", r"no tool output found for function call"),
    ("calls_without_results", r"tool call and response.{0,40}(not match|mismatch)"),
    ("results_without_calls", r"no tool call found for function call output"),
    ("results_without_calls", r"must be a response to a prece+ding message"),
    ("results_without_calls", r"unexpected `?tool_use_id`?"),
    ("results_without_calls", r"each `?tool_result`? block must have a corresponding"),
    ("thinking_modified", r"thinking.{0,80} blocks.{0,80}cannot be modified"),
    ("thinking_modified", r"blocks? in the latest assistant message cannot be modified"),
    ("thinking_signature", r"invalid `?signature`? in `?thinking`?"),
    ("call_id_missing", r"missing.{0,60}tool_call_id"),
    ("call_id_missing", r"tool_call_id.{0,40}(is missing|is required|field required)"),
    ("roles", r"roles must alternate"),
)

TPM = re.compile(r"request too large")
TPM_NUMBERS = _all(("over_tpm", r"limit:? <limit>,? requested:? <used>"))

VETO = _all(
    ("rate", r"rate[ _-]?limit"),
    ("rate", r"tokens per (min|day)|requests per (min|day)|\b(tpm|rpm)\b"),
    ("rate", r"too many requests"),
    ("quota", r"\bquota\b|billing|insufficient (balance|credits|funds)"),
    ("throttled", r"throttl|please wait|try again (later|in )"),
    ("overloaded", r"overloaded|over capacity|server is busy"),
    ("field", r"string too long|string_too_long"),
    ("field", r"(name|description)s?\b[^.]{0,40}\btoo long"),
    (
        "media",
        r"(image|file|pdf|audio)[^.]{0,40}(exceeds|larger than)[^.]{0,20}(size|mb|bytes|pixel)",
    ),
    ("media", r"(image|file|pdf|audio)( size)?[^.]{0,20} too (large|big)"),
)

BYTES = _all(
    ("payload", r"(request|payload|body)( body| payload)?( size| entity)? (is )?too large"),
    ("payload", r"(request|body|payload) (payload )?size exceeds|request_too_large"),
    ("payload", r"exceeds the maximum (allowed )?(request |body |payload )?size"),
    ("payload", r"content size limit|maximum request (body )?size"),
)

OVERFLOW = _all(
    (
        "max_context_split",
        r"maximum context length is <limit> tokens.{0,40}?requested (about )?[\d,]+ tokens"
        r" ?\(<used> (in the messages|of text input|in your prompt)"
        r"(, <extra> (in the functions|of tool input))?"
        r"[^()]{0,60}?,? (and )?<output> (in|for) the (completion|output)",
    ),
    (
        "max_context_output_first",
        r"maximum context length is <limit> tokens.{0,40}?requested <output> output tokens and "
        r"your (prompt|request) (contains|has) (at least )?<used> input tokens",
    ),
    (
        "max_tokens_left",
        r"too large: <output>\..{0,40}?maximum context length is <limit> tokens and your request "
        r"has <used> input tokens",
    ),
    ("max_context_resulted", r"maximum context length is <limit> tokens.{0,60}?in <used> tokens"),
    ("max_context_requested", r"maximum context length is <limit> tokens.{0,60}?requested <used>"),
    ("max_context", r"maximum context length (of|is) <limit>"),
    (
        "model_max_context",
        r"length \(<used>\) exceeds (the )?model's maximum context length \(<limit>",
    ),
    (
        "passed_input",
        r"passed <used> input tokens( and requested <output> output tokens)?"
        r".{0,40}?context length is only <limit>",
    ),
    ("decoder_prompt", r"prompt \(length <used>\) is longer than the maximum model length of "
                       r"<limit>"),
    (
        "input_configured",
        r"input tokens exceed the configured limit of <limit>( tokens\. your messages resulted in "
        r"<used>)?",
    ),
    ("input_window", r"exceeds? the (model's )?(maximum )?context (window|length|size)"),
    ("prompt_count", r"prompt token count of <used> exceeds the limit of <limit>"),
    ("prompt_maximum", r"prompt is too long: <used> tokens > <limit> maximum"),
    (
        "input_plus_max",
        r"exceed context limit: <used> \+ <output> > <limit>",
    ),
    ("bedrock_long", r"input is too long for requested model"),
    ("bedrock_tokens", r"too many input tokens(.{0,20}max input tokens: <limit>)?"),
    ("bedrock_characters", r"expected maxlength: \d+"),
    ("mantle", r"prompt tokens \(<used>\) exceed model maximum \(<limit>"),
    (
        "gemini",
        r"input token count (\(<used>\) )?exceeds the maximum number of tokens allowed"
        r"( \(<limit>)?",
    ),
    (
        "mistral",
        r"prompt contains <used> tokens.{0,60}?model with <limit> maximum context length",
    ),
    (
        "reduce_length",
        r"reduce the length of (the|your) (messages|prompt|input)"
        r"(.{0,40}?current length is <used> while limit is <limit>)?",
    ),
    ("current_length", r"current length is <used> while limit is <limit>"),
    (
        "together",
        r"input \(<used> tokens\) is longer than the model's context length \(<limit>",
    ),
    (
        "tgi",
        r"inputs`? tokens \+ `?max_new_tokens`? must be <= <limit>\. given: <used> `?inputs`? "
        r"tokens and <output>",
    ),
    ("tgi_inputs", r"inputs`? must have less than <limit> tokens\. given: <used>"),
    ("no_room", r"max_tokens must be at least 1, got -\d+"),
    ("input_parameter", r"parameter=input_tokens"),
    (
        "llama_cpp",
        r"request \(<used> tokens\) exceeds the available context size \(<limit> tokens",
    ),
    ("llama_cpp_old", r"exceeds the available context size"),
    ("llama_cpp_python", r"requested tokens \(<used>\) exceed context window of <limit>"),
    (
        "lm_studio_keep",
        r"keep the first <used> tokens when context.{0,100}?length of only <limit>",
    ),
    ("lm_studio_keep", r"tokens to keep.{0,60}greater than the context length"),
    ("lm_studio_reached", r"reached context length of <limit>"),
    ("lm_studio_exceeded", r"context size has been exceeded"),
    ("ollama", r"prompt too long; exceeded max context length"),
    ("ollama", r"input length exceeds the context length"),
    ("xai", r"maximum prompt length is <limit> but the request contains <used>"),
    ("minimax", r"context window exceeds limit"),
    ("kimi", r"exceeded model token limit: <limit> \(requested: <used>"),
    ("glm", r"prompt exceeds max(imum)? length"),
    ("dashscope", r"range of input length should be \[1, ?<limit>"),
    ("ark", r"total tokens of image and text exceed max message tokens"),
    ("cohere", r"too many tokens:.{0,80}? (max|limit) of <limit>"),
    ("poolside", r"exceeds the maximum allowed input length of <limit> tokens"),
    ("litellm", r"contextwindowexceedederror"),
    ("named_code", r"context_length_exceeded"),
)  # fmt: skip
