"""The whole path on a real model and a real client: overflow, then compaction ahead of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from ag_ui_validate.pytest_plugin import assert_valid_agui
from deadlines import scaled
from needs import needs
from node_clients import Cell, Playing, say
from processes import PROGRAMS, LlamaProcess, ServerProcess

pytestmark = [
    pytest.mark.needs("model"),
    pytest.mark.needs("clients"),
    pytest.mark.timeout(240),
]

REAL_WINDOW = 1024
CLAIMED_WINDOW = 4096
STORY = "The lighthouse keeper counted {n} ships, wrote {n} letters and kept the lamp burning. "


@pytest.fixture(scope="module")
def server(valkey_url: str) -> Iterator[ServerProcess]:
    """Serve an agent on a local llama.cpp server whose window is a quarter of what we claim."""
    needs("model")
    with LlamaProcess(n_ctx=REAL_WINDOW) as llama:
        env = {
            "OPENAI_BASE_URL": f"{llama.url}/v1",
            "OPENAI_API_KEY": "none-needed",
            "LOCAL_AGENT_WINDOW": str(CLAIMED_WINDOW),
            "PYTHONPATH": str(PROGRAMS),
            "BACKSCROLL_KEY_PREFIX": f"real-{uuid4().hex[:8]}",
        }
        with ServerProcess("local_agent", redis_url=valkey_url, env=env) as running:
            yield running


def read(server: ServerProcess, path: str) -> Any:
    """Return an answer of the operator API."""
    answer = httpx.get(server.url + path, trust_env=False, timeout=scaled(20))
    assert answer.status_code == 200, answer.text
    return answer.json() if "export" not in path else answer.text


@pytest.mark.parametrize(
    ("cell", "count"), [(Cell("agui_http"), 7), (Cell("agui_ws"), 4)], ids=["http", "ws"]
)
def test_a_long_conversation_meets_the_real_limit_and_goes_on(
    server: ServerProcess, cell: Cell, count: int
) -> None:
    """OVF5: the real refusal is recognised, answered once, learned, and not met again."""
    thread = f"real-{uuid4().hex[:8]}"
    turns = [say(f"{thread}-u{n}", STORY.format(n=n) * 12) for n in range(1, count + 1)]

    told = Playing(cell, [server.url], thread, steps=turns).told(within_s=200)

    base = f"/console/api/threads/{thread}"
    calls = [
        read(server, f"{base}/calls/{head['call']}")
        for head in read(server, f"{base}/calls")["calls"]
    ]
    refused = [n for n, call in enumerate(calls) if len(call["attempts"]) == 2]
    decisions = read(server, f"{base}/compactions")["compactions"]
    assert told.complaints == []
    assert all(types[-1] == "RUN_FINISHED" for types in map(told.types, range(len(turns))))
    assert [call["attempts"][-1]["status"] for call in calls] == ["ok"] * len(turns)
    if cell.program == "agui_http":
        # The first conversation meets the limit; what it learned spares the second one.
        assert len(refused) == 1 and len(calls) > refused[0] + 2
        assert "summary" in {s["stage"] for d in decisions for s in d["stages"]}
    else:
        assert refused == [] and decisions != []
    assert read(server, base)["messages"] == 2 * len(turns)
    matches = [read(server, f"{base}/calls/{c['call']}/request")["matches"] for c in calls]
    assert matches == [True] * len(turns)
    assert_valid_agui(read(server, f"{base}/export?format=events"))
