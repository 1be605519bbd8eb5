"""Tools that the page offers: called by the model, answered by a later request."""

from __future__ import annotations

from typing import Any

import pytest
from agui_checker import assert_valid
from backscroll.agui.options import AgentRules
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.tool import tool
from backscroll.store.keys import LOCAL_OWNER
from played_model import StreamingModel, call, calls, sent
from working import agent_of, asked, events, key, refused, run, until_ended, working

PICK = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
CONFIRM = {**PICK, "name": "confirm"}
OFFERED = [PICK, CONFIRM]
BATCH = calls(
    call("pick", {"of": "x"}), call("confirm", {"of": "y"}), call("add", {"a": 1, "b": 2})
)


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def answer(name: str, content: str, id: str = "", **more: Any) -> dict[str, Any]:
    """Return the message with which a page answers the call of a tool."""
    found = {"id": id or f"t_{name}", "role": "tool", "toolCallId": f"call_{name}"}
    return {**found, "content": content, **more}


def types(found: list[Any], *wanted: str) -> list[tuple[str, str]]:
    """Return the events of some types with the call they are about."""
    return [(e["type"], e["toolCallId"]) for e in found if e["type"] in wanted]


async def test_the_run_ends_with_what_waits(valkey_url: str, prefix: str) -> None:
    """tools-05, HITL10: all three are announced, only the server's has a result, two are named."""
    model = StreamingModel([BATCH])
    async with working(agent_of(model=model, tools=[add]), valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "go", tools=OFFERED)
        stored = await worker.history.stored(key(), 1, 9)

        assert_valid(await events(worker))
    ended = types(found, "TOOL_CALL_END")
    assert {call_id for _, call_id in ended} == {"call_pick", "call_confirm", "call_add"}
    assert types(found, "TOOL_CALL_RESULT") == [("TOOL_CALL_RESULT", "call_add")]
    assert found[-1]["outcome"] == {
        "type": "success",
        "pendingToolCallIds": ["call_pick", "call_confirm"],
    }
    assert [m.message.role for m in stored] == ["user", "assistant", "tool"]
    assert {spec.name for spec in model.requests[0].tools} == {"add", "pick", "confirm"}


@pytest.mark.parametrize("description", ["", " "])
async def test_a_tool_may_have_no_description(
    valkey_url: str, prefix: str, description: str
) -> None:
    """Pages need not describe their tools; the name stands for what is missing."""
    model = StreamingModel([calls(call("pick", {"of": "x"}))])
    async with working(agent_of(model=model), valkey_url, prefix) as worker:
        found = await run(worker, "t", "r", "go", tools=[{**PICK, "description": description}])

    assert found[-1]["outcome"]["pendingToolCallIds"] == ["call_pick"]
    assert model.requests[0].tools[0].description == "pick"


async def test_both_results_go_back_in_one_request(valkey_url: str, prefix: str) -> None:
    """tools-05, HITL10: three results, in call order, in one request; each once in the store."""
    model = StreamingModel([BATCH, "thanks"])
    async with working(agent_of(model=model, tools=[add]), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go", tools=OFFERED)
        both = answer("confirm", "yes"), answer("pick", "red")
        found = await run(worker, "t", "r2", "go", *both, tools=OFFERED)

        assert_valid(await events(worker))
    assert found[-1]["outcome"] == {"type": "success"}
    assert sent(model.requests[1])[2:] == ["tool: red", "tool: yes", "tool: 3"]
    echoed = [m["id"] for m in found[0]["input"]["messages"]]
    assert sorted(echoed) == ["t_confirm", "t_pick"]
    assert types(found, "TOOL_CALL_RESULT") == []


async def test_results_one_by_one(valkey_url: str, prefix: str) -> None:
    """The first one is kept and names what still waits; the second goes on."""
    model = StreamingModel([BATCH, "thanks"])
    async with working(agent_of(model=model, tools=[add]), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go", tools=OFFERED)
        first = await run(worker, "t", "r2", "go", answer("pick", "red"), tools=OFFERED)
        asked_before = len(model.requests)
        second = await run(worker, "t", "r3", "go", answer("confirm", ""), tools=OFFERED)

    assert first[-1]["outcome"]["pendingToolCallIds"] == ["call_confirm"]
    assert asked_before == 1 and second[-1]["outcome"] == {"type": "success"}
    empty = "The client carried out this step and returned no data."
    assert sent(model.requests[1])[2:] == ["tool: red", f"tool: {empty}", "tool: 3"]


async def test_a_result_with_an_error_is_a_result(valkey_url: str, prefix: str) -> None:
    """It settles the call and is marked in the store."""
    model = StreamingModel([calls(call("pick")), "a pity"])
    async with working(agent_of(model=model), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go", tools=OFFERED)
        found = await run(worker, "t", "r2", "go", answer("pick", "no", error="x"), tools=OFFERED)
        stored = await worker.history.by_ids(key(), ["t_pick"])

    assert found[-1]["outcome"] == {"type": "success"}
    assert stored[0].message.outcome == "error"


async def test_a_new_question_gives_pending_calls_up(valkey_url: str, prefix: str) -> None:
    """They are settled as abandoned before the question, and the turn works."""
    model = StreamingModel([BATCH, "fine"])
    async with working(agent_of(model=model, tools=[add]), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go", tools=OFFERED)
        found = await run(worker, "t", "r2", "go", "never mind")

        assert_valid(await events(worker))
    gone = "Not executed: this call was never approved or answered before the conversation went on."
    assert sent(model.requests[1])[2:] == [
        f"tool: {gone}",
        f"tool: {gone}",
        "tool: 3",
        "user: never mind",
    ]
    assert len(types(found, "TOOL_CALL_RESULT")) == 2


async def test_a_result_counts_once(valkey_url: str, prefix: str) -> None:
    """tools-07: the second one, with other content, is told that the call was answered."""
    model = StreamingModel([calls(call("pick")), "thanks"])
    async with working(agent_of(model=model), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go", tools=OFFERED)
        await run(worker, "t", "r2", "go", answer("pick", "red"), tools=OFFERED)
        again = asked("t", "r3", "go", answer("pick", "blue", "other"), tools=OFFERED)
        refusal = await refused(worker, again)
        stored = await worker.history.stored(key(), 1, 9)

    assert refusal.code == "already_answered" and refusal.details["messageId"] == "t_pick"
    assert [m.message.text for m in stored if m.message.role == "tool"] == ["red"]
    assert len(model.requests) == 2


async def test_two_tabs_answer_at_once(valkey_url: str, prefix: str) -> None:
    """tools-07: one run goes on, the other request is refused; one result is stored."""
    model = StreamingModel([calls(call("pick")), "thanks"])
    async with working(agent_of(model=model), valkey_url, prefix) as worker:
        await run(worker, "t", "r", "go", tools=OFFERED)
        both = [
            worker.registry.submit(
                LOCAL_OWNER, asked("t", f"r{n}", "go", answer("pick", f"{n}", f"t{n}"))
            )
            for n in (2, 3)
        ]
        outcomes = [await _outcome(each) for each in both]
        winner = 2 if outcomes[0] == "accepted" else 3
        await until_ended(worker, f"r{winner}")
        stored = await worker.history.stored(key(), 1, 9)

    assert sorted(outcomes)[0] == "accepted"
    assert sorted(outcomes)[1] in ("already_answered", "thread_busy")
    assert [m.message.text for m in stored if m.message.role == "tool"] == [str(winner)]


async def _outcome(submitted: Any) -> str:
    try:
        await submitted
    except RequestRefused as refusal:
        return refusal.code
    return "accepted"


async def test_a_continuation_offers_the_tools_of_its_request(valkey_url: str, prefix: str) -> None:
    """Those alone; a request that offers none goes on with those of the run that asked."""
    model = StreamingModel([calls(call("pick")), "one", calls(call("pick")), "two"])
    async with working(agent_of(model=model), valkey_url, prefix) as worker:
        for thread, tools in (("t1", [CONFIRM]), ("t2", [])):
            await run(worker, thread, f"r1-{thread}", "go", tools=OFFERED)
            result = answer("pick", "red")
            await run(worker, thread, f"r2-{thread}", "go", result, tools=tools)

    offered = [{spec.name for spec in request.tools} for request in model.requests]
    both = {"pick", "confirm"}
    assert offered == [both, {"confirm"}, both, both]


@pytest.mark.parametrize(
    ("offered", "code", "path"),
    [
        ([{**PICK, "name": "add"}], "duplicate_tool", "tools[0].name"),
        ([PICK, PICK], "duplicate_tool", "tools[1].name"),
        (
            [{**PICK, "parameters": {"type": "no such type"}}],
            "invalid_input",
            "tools[0].parameters",
        ),
    ],
)
async def test_tools_that_cannot_be_offered(
    valkey_url: str, prefix: str, offered: list[Any], code: str, path: str
) -> None:
    """tools-03: refused before a model is called, naming the tool and the path."""
    rules = AgentRules("a", tool_names=frozenset({"add"}))
    model = StreamingModel([])
    agent = agent_of(model=model, tools=[add])
    async with working(agent, valkey_url, prefix, agent_rules=rules) as worker:
        with pytest.raises(RequestRefused) as caught:
            await worker.registry.submit(LOCAL_OWNER, asked("t", "r", "go", tools=offered))

    assert (caught.value.code, model.requests) == (code, [])
    assert caught.value.details["problems"][0]["path"] == path
