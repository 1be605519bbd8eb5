"""What is installed: the wheel, the kernel on its own, the public names."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from processes import ROOT


def run(code: str) -> list[str]:
    """Run code in a fresh interpreter and return the words it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the wheel and list what is in it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def listed(folder: Path, *kinds: str) -> set[str]:
    """Return the files of a folder that have one of the suffixes, relative to it."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix in kinds}


def test_wheel_holds_the_console(wheel: list[str]) -> None:
    """Every file of the console is in the wheel, beside the package that serves it."""
    files = listed(ROOT / "console", ".js", ".css", ".html", ".svg")

    assert files
    assert {f"backscroll/console/{name}" for name in files} <= set(wheel)


def test_wheel_holds_the_scripts(wheel: list[str]) -> None:
    """Lua scripts and the type marker are in the wheel."""
    scripts = listed(ROOT / "server" / "backscroll", ".lua")

    assert {f"backscroll/{name}" for name in scripts} | {"backscroll/py.typed"} <= set(wheel)


def test_wheel_holds_nothing_else(wheel: list[str]) -> None:
    """Tests, examples and the environment stay out of the wheel."""
    tops = {name.split("/")[0] for name in wheel}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"backscroll"}


def test_kernel_stands_alone() -> None:
    """Importing every file of the kernel loads no other room and none of their packages."""
    loaded = run(
        "import importlib, pkgutil, sys, backscroll.kernel as kernel\n"
        "for found in pkgutil.iter_modules(kernel.__path__):\n"
        "    importlib.import_module('backscroll.kernel.' + found.name)\n"
        "print(*sys.modules)"
    )

    ours = {name for name in loaded if name.startswith("backscroll.")}
    assert ours and all(name.startswith("backscroll.kernel") for name in ours)
    assert not {"redis", "httpx", "starlette", "ag_ui", "uvicorn", "msgpack"} & set(loaded)


def test_public_names_load_on_first_use() -> None:
    """`import backscroll` loads no room; each public name can be had from it."""
    first, *names = run(
        "import sys, backscroll\n"
        "print(sum(name.startswith('backscroll.') for name in sys.modules))\n"
        "print(*(name for name in backscroll.__all__ if getattr(backscroll, name) is not None))"
    )

    assert first == "0"
    assert "__version__" in names
