"""Compaction as a whole: what was asked survives, nothing is invented, one summary at a time."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from backscroll.agent.agent import Agent
from backscroll.compaction.filter import Compaction
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.openai import OpenAIModel
from scripted_provider import Call, Recorded, Reply, ScriptedProvider, error
from served import request, served, sse_events

SUMMARISER = "Write the new notes now."
FRAME = "<earlier-conversation>"
GOAL = "Goal: rename module alpha to beta, never touch gamma."
NOTES = """## Done
The assistant read a number of files, one after another, and all of them were in order. Part {n}.
Nothing else of importance happened, and no decision was made that would have to be remembered.
"""


@tool
def read(name: str) -> str:
    """Read a file."""
    return "".join(f"{n}: def {name}_{n}(): return {n * 37}\n" for n in range(40))


@tool
def peek(name: str) -> str:
    """Look at a file."""
    return f"{name} is fine"


class Scripted:
    """A provider that answers by a rule and counts its summaries."""

    def __init__(self, provider: ScriptedProvider, rounds: int, calls: int = 1) -> None:
        self.sent: list[Recorded] = []
        self.asked: list[str] = []
        self._rounds, self._calls = rounds, calls
        provider.script.answer = self.answer

    def answer(self, record: Recorded) -> Reply:
        """Answer a summary request with notes, calls with tools until the rounds are over."""
        whole = json.dumps(record.messages, ensure_ascii=False)
        if SUMMARISER in whole:
            self.asked.append(whole)
            return Reply(text=NOTES.format(n=len(self.asked)))
        self.sent.append(record)
        if len(self.sent) % (self._rounds + 1) == 0:
            return Reply(text="Done with all of it.")
        n = len(self.sent)
        names = (Call("read", {"name": f"f{n}_{k}"}) for k in range(self._calls))
        return Reply(calls=tuple(names))


def agent_for(provider: ScriptedProvider, window: int, **settings: Any) -> Agent:
    """Return an agent on the OpenAI wire with a window of that size."""
    profile = ModelProfile(context_window=window, window_source="configured")
    model = OpenAIModel("m", base_url=provider.base_url, api_key="k", profile=profile)
    return Agent(
        name="a",
        model=model,
        tools=[read, peek],
        max_iterations=200,
        compaction=Compaction(**settings),
    )


async def test_the_goal_survives_compaction_inside_its_own_turn(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-12: 30 tool rounds in one turn; every request holds the user's words."""
    script = Scripted(provider, rounds=30)
    async with served(agent_for(provider, 5_000), valkey_url, prefix) as server:
        events = await server.run("t", "r", GOAL)

    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    assert len(script.sent) == 31 and len(script.asked) >= 2
    assert all(GOAL in json.dumps(record.messages) for record in script.sent)
    assert provider.problems == []


async def test_nothing_synthetic_is_stored_as_a_user_message(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-13: the history has only what the user sent; views mark what was added."""
    script = Scripted(provider, rounds=20)
    async with served(agent_for(provider, 5_000), valkey_url, prefix) as server:
        await server.run("t", "r", GOAL)
        stored = (await server.get("/console/api/threads/t/messages?fields=full"))["messages"]
        call = await server.get("/console/api/threads/t/calls/latest")

    users = [m["message"]["content"] for m in stored if m["role"] == "user"]
    assert users == [GOAL] and len(script.asked) >= 1
    fates = {span.get("what"): span["fate"] for span in call["attempts"][-1]["spans"]}
    assert any(span["fate"] == "summarised" for span in call["attempts"][-1]["spans"]), fates
    assert all(m["message"].get("origin") is None for m in stored)


async def test_repeated_compaction_leaves_one_summary(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """compaction-15: four in a row: one summary a request, each made from the one before."""
    script = Scripted(provider, rounds=60)
    async with served(agent_for(provider, 5_000), valkey_url, prefix) as server:
        await server.run("t", "r", GOAL)

    assert len(script.asked) >= 4
    for record in script.sent:
        framed = [n for n, m in enumerate(record.messages) if FRAME in str(m.get("content"))]
        assert len(framed) <= 1
        assert not framed or framed[0] == 0
    for n, asked in enumerate(script.asked[1:], 1):
        assert f"Part {n}." in asked
    summaries = [str(r.messages[0]["content"]) for r in script.sent if FRAME in str(r.messages[0])]
    assert max(map(len, summaries)) < 6_000


@pytest.mark.timeout(90)
@pytest.mark.parametrize("window", [2_500, 3_500, 5_000, 8_000, 20_000])
async def test_a_batch_is_never_parted(
    valkey_url: str, prefix: str, provider: ScriptedProvider, window: int
) -> None:
    """compaction-01: parallel calls at every budget: the strict provider refuses nothing."""
    script = Scripted(provider, rounds=3, calls=2)
    async with served(agent_for(provider, window), valkey_url, prefix) as server:
        for n in range(1, 7):
            message = {"id": f"u{n}", "role": "user", "content": f"Round {n}"}
            body = request("t", f"r{n}", message)
            events = sse_events((await server.http.post("/agui", json=body)).text)
            assert events[-1]["type"] == "RUN_FINISHED", events[-1]

    assert provider.problems == []
    for record in script.sent:
        called = [c["id"] for m in record.messages for c in m.get("tool_calls", ())]
        answered = [m["tool_call_id"] for m in record.messages if m["role"] == "tool"]
        assert called == answered


async def test_an_overflow_is_answered_with_one_forced_compaction(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """OVF2: a provider whose real window is smaller refuses once, then takes the second try."""
    script = Scripted(provider, rounds=1)
    agent = agent_for(provider, 200_000)
    async with served(agent, valkey_url, prefix) as server:
        for n in range(1, 4):
            message = {"id": f"u{n}", "role": "user", "content": f"Round {n}"}
            await server.http.post("/agui", json=request("t", f"r{n}", message))
        refused = error(400, "maximum context length is 4096 tokens", "context_length_exceeded")
        plain, provider.script.answer = provider.script.answer, None
        provider.add(refused, Reply(text="now it fits"))
        message = {"id": "u9", "role": "user", "content": "Now the big one"}
        body = request("t", "r9", message, forwardedProps={"backscroll.snapshot": "never"})
        events = sse_events((await server.http.post("/agui", json=body)).text)
        provider.script.answer = plain
        calls = (await server.get("/console/api/threads/t/calls"))["calls"]
        call = await server.get(f"/console/api/threads/t/calls/{calls[-1]['call']}")
        stored = (await server.get("/console/api/threads/t/messages"))["messages"]

    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    assert [m["role"] for m in stored[-3:]] == ["assistant", "user", "assistant"]
    assert [a["status"] for a in call["attempts"]] == ["error", "ok"]
    first, second = (attempt["sent"]["tokens"] for attempt in call["attempts"])
    assert second < first and script.sent


CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


async def test_a_chinese_thread_is_compacted_before_any_refusal(
    valkey_url: str, prefix: str, provider: ScriptedProvider
) -> None:
    """i18n-01: a provider that counts one token a character, window 4,000, refuses nothing."""

    def count(body: Any) -> int:
        text = json.dumps(body.get("messages", []), ensure_ascii=False)
        cjk = len(CJK.findall(text))
        return cjk + (len(text) - cjk) // 4

    provider.configure(window=4_000, overflow="openai")
    provider.script.count = count
    provider.when(SUMMARISER, Reply(text="## 目标\n" + "用户想要记录每天的工作内容与决定。" * 6))
    provider.otherwise(Reply(text="好的，我已经记下来了，" + "请继续说明下一步的安排。" * 12))
    agent = agent_for(provider, 4_000, reserve_output=400)
    async with served(agent, valkey_url, prefix) as server:
        for n in range(1, 21):
            text = f"第{n}天：" + "今天我们讨论了数据库的迁移计划和界面的颜色。" * 12
            message = {"id": f"u{n}", "role": "user", "content": text}
            body = request("t", f"r{n}", message, forwardedProps={"backscroll.snapshot": "never"})
            events = sse_events((await server.http.post("/agui", json=body)).text)
            assert events[-1]["type"] == "RUN_FINISHED", events[-1]

    assert {record.status for record in provider.requests} == {200}
    assert any(FRAME in json.dumps(r.messages) for r in provider.requests)
