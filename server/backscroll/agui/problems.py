"""What pydantic finds wrong with a request, as paths and words a person understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from backscroll.agui.refusal import Problem
from backscroll.agui.strip import Place


def problems_of(
    error: ValidationError, value: Any, origins: Mapping[Place, Sequence[int]]
) -> list[Problem]:
    """Return one problem per bad member, its path as the peer wrote the request.

    `value` is what was validated (Any: JSON values).
    """
    found: dict[str, Problem] = {}
    for item in error.errors(include_url=False, include_context=True, include_input=False):
        place = _place(item["loc"], value)
        if place is None:
            continue
        message = _WORDS.get(item["type"], _own_words)(item)
        if item["type"].startswith("union_tag"):
            place = (*place, _discriminator(item))
        path = path_of(place, origins)
        found.setdefault(path, Problem(path, message))
    return list(found.values())


def path_of(place: Place, origins: Mapping[Place, Sequence[int]] | None = None) -> str:
    """Return a place as a path, `messages[0].content[1]`, counted as the peer counted."""
    path = ""
    for at, step in enumerate(place):
        if isinstance(step, int):
            origin = (origins or {}).get(place[:at])
            path += f"[{origin[step] if origin is not None else step}]"
        else:
            path += f".{step}" if path else step
    return path


def _place(steps: tuple[int | str, ...], value: Any) -> Place | None:
    """Return where an error is, without the names pydantic gives the branches of a union.

    None for what a branch says that the value never meant to take.
    """
    place: list[str | int] = []
    for at, step in enumerate(steps):
        if step == "str" or str(step).startswith("list["):
            if isinstance(value, list) is (step == "str"):
                return None
        elif isinstance(step, int) and isinstance(value, list):
            value = value[step]
            place.append(step)
        elif isinstance(value, dict) and (step in value or at == len(steps) - 1):
            value = value.get(step)
            place.append(step)
    return tuple(place)


def _discriminator(item: Any) -> str:
    """Return the member by which a union is told apart."""
    return str(item["ctx"]["discriminator"]).strip("'")


def _not_known(item: Any) -> str:
    what = "role" if _discriminator(item) == "role" else "type"
    return f"is not a known {what}"


def _text_wanted(item: Any) -> str:
    return "must be text or a list of parts" if item["loc"][-1] == "str" else "must be text"


def _own_words(item: Any) -> str:  # Any: pydantic's ErrorDetails
    message: str = item["msg"]
    return message[0].lower() + message[1:]


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "missing": lambda _: "is missing",
    "string_type": _text_wanted,
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be an object",
    "model_type": lambda _: "must be an object",
    "model_attributes_type": lambda _: "must be an object",
    "literal_error": lambda item: f"must be {item['ctx']['expected']}",
    "union_tag_invalid": _not_known,
    "union_tag_not_found": lambda _: "is missing",
}
