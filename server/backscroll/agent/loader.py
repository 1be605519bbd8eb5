"""The loader: from a name like `shop.app:agent` to the agent."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from backscroll.agent.agent import Agent
from backscroll.kernel.errors import AgentImportError

DEFAULT = "agent"

Source = Agent | AbstractAsyncContextManager[Agent]
"""An agent, or an async context manager that gives one for as long as it is served."""


@asynccontextmanager
async def opened(source: Source) -> AsyncIterator[Agent]:
    """Give the agent of a source, and what it needs, until the block is left."""
    if isinstance(source, Agent):
        yield source
        return
    async with source as agent:
        if not isinstance(agent, Agent):
            raise AgentImportError(f"expected a block that gives an Agent, it gave {_kind(agent)}")
        yield agent


def load_agent(name: str) -> Source:
    """Return the agent that `module:attribute` names; the attribute is `agent` if left out.

    It is an Agent, or a function without parameters that returns one or an async context manager of
    one. Raises `agent_import`, which names module, attribute, and what was found instead. Modules
    of the current folder are found.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module_name, _, attribute = name.partition(":")
    attribute = attribute or DEFAULT
    found = _attribute(_module(name, module_name), module_name, attribute)
    if isinstance(found, Agent):
        return found
    if not inspect.isfunction(found):
        raise _wrong(module_name, attribute, f"expected an Agent, got {_kind(found)}")
    try:
        made = found()
    except Exception as error:
        reason = f"the function raised {_words(error)}"
        raise _wrong(module_name, attribute, reason) from error
    if not isinstance(made, Agent | AbstractAsyncContextManager):
        reason = f"expected a function that returns an Agent, it returned {_kind(made)}"
        if inspect.iscoroutine(made):
            made.close()
        raise _wrong(module_name, attribute, reason)
    return made


def _module(name: str, module_name: str) -> Any:
    if not module_name:
        raise AgentImportError(f"agent {name!r}: expected module:attribute, like shop.app:agent")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        is_it = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
        if not is_it:
            raise _wrong(module_name, None, f"it raised {_words(error)}") from error
        message = (
            f"there is no module named {error.name!r}; it is looked for in the folder of the start"
        )
        raise _wrong(module_name, None, message) from error
    except Exception as error:
        raise _wrong(module_name, None, f"it raised {_words(error)}") from error


def _attribute(module: Any, module_name: str, attribute: str) -> Any:
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        agents = [key for key, value in vars(module).items() if isinstance(value, Agent)]
        hint = f"; the module has the agents {', '.join(agents)}" if agents else ""
        raise _wrong(module_name, attribute, f"there is no such attribute{hint}") from error


def _wrong(module_name: str, attribute: str | None, reason: str) -> AgentImportError:
    place = f"module {module_name!r}" + (f", attribute {attribute!r}" if attribute else "")
    return AgentImportError(f"{place}: {reason}")


def _kind(value: object) -> str:
    return f"{value.__name__} (a class)" if isinstance(value, type) else type(value).__name__


def _words(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
