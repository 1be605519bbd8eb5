"""From a name to an agent, or to a sentence that says why not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from backscroll.agent.loader import load_agent, opened
from backscroll.kernel.errors import AgentImportError

SOURCE = """
from contextlib import asynccontextmanager

from played_model import PlayedModel

from backscroll.agent.agent import Agent

agent = Agent(model=PlayedModel([]), name="attribute")
number = 7


def make() -> Agent:
    return Agent(model=PlayedModel([]), name="made")


def wrong():
    return "no agent"


async def later():
    return agent


@asynccontextmanager
async def block():
    yield make()


@asynccontextmanager
async def wrong_block():
    yield 7


def breaks():
    raise ValueError("no key")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the current folder, with a package that holds agents."""
    package = tmp_path / "shop_pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "app.py").write_text(SOURCE)
    (package / "needs.py").write_text("import there_is_no_such_module\n")
    (package / "syntax.py").write_text("def\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("shop_pkg")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("shop_pkg.app:agent", "attribute"),
        ("shop_pkg.app", "attribute"),
        ("shop_pkg.app:make", "made"),
    ],
)
def test_loads(folder: Path, name: str, found: str) -> None:
    """AG4: an attribute, the default one, and a function that makes the agent."""
    assert load_agent(name).name == found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (":agent", "agent ':agent': expected module:attribute, like shop.app:agent"),
        ("shop_pkg.ap:agent", "module 'shop_pkg.ap': there is no module named 'shop_pkg.ap'"),
        ("nowhere_at_all", "module 'nowhere_at_all': there is no module named 'nowhere_at_all'"),
        ("shop_pkg.needs", "module 'shop_pkg.needs': it raised ModuleNotFoundError"),
        ("shop_pkg.syntax", "module 'shop_pkg.syntax': it raised SyntaxError"),
        ("shop_pkg.app:agnet", "attribute 'agnet': there is no such attribute; .* agents agent"),
        ("shop_pkg:agent", "module 'shop_pkg', attribute 'agent': there is no such attribute$"),
        ("shop_pkg.app:number", "expected an Agent, got int"),
        ("shop_pkg.app:PlayedModel", r"expected an Agent, got PlayedModel \(a class\)"),
        ("shop_pkg.app:wrong", "expected a function that returns an Agent, it returned str"),
        ("shop_pkg.app:later", "expected a function that returns an Agent, it returned coroutine"),
        ("shop_pkg.app:breaks", "the function raised ValueError: no key"),
    ],
)
def test_says_why_not(folder: Path, name: str, reason: str) -> None:
    """AG4: module, attribute and what was found instead are named."""
    with pytest.raises(AgentImportError, match=reason) as caught:
        load_agent(name)

    assert caught.value.code == "agent_import"


async def test_opens(folder: Path) -> None:
    """An agent may come with what it needs, for as long as it is served."""
    async with opened(load_agent("shop_pkg.app:block")) as made:
        assert made.name == "made"
    async with opened(load_agent("shop_pkg.app:agent")) as found:
        assert found.name == "attribute"
    with pytest.raises(AgentImportError, match="gives an Agent, it gave int"):
        async with opened(load_agent("shop_pkg.app:wrong_block")):
            pass
