"""What the README promises in a few lines works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from deadlines import scaled
from documents import blocks
from processes import ROOT, ServerProcess
from scripted_provider import Call, Reply, ScriptedProvider
from served import request, sse_events

README = ROOT / "README.md"


def test_the_agent_of_the_readme_is_served(
    tmp_path: Path, valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """The agent in about fifteen lines runs as `shop:agent` and calls its tool."""
    code = next(block.code for block in blocks(README) if block.language == "python")
    (tmp_path / "shop.py").write_text(code)
    provider.add(Reply(calls=(Call("find_order", {"number": "A-1"}),)), Reply(text="It is paid."))
    env = {
        "OPENAI_API_KEY": "none-needed",
        "OPENAI_BASE_URL": provider.base_url,
        "BACKSCROLL_KEY_PREFIX": prefix,
    }
    with ServerProcess("shop:agent", redis_url=valkey_url, cwd=tmp_path, env=env) as server:
        body = request("t", "r", "Where is A-1?")
        answer = httpx.post(f"{server.url}/agui", json=body, trust_env=False, timeout=scaled(10))

    events = sse_events(answer.text)
    assert len([line for line in code.splitlines() if line.strip()]) <= 16
    assert "".join(e.get("delta", "") for e in events).endswith("It is paid.")
    assert next(e for e in events if e["type"] == "TOOL_CALL_RESULT")["content"] == (
        '{"number":"A-1","status":"paid"}'
    )
    assert provider.requests[0].json["model"] == "gpt-4.1-mini"


def test_every_linked_page_exists() -> None:
    """No link of the README or of docs/ leads nowhere."""
    for page in (README, *sorted((ROOT / "docs").rglob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
