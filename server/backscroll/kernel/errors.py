"""Every error Backscroll raises on purpose.

BackscrollError                 internal_error
├── AssemblyError               assembly_error, with a kind and where it was found
├── AgentImportError            agent_import
├── ClientError                 no_model · unknown_tool · stream_already_started
├── InputError                  invalid_message · invalid_content · empty_input
├── ModelError                  one code per kind, see MODEL_KINDS
├── MaxIterationsExceeded       max_iterations_exceeded
├── FilterError                 retrieval_failed and other codes of filters
├── StoreError                  store_error
│   ├── MessageConflict         message_conflict
│   └── LeaseLost               lease_lost
├── SinkError                   sink_failed
├── AwaitingResume              awaiting_resume
├── ResumeRefused               the code of its first problem
└── ToolError                   tool_error; raised by tools, contained by the tool call
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

ModelErrorKind = Literal[
    "network",
    "timeout",
    "rate_limit",
    "provider",
    "auth",
    "invalid_request",
    "parse",
    "unsupported_content",
    "context_overflow",
    "incomplete_stream",
    "cancelled",
]

MODEL_KINDS: dict[ModelErrorKind, bool] = {
    "network": True,
    "timeout": True,
    "rate_limit": True,
    "provider": True,
    "auth": False,
    "invalid_request": False,
    "parse": False,
    "unsupported_content": False,
    "context_overflow": False,
    "incomplete_stream": False,
    "cancelled": False,
}
"""Each kind of model error, and whether it is retryable unless the raiser knows better."""

FailureKind = Literal["semantic", "transient", "environment"]

RefusalClass = Literal["overflow", "sum", "overflow_bytes", "over_tpm", "heal", "silent", "other"]


class BackscrollError(Exception):
    """Anything that goes wrong in a way Backscroll knows about."""

    code: str = "internal_error"
    retryable: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the one JSON shape of an error: code, message, retryable."""
        return {"code": self.code, "message": str(self), "retryable": self.retryable}


class AssemblyError(BackscrollError):
    """An agent, client, filter or tool was put together wrongly."""

    code = "assembly_error"

    def __init__(self, kind: str, message: str, where: str = "") -> None:
        self.kind, self.where = kind, where
        super().__init__(message)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON shape with the kind of mistake and its place."""
        return {**super().to_dict(), "kind": self.kind, "where": self.where}


class AgentImportError(BackscrollError):
    """The name of an agent did not lead to one."""

    code = "agent_import"


class ClientError(BackscrollError):
    """A chat client was used in a way that cannot work."""

    def __init__(
        self, code: Literal["no_model", "unknown_tool", "stream_already_started"], message: str
    ) -> None:
        self.code = code
        super().__init__(message)


class InputError(BackscrollError):
    """What a caller handed in is not a message, not content, or empty; `path` names the member."""

    def __init__(
        self,
        code: Literal["invalid_message", "invalid_content", "empty_input"],
        message: str,
        path: str = "",
    ) -> None:
        self.code, self.path = code, path
        super().__init__(f"{path}: {message}" if path else message)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider's refusal says about size: its class, and the numbers it names."""

    cls: RefusalClass
    used: int | None = None
    output: int | None = None
    limit: int | None = None
    rule: str = ""


class ModelError(BackscrollError):
    """A model call failed; `kind` says how, `partial` holds what had arrived."""

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        retryable: bool | None = None,
        status: int | None = None,
        provider: str | None = None,
        retry_after_s: float | None = None,
        partial: Any = None,  # Any: a kernel.model.Partial, which this module does not import
        refusal: Refusal | None = None,
        cause: BaseException | None = None,
    ) -> None:
        self.kind: ModelErrorKind = kind
        self.code = kind
        self.retryable = MODEL_KINDS[kind] if retryable is None else retryable
        self.status, self.provider, self.retry_after_s = status, provider, retry_after_s
        self.partial, self.refusal, self.cause = partial, refusal, cause
        super().__init__(message)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON shape with status and provider where they are known."""
        extra = {"status": self.status, "provider": self.provider}
        return {**super().to_dict(), **{k: v for k, v in extra.items() if v is not None}}


class MaxIterationsExceeded(BackscrollError):
    """The model asked for one more tool batch than the turn allows."""

    code = "max_iterations_exceeded"

    def __init__(self, limit: int, message: str) -> None:
        self.limit = limit
        super().__init__(message)


class FilterError(BackscrollError):
    """A filter ended the turn; `filter` names it."""

    def __init__(self, filter: str, code: str, message: str) -> None:
        self.filter, self.code = filter, code
        super().__init__(message)


class StoreError(BackscrollError):
    """A store refused or lost an operation."""

    code = "store_error"
    retryable = True


class MessageConflict(StoreError):
    """A message id is already stored with other content; nothing of the batch was stored."""

    code = "message_conflict"
    retryable = False

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        super().__init__(f"message {message_id!r} is already stored with other content")


class LeaseLost(StoreError):
    """Another worker owns this run now; nothing of the refused batch was written."""

    code = "lease_lost"
    retryable = False

    def __init__(self, thread_id: str, fence: int, current: int) -> None:
        self.thread_id, self.fence, self.current = thread_id, fence, current
        super().__init__(f"thread {thread_id!r}: wrote with fence {fence}, the log is at {current}")


class SinkError(BackscrollError):
    """The event sink failed, so what happens can no longer be recorded."""

    code = "sink_failed"


class AwaitingResume(BackscrollError):
    """The conversation waits for answers; `pause` holds the open items."""

    code = "awaiting_resume"

    def __init__(self, pause: Any) -> None:  # Any: a kernel.turn.Pause, not imported here
        self.pause = pause
        super().__init__("the conversation is paused and waits for answers")


@dataclass(frozen=True, slots=True)
class ResumeProblem:
    """One reason why a resume is refused."""

    code: str
    message: str
    item_id: str | None = None


class ResumeRefused(BackscrollError):
    """The answers do not fit the pause; nothing was changed."""

    def __init__(self, problems: Sequence[ResumeProblem]) -> None:
        self.problems = tuple(problems)
        self.code = self.problems[0].code if self.problems else "not_paused"
        super().__init__("; ".join(p.message for p in self.problems))


class ToolError(BackscrollError):
    """Raised by a tool to say what failed, and whether trying again or a human may help."""

    code = "tool_error"

    def __init__(self, message: str, kind: FailureKind = "semantic") -> None:
        self.kind: FailureKind = kind
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """Why a tool call failed: where the failure is routed, and what the model is told."""

    kind: FailureKind
    message: str
    exception: BaseException | None = None


class Never:
    """Exceptions that no layer contains."""

    CONTAINED: ClassVar[tuple[type[BaseException], ...]] = (
        MemoryError,
        KeyboardInterrupt,
        LeaseLost,
    )


def classify_failure(error: BaseException) -> ToolFailure:
    """Return the failure an exception out of a tool amounts to; the first matching rule wins."""
    message = str(error) or type(error).__name__
    if isinstance(error, ToolError):
        return ToolFailure(error.kind, message, error)
    if isinstance(error, ModelError):
        kind: FailureKind = "transient" if error.retryable else "semantic"
        return ToolFailure("environment" if error.kind == "auth" else kind, message, error)
    return ToolFailure("transient" if _is_network(error) else "semantic", message, error)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every given secret replaced by `***`."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def _is_network(error: BaseException) -> bool:
    """Say whether an exception is a connect, socket or HTTP timeout or a reset."""
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    # httpx and its kin are recognised by name, so that the kernel need not import them.
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(names & {"TransportError", "TimeoutException", "ConnectError", "ReadTimeout"})
