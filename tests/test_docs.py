"""Every example in README, docs/ and examples/ runs as it is printed.

Blocks of one language in one document are one program. A server with the demo agent runs beside
them; where a document says port 8000, the program gets the port of that server.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import blocks, program
from needs import needs
from processes import ROOT, ServerProcess

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CLIENTS = ROOT / "tests" / "clients"
NODE = ["node", "--experimental-websocket", "--no-warnings", "--input-type=module", "-"]


def having(language: str) -> list[Path]:
    """Return the documents that have code in a language."""
    return [path for path in DOCUMENTS if path.exists() and program(path, language)]


def name(path: Path) -> str:
    """Name a document in test ids."""
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Serve the demo agent beside the examples."""
    with ServerProcess(data_dir=tmp_path_factory.mktemp("data")) as process:
        yield process


def run(command: list[str], code: str, cwd: Path) -> None:
    """Run a program from standard input; it must end well within its time."""
    done = subprocess.run(
        command, input=code, cwd=cwd, capture_output=True, text=True, timeout=45, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def placed(code: str, server: ServerProcess) -> str:
    """Point the program at the running server."""
    return re.sub(r"\b(localhost|127\.0\.0\.1):8000\b", f"127.0.0.1:{server.port}", code)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", having("python"), ids=name)
def test_python_of_documents(path: Path, server: ServerProcess, tmp_path: Path) -> None:
    """The Python of a document runs from top to bottom."""
    (tmp_path / "program.py").write_text(placed(program(path), server), encoding="utf-8")

    run([sys.executable, "program.py"], "", tmp_path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", having("js"), ids=name)
def test_javascript_of_documents(path: Path, server: ServerProcess) -> None:
    """The JavaScript of a document runs in Node."""
    needs("clients")

    run(NODE, placed(program(path, "js"), server), CLIENTS)


@pytest.mark.parametrize("path", having("json"), ids=name)
def test_json_of_documents(path: Path) -> None:
    """Each JSON block is JSON."""
    for block in blocks(path):
        if block.language == "json":
            json.loads(block.code)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_examples(path: Path, tmp_path: Path) -> None:
    """An example runs offline, from any directory, and ends well."""
    run([sys.executable, str(path)], "", tmp_path)


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if p.exists()], ids=name)
def test_links_of_documents(path: Path) -> None:
    """A link to a file of the project leads to a file."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))

    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    missing = [link for link in local if not (path.parent / link).exists()]
    assert not missing
