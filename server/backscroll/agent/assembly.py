"""Assembly: what an agent is put together from is checked before any turn runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from backscroll.compaction.filter import Compaction
from backscroll.conversation.memory import ChatMemory
from backscroll.conversation.windowed import WindowedChatMemory
from backscroll.filters.memory import MemoryFilter
from backscroll.filters.tool_search import ToolSearch
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.filter import Filter, check_filters, hooks_of
from backscroll.kernel.model import ChatModel, ModelOptions, Named, retry_policy
from backscroll.kernel.tool import Slot, ToolSet
from backscroll.providers.catalog import resolve


def check_memory_filters(filters: Sequence[object]) -> MemoryFilter | None:
    """Return the memory filter somebody put into the list himself, if there is one.

    Raises `memory_filter_twice`, `memory_filter_first` when another chat filter is before it, or
    `compaction_before_memory` when that filter is a compaction.
    """
    places = {id(item): f"filters[{at}]" for at, item in enumerate(filters)}
    chat = [item for item in check_filters(filters) if "chat" in hooks_of(item)]
    found = [item for item in chat if isinstance(item, MemoryFilter)]
    if len(found) > 1:
        where = places[id(found[1])]
        raise AssemblyError("memory_filter_twice", f"{where}: there is a memory already", where)
    if found and chat[0] is not found[0]:
        early = next((item for item in chat[: chat.index(found[0])] if _compacts(item)), chat[0])
        kind = "compaction_before_memory" if _compacts(early) else "memory_filter_first"
        where = places[id(early if _compacts(early) else found[0])]
        message = f"{where}: the memory must come before {early.label!r}, which sees whole views"
        raise AssemblyError(kind, message, where)
    return found[0] if found else None


def check_compaction(compaction: object) -> Compaction | None:
    """Return what compacts, if anything; raises `invalid_option` for something else."""
    if compaction is not None and not isinstance(compaction, Compaction):
        raise _invalid("compaction", "a Compaction", compaction)
    return compaction


def check_tool_search(search: object) -> ToolSearch | None:
    """Return the search for tools, if there is one; raises `invalid_option` for something else."""
    if search is not None and not isinstance(search, ToolSearch):
        raise _invalid("tool_search", "a ToolSearch", search)
    return search


def check_window(memory: ChatMemory, filters: Iterable[object]) -> None:
    """Raise `window_with_compaction`: each would undo what the other does."""
    is_window = isinstance(memory, WindowedChatMemory) and memory.max_messages is not None
    if is_window and any(_compacts(item) for item in filters):
        message = "a window moves the beginning that compaction summarises; use one of the two"
        raise AssemblyError("window_with_compaction", message, "memory")


def check_model(model: object) -> ChatModel:
    """Return the model, or the one a name stands for.

    Raises `invalid_option` for what is none, `invalid_retry` for its retry.
    """
    if isinstance(model, str):
        model = resolve(model)
    if not isinstance(model, ChatModel):
        raise _invalid("model", "a model or the name of one", model)
    options = getattr(model, "options", None)
    if isinstance(options, ModelOptions):
        retry_policy(options.retry)
    return model


def check_options(options: object) -> ModelOptions:
    """Return the options; raises `invalid_option` or `invalid_retry`."""
    if options is None:
        return ModelOptions()
    if not isinstance(options, ModelOptions):
        raise _invalid("options", "ModelOptions", options)
    retry_policy(options.retry)
    return options


def check_limit(limit: object) -> int:
    """Return how many tool batches a turn may run; raises `invalid_option`."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        raise _invalid("max_iterations", "a whole number, 0 or more", limit)
    return limit


def check_tool_choice(choice: object, tools: ToolSet) -> None:
    """Raise `invalid_option` for a choice that is none, or names a tool that is not offered."""
    if isinstance(choice, Named):
        if tools.get(choice.name) is None:
            names = ", ".join(tools.names()) or "none"
            raise _invalid("tool_choice", f"one of the tools ({names})", choice.name)
    elif choice not in ("auto", "none", "required"):
        raise _invalid("tool_choice", "auto, none, required or Named(name)", choice)


def check_pausing(gate: object, pause_expires_s: object, **words: tuple[object, str]) -> None:
    """Raise `invalid_option` for a gate that is none, a lifetime, or a word that is not expected.

    Each of `words` is what was given, and what may be given, separated by blanks.
    """
    if gate is not None and not callable(gate):
        raise _invalid("gate", "a function of call, tool and context", gate)
    is_number = isinstance(pause_expires_s, int | float) and not isinstance(pause_expires_s, bool)
    if pause_expires_s is not None and not (is_number and pause_expires_s > 0):  # type: ignore[operator]
        raise _invalid("pause_expires_s", "a positive number", pause_expires_s)
    for name, (found, allowed) in words.items():
        if found not in allowed.split():
            raise _invalid(name, allowed.replace(" ", " or "), found)


def check_slots(slots: object) -> Mapping[str, Slot]:
    """Return the slots; raises `invalid_option`."""
    if not isinstance(slots, Mapping) or not all(isinstance(s, Slot) for s in slots.values()):
        raise _invalid("slots", "a mapping of names to Slot", slots)
    return slots


def texts_of(value: object, name: str) -> tuple[str, ...]:
    """Return one text or several as a tuple; raises `invalid_option`."""
    if value is None or value == "":
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, Iterable):
        raise _invalid(name, "text or a list of texts", value)
    found = tuple(items)
    if not all(isinstance(item, str) for item in found):
        raise _invalid(name, "text or a list of texts", value)
    return found


def chat_order(memory: MemoryFilter, inserted: Sequence[Filter], own: Sequence[Any]) -> list[Any]:
    """Return all filters, outermost first: memory, what the agent inserts, then the list's own."""
    return [memory, *inserted, *(item for item in own if not isinstance(item, MemoryFilter))]


def _compacts(item: object) -> bool:
    return isinstance(item, Compaction)


def _invalid(name: str, expected: str, found: object) -> AssemblyError:
    return AssemblyError("invalid_option", f"{name}: expected {expected}, got {found!r}", name)
