"""Errors carry their facts, one code each, and never a secret."""

from __future__ import annotations

import ast
from pathlib import Path

import httpx
import pytest
from backscroll.kernel import errors
from backscroll.kernel.errors import (
    MODEL_KINDS,
    AssemblyError,
    BackscrollError,
    ClientError,
    InputError,
    LeaseLost,
    MessageConflict,
    ModelError,
    ResumeProblem,
    ResumeRefused,
    StoreError,
    ToolError,
    classify_failure,
    redact,
)


def test_every_kind_knows_whether_it_is_retryable() -> None:
    """A model error is retryable as its kind says, unless the raiser knows better."""
    for kind, retryable in MODEL_KINDS.items():
        assert ModelError(kind, "x").retryable is retryable
        assert ModelError(kind, "x").code == kind
    assert ModelError("rate_limit", "quota", retryable=False).retryable is False


def test_the_json_shape_is_one() -> None:
    """Every error is code, message and retryable, and what is safe to add."""
    assert StoreError("gone").to_dict() == {
        "code": "store_error",
        "message": "gone",
        "retryable": True,
    }
    assert ModelError("provider", "down", status=500, provider="p").to_dict() == {
        "code": "provider",
        "message": "down",
        "retryable": True,
        "status": 500,
        "provider": "p",
    }
    found = AssemblyError("duplicate_tool", "two", "add").to_dict()
    assert (found["code"], found["kind"], found["where"]) == (
        "assembly_error",
        "duplicate_tool",
        "add",
    )


def test_each_code_belongs_to_one_class() -> None:
    """ERR5: no two classes of the tree share a code of their own."""
    seen: dict[str, type] = {}
    for cls in _tree(BackscrollError):
        code = cls.__dict__.get("code")
        if isinstance(code, str):
            assert code not in seen, (cls, seen.get(code))
            seen[code] = cls
    assert {code: cls.__name__ for code, cls in seen.items()} == {
        "internal_error": "BackscrollError",
        "assembly_error": "AssemblyError",
        "agent_import": "AgentImportError",
        "max_iterations_exceeded": "MaxIterationsExceeded",
        "store_error": "StoreError",
        "message_conflict": "MessageConflict",
        "lease_lost": "LeaseLost",
        "sink_failed": "SinkError",
        "awaiting_resume": "AwaitingResume",
        "tool_error": "ToolError",
    }


CODES = {
    "AssemblyError": "not_a_filter filter_without_hooks memory_filter_first memory_filter_twice "
    "window_with_compaction compaction_before_memory duplicate_tool invalid_tool invalid_retry "
    "invalid_schema invalid_text invalid_option",
    "ClientError": "no_model unknown_tool stream_already_started",
    "InputError": "invalid_message invalid_content empty_input",
    "ModelError": " ".join(MODEL_KINDS),
    "ResumeProblem": "interrupt_incomplete interrupt_unknown interrupt_invalid interrupt_expired "
    "invalid_arguments tool_gone not_paused pause_unreadable",
}
"""The codes of the classes that have several."""


def test_every_code_is_raised_by_its_class_only() -> None:
    """ERR5: what the code raises is what the list of codes has, and each code has one class."""
    written: dict[str, set[str]] = {name: set() for name in CODES}
    said: set[str] = set()
    for path in (Path(errors.__file__).parents[1]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.add(node.value)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CODES:
                first = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
                written[node.func.id].update(map(str, first))  # type: ignore[attr-defined]
    listed = {name: set(codes.split()) for name, codes in CODES.items()}

    assert {
        name: codes - listed[name] for name, codes in written.items() if codes - listed[name]
    } == {}
    assert set().union(*listed.values()) - said == set()
    assert sum(map(len, listed.values())) == len(set().union(*listed.values()))


def test_the_tree_is_drawn_at_the_top() -> None:
    """Each class of the tree is named in the module's docstring."""
    for cls in _tree(BackscrollError):
        if cls.__module__ == errors.__name__:
            assert cls.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError(), "semantic", "ValueError"),
        (ToolError("no disk", kind="environment"), "environment", "no disk"),
        (ModelError("auth", "bad key"), "environment", "bad key"),
        (ModelError("rate_limit", "slow"), "transient", "slow"),
        (ModelError("invalid_request", "no"), "semantic", "no"),
        (ConnectionResetError("reset"), "transient", "reset"),
        (httpx.ConnectTimeout("late"), "transient", "late"),
        (RecursionError("deep"), "semantic", "deep"),
    ],
)
def test_a_tool_failure_goes_where_it_belongs(error: Exception, kind: str, message: str) -> None:
    """ERR3: the first rule that matches decides, and a nameless error is told by its class."""
    found = classify_failure(error)

    assert (found.kind, found.message) == (kind, message)


def test_secrets_are_replaced() -> None:
    """ERR4: a key that occurs in a message is not in it afterwards; a blank secret is no secret."""
    assert redact("key sk-1 is wrong: sk-1", ["sk-1", ""]) == "key *** is wrong: ***"


def test_errors_name_expected_and_got() -> None:
    """Messages are sentences that hold the facts."""
    assert str(LeaseLost("t", 3, 4)) == "thread 't': wrote with fence 3, the log is at 4"
    assert "m1" in str(MessageConflict("m1"))
    assert str(InputError("invalid_message", "expected text", "messages[0].id")).startswith(
        "messages[0].id"
    )
    assert ClientError("no_model", "none").code == "no_model"


def test_a_refused_resume_has_the_code_of_its_first_problem() -> None:
    """Several problems are told together, the first names the error."""
    error = ResumeRefused(
        [ResumeProblem("interrupt_unknown", "a"), ResumeProblem("tool_gone", "b")]
    )
    assert (error.code, str(error)) == ("interrupt_unknown", "a; b")
    assert ResumeRefused([]).code == "not_paused"


def _tree(cls: type[BackscrollError]) -> list[type[BackscrollError]]:
    return [cls, *(found for sub in cls.__subclasses__() for found in _tree(sub))]
