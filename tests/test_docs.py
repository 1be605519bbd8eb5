"""Every example in README, docs/ and examples/ runs as it is printed.

Blocks of one language in one document are one program; a block with the name of a file behind its
language is that file, beside the program. A server with the demo agent runs beside
them; where a document says port 8000, the program gets the port of that server. OPENAI_BASE_URL
and ANTHROPIC_BASE_URL name a scripted model that always gives the same answer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from backscroll import Agent, Compaction, DemoModel, ExtractiveSummariser
from documents import blocks, program, save_files
from needs import needs
from processes import ROOT, ServerProcess
from provider_script import Reply
from scripted_provider import ScriptedProvider

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CLIENTS = ROOT / "tests" / "clients"
SAVE_AS = re.compile(r"Save this as `(\w+)\.py`")
NODE = ["node", "--experimental-websocket", "--no-warnings", "--input-type=module", "-"]


def having(language: str) -> list[Path]:
    """Return the documents that have code in a language."""
    return [path for path in DOCUMENTS if path.exists() and program(path, language)]


def name(path: Path) -> str:
    """Name a document in test ids."""
    return str(path.relative_to(ROOT))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """Serve the demo agent beside an example."""
    with ServerProcess(data_dir=tmp_path / "data") as process:
        yield process


@pytest.fixture
def env(provider: ScriptedProvider) -> dict[str, str]:
    """Give the environment of examples: a model on loopback instead of a vendor."""
    provider.otherwise(Reply("Order A-1042 is paid."))
    return {
        "OPENAI_BASE_URL": provider.base_url,
        "OPENAI_API_KEY": "for-examples",
        "ANTHROPIC_BASE_URL": provider.url,
        "ANTHROPIC_API_KEY": "for-examples",
    }


def run(command: list[str], code: str, cwd: Path, env: Mapping[str, str]) -> None:
    """Run a program from standard input; it must end well within its time."""
    done = subprocess.run(
        command,
        input=code,
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=45,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def placed(code: str, server: ServerProcess) -> str:
    """Point the program at the running server."""
    return re.sub(r"\b(localhost|127\.0\.0\.1):8000\b", f"127.0.0.1:{server.port}", code)


@pytest.mark.parametrize("path", having("python"), ids=name)
def test_python_of_documents(
    path: Path, server: ServerProcess, env: dict[str, str], tmp_path: Path
) -> None:
    """The Python of a document runs from top to bottom."""
    save_files(path, tmp_path)
    (tmp_path / "program.py").write_text(placed(program(path), server), encoding="utf-8")

    run([sys.executable, "program.py"], "", tmp_path, env)


@pytest.mark.parametrize("path", having("js"), ids=name)
def test_javascript_of_documents(path: Path, server: ServerProcess) -> None:
    """The JavaScript of a document runs in Node."""
    needs("clients")

    run(NODE, placed(program(path, "js"), server), CLIENTS, {})


def saved() -> list[tuple[Path, str]]:
    """Return the documents that tell to save a module, with the name of the module."""
    found = ((path, SAVE_AS.findall(path.read_text(encoding="utf-8"))) for path in DOCUMENTS)
    return [(path, module) for path, modules in found for module in modules]


@pytest.mark.parametrize(("path", "module"), saved(), ids=str)
def test_saved_agents_are_served(
    path: Path, module: str, env: dict[str, str], tmp_path: Path
) -> None:
    """What a document says to save under a name is an agent that answers when it is served."""
    text = path.read_text(encoding="utf-8")
    place = text.count("\n", 0, text.index(f"Save this as `{module}.py`"))
    block = next(block for block in blocks(path) if block.line > place)
    save_files(path, tmp_path)
    (tmp_path / f"{module}.py").write_text(block.code, encoding="utf-8")
    message = {"id": "u1", "role": "user", "content": "Is A-1042 paid?"}
    body = {"threadId": "t", "runId": "r", "messages": [message], "tools": [], "context": []}

    with ServerProcess(f"{module}:agent", env=env, cwd=tmp_path) as server:
        answer = httpx.post(
            f"{server.url}/agui",
            json={**body, "state": {}, "forwardedProps": {}},
            trust_env=False,
            timeout=20,
        )

    assert "TEXT_MESSAGE_CONTENT" in answer.text and "RUN_FINISHED" in answer.text


@pytest.mark.parametrize("path", having("json"), ids=name)
def test_json_of_documents(path: Path) -> None:
    """Each JSON block is JSON."""
    for block in blocks(path):
        if block.language == "json":
            json.loads(block.code)


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_examples(path: Path, env: dict[str, str], tmp_path: Path) -> None:
    """An example runs offline, from any directory, and ends well."""
    run([sys.executable, str(path)], "", tmp_path, env)


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if p.exists()], ids=name)
def test_links_of_documents(path: Path) -> None:
    """A link to a file of the project leads to a file."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))

    local = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    missing = [link for link in local if not (path.parent / link).exists()]
    assert not missing


async def test_tutorial_says_often_enough() -> None:
    """As many messages as the tutorial asks for bring about a compaction."""
    tutorial = (ROOT / "docs" / "tutorial" / "first-agent.md").read_text()
    said = re.search(r"`(tell me everything)`, in all (\d+) times", tutorial)
    assert said
    model = DemoModel(delay_s=0)
    agent = Agent(model=model, compaction=Compaction(summariser=ExtractiveSummariser()))

    for _ in range(int(said[2])):
        await agent.invoke(said[1], conversation_id="me")

    sent = [len(request.messages) for request in model.requests]
    assert sent[0] < max(sent) > sent[-1]
