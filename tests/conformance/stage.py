"""Two workers, one Redis, one scripted model: the stage on which real faults are played again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from processes import PROGRAMS, ServerProcess
from scripted_provider import ScriptedProvider


@dataclass
class Stage:
    """The running parts; `thread` is a name that no other test uses, `folder` is for its files."""

    model: ScriptedProvider
    serve: Callable[..., ServerProcess]
    first: ServerProcess
    second: ServerProcess
    prefix: str = "cases"
    thread: str = ""
    folder: Path = Path()


def serving(model: ScriptedProvider, redis_url: str) -> Callable[..., ServerProcess]:
    """Return what makes a worker of `waiting_agent`, not started; settings are its arguments."""

    def serve(*, port: int | None = None, **settings: object) -> ServerProcess:
        env = {f"BACKSCROLL_{name.upper()}": str(value) for name, value in settings.items()}
        env = {
            "BACKSCROLL_KEY_PREFIX": "cases",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none-needed",
            "PYTHONPATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PYTHONPATH", "")]),
            **env,
        }
        return ServerProcess("waiting_agent", redis_url=redis_url, port=port, env=env)

    return serve


def running(redis_url: str) -> Iterator[Stage]:
    """Yield the stage with the model and both workers started."""
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedProvider())
        serve = serving(model, redis_url)
        first, second = (stack.enter_context(serve()) for _ in range(2))
        yield Stage(model, serve, first, second)
