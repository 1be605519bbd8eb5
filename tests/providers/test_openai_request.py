"""Chat completions bodies: the pure half of the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.kernel.message import (
    Blocks,
    Message,
    Role,
    assistant,
    tool_call,
    tool_result,
    user,
)
from backscroll.kernel.model import Cache, ModelOptions, ModelProfile, ModelRequest, Named
from backscroll.kernel.tool import ToolSpec
from backscroll.providers.openai_request import ENCODER, allows_strict, build_request, left_out
from providers.openai_bodies import ADD, CLOSED, CONFIG, build


def test_inner_fields_never_reach_the_wire() -> None:
    """MSG3, REQ8, OAI14: writes, origin, outcome, blocks and ids of messages stay here."""
    spoken = Message(
        Role.ASSISTANT,
        "t",
        "m1",
        origin="filter:x",
        blocks=Blocks("anthropic-content", ({"type": "thinking", "thinking": "deep"},), "a"),
    )
    result = tool_result("c1", "x", "r", outcome="error", writes={"slot": 1}, id="m2")
    asked = assistant(None, (tool_call("c1", "x"),))

    text = ENCODER.encode(
        ModelRequest((spoken, asked, result)), ModelProfile(), CONFIG, True
    ).decode()

    for word in ("writes", "slot", "origin", "outcome", "blocks", "deep", "m1", "m2", "texts"):
        assert word not in text


FULL = ModelRequest(
    (
        user("a"),
        user("b"),
        assistant(None, (tool_call("call_1", "add", {"a": 1}),)).replace(reasoning="R"),
        tool_result("call_1", "add", "1"),
        user("c"),
    ),
    ("be",),
    (ADD,),
    Named("add"),
    ModelOptions(max_output_tokens=9, seed=1, response_format={"type": "json_object"}),
)
PLAIN = ModelProfile(response_format="json_schema")


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"system_role": "developer"}, {"messages.0.role"}),
        ({"null_content": False}, {"messages.3.content"}),
        ({"tool_name_field": True}, {"messages.4.name"}),
        ({"call_id_style": "alnum9"}, {"messages.3.tool_calls.0.id", "messages.4.tool_call_id"}),
        ({"replay_reasoning": "always"}, {"messages.3.reasoning_content"}),
        (
            {"replay_reasoning": "always", "reasoning_field": "reasoning"},
            {"messages.3.reasoning"},
        ),
        ({"max_tokens_field": "max_completion_tokens"}, {"max_tokens", "max_completion_tokens"}),
        ({"stream_usage": False}, {"stream_options.include_usage"}),
        ({"response_format": "none"}, {"response_format.type"}),
        (
            {"json_object": False},
            {
                "response_format.type",
                "response_format.json_schema.name",
                "response_format.json_schema.schema.type",
            },
        ),
        (
            {"tool_choice": "words"},
            {"tool_choice", "tool_choice.type", "tool_choice.function.name"},
        ),
        ({"tool_choice": "none"}, {"tool_choice.type", "tool_choice.function.name"}),
        ({"strict_tools": True}, {"tools.0.function.strict"}),
        ({"option_names": {"seed": "random_seed"}}, {"seed", "random_seed"}),
        ({"option_names": {"seed": None}}, {"seed"}),
    ],
)
def test_a_profile_changes_exactly_its_field(change: dict[str, Any], keys: set[str]) -> None:
    """OAI11: a body under a changed profile differs in the named places and nowhere else."""
    before = places(build_request(FULL, PLAIN, CONFIG, True))
    after = places(build_request(FULL, replace(PLAIN, **change), CONFIG, True))

    assert {key for key, _ in before.items() ^ after.items()} == keys


def places(value: Any, path: str = "") -> dict[str, Any]:
    """Return each plain value of a body by its path."""
    if not isinstance(value, dict | list):
        return {path.lstrip("."): value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {k: v for key, item in items for k, v in places(item, f"{path}.{key}").items()}


def test_settings_have_one_order() -> None:
    """MOD5: the keys of a body come in the order of the specification, extra_body last."""
    options = ModelOptions(
        model="other", max_output_tokens=9, temperature=0, top_p=0.5, stop=("a",), seed=1,
        reasoning_effort="low", service_tier="flex", user="u", parallel_tool_calls=False,
        response_format={"type": "json_object"}, extra_body={"seed": 2, "z": None},
    )  # fmt: skip
    request = ModelRequest((user("q"),), tools=(ADD,), tool_choice="required", options=options)

    body = build_request(request, ModelProfile(response_format="json_schema"), CONFIG, True)

    assert list(body) == [
        "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens",
        "temperature", "top_p", "stop", "seed", "reasoning_effort", "response_format",
        "service_tier", "user", "stream", "stream_options", "z",
    ]  # fmt: skip
    assert (body["model"], body["seed"], body["z"]) == ("other", 2, None)


def test_what_is_not_given_is_not_sent() -> None:
    """A plain request holds model and messages and nothing else."""
    assert list(build(user("q"))) == ["model", "messages"]


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_token_limit_has_the_profiles_name(field: Any) -> None:
    """OAI11: `max_tokens` or `max_completion_tokens`, never both."""
    options = ModelOptions(max_output_tokens=5)

    body = build(user("q"), options=options, profile=ModelProfile(max_tokens_field=field))

    assert {k: v for k, v in body.items() if k.startswith("max")} == {field: 5}


def test_a_stream_asks_for_usage_where_the_profile_allows_it() -> None:
    """OAI11: without `stream_usage` there is no `stream_options`."""
    request = ModelRequest((user("q"),))

    with_it = build_request(request, ModelProfile(), CONFIG, True)
    without = build_request(request, ModelProfile(stream_usage=False), CONFIG, True)

    assert with_it["stream_options"] == {"include_usage": True}
    assert without["stream"] is True and "stream_options" not in without


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("required", "required"),
        (Named("add"), {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_a_tool_choice_goes_with_tools(choice: Any, expected: Any) -> None:
    """auto is not sent; required and a name are."""
    body = build(user("q"), tools=(ADD,), tool_choice=choice)

    assert body.get("tool_choice") == expected
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "add", "description": "Add numbers.", "parameters": CLOSED},
        }
    ]


def test_no_tools_means_neither_tools_nor_choice() -> None:
    """REQ2: with `none`, and without tools, neither goes out."""
    assert "tools" not in build(user("q"), tools=(ADD,), tool_choice="none")
    assert "tool_choice" not in build(user("q"), tool_choice="required")


def test_a_choice_that_is_not_offered_is_refused() -> None:
    """Naming a tool that is not there is an invalid request."""
    with pytest.raises(ModelError, match="expected an offered tool, got 'sub'") as raised:
        build(user("q"), tools=(ADD,), tool_choice=Named("sub"))

    assert raised.value.kind == "invalid_request"


@pytest.mark.parametrize(
    ("form", "choice", "expected", "names"),
    [
        ("words", "required", "required", ["add", "sub"]),
        ("words", Named("sub"), "required", ["sub"]),
        ("none", "required", None, ["add", "sub"]),
        ("none", Named("sub"), None, ["sub"]),
    ],
)
def test_a_tool_choice_takes_the_form_its_server_reads(
    form: Any, choice: Any, expected: Any, names: list[str]
) -> None:
    """OAI11: a name that cannot be said is said by offering that tool alone."""
    tools = (ADD, ToolSpec("sub", "d", CLOSED))

    body = build(user("q"), tools=tools, tool_choice=choice, profile=ModelProfile(tool_choice=form))

    assert body.get("tool_choice") == expected
    assert [tool["function"]["name"] for tool in body["tools"]] == names


def test_options_are_renamed_or_left_out() -> None:
    """OAI11: `option_names` changes those keys only; what is left out is told."""
    names = {"seed": "random_seed", "user": None, "stream_options": None}
    options = ModelOptions(seed=3, user="u", temperature=0.5, extra_body={"seed": 9})
    profile = ModelProfile(option_names=names)

    body = build(user("q"), options=options, profile=profile)

    assert list(body) == ["model", "messages", "temperature", "random_seed", "seed"]
    assert (body["random_seed"], body["seed"]) == (3, 9)
    assert left_out(options, profile) == ["user"]


def test_an_object_is_asked_for_by_schema_where_the_word_is_refused() -> None:
    """OAI11: without `json_object` any object is a schema; other formats stay as they are."""
    profile = ModelProfile(response_format="json_schema", json_object=False)

    def asked(value: Any) -> Any:
        options = ModelOptions(response_format=value)
        return build(user("q"), options=options, profile=profile)["response_format"]

    assert asked({"type": "json_object"}) == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}},
    }
    assert asked({"type": "text"}) == {"type": "text"}


def test_a_schema_without_a_type_is_an_object() -> None:
    """Servers demand the type that client tools often leave out."""
    body = build(user("q"), tools=(ToolSpec("t", "d", {}),))

    assert body["tools"][0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_strict_is_sent_where_the_schema_allows_it() -> None:
    """A closed schema is strict under such a profile, an open one is not."""
    open_one = ToolSpec("o", "d", {"type": "object", "properties": {"a": {}}})

    body = build(user("q"), tools=(ADD, open_one), profile=ModelProfile(strict_tools=True))

    assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None]
    assert allows_strict({"anyOf": [CLOSED, {"type": "string"}]})
    assert not allows_strict({"anyOf": [CLOSED, {"type": "object"}]})


@pytest.mark.parametrize(
    ("support", "kind", "is_sent"),
    [
        ("none", "json_object", False),
        ("none", "text", True),
        ("json_object", "json_object", True),
        ("json_object", "json_schema", False),
        ("json_schema", "json_schema", True),
    ],
)
def test_a_response_format_needs_support(support: Any, kind: str, is_sent: bool) -> None:
    """SO5: the format goes out only where the profile supports it."""
    options = ModelOptions(response_format={"type": kind})
    profile = ModelProfile(response_format=support)

    body = build(user("q"), options=options, profile=profile)

    assert ("response_format" in body) is is_sent
    assert ("response_format" in left_out(options, profile)) is not is_sent


def test_options_this_wire_does_not_know_are_left_out() -> None:
    """`top_k`, `thinking` and `cache` are named as left out and not sent."""
    options = ModelOptions(top_k=3, thinking={"type": "enabled"}, cache=Cache("system"))

    assert list(build(user("q"), options=options)) == ["model", "messages"]
    assert left_out(options, ModelProfile()) == ["top_k", "thinking", "cache"]


def test_the_models_defaults_are_below_the_request() -> None:
    """A request's option wins over the model's default."""
    config = replace(CONFIG, options=ModelOptions(temperature=1.0, top_p=0.3))
    request = ModelRequest((user("q"),), options=ModelOptions(temperature=0.0))

    body = build_request(request, ModelProfile(), config)

    assert (body["temperature"], body["top_p"]) == (0.0, 0.3)


def test_bytes_are_canonical_json() -> None:
    """i18n-03: UTF-8 as it is, no blanks; half a surrogate pair cannot leave."""
    body = ENCODER.encode(
        ModelRequest((user("你好 \ud83c\udf0d \ud83c"),)), ModelProfile(), CONFIG, False
    )

    text = body.decode()
    assert text == '{"model":"m","messages":[{"role":"user","content":"你好 🌍 \ufffd"}]}'
