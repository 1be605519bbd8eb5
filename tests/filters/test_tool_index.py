"""Tools are found by what they do, in any script."""

from __future__ import annotations

import pytest
from backscroll.filters.tool_index import KeywordIndex, RegexIndex
from backscroll.kernel.tool import ToolSpec
from hypothesis import given
from hypothesis import strategies as st

SHOP = {
    "get_weather": "查询城市天气",
    "create_ticket": "创建工单",
    "list_shops": "列出服装店",
}


def index(tools: dict[str, str]) -> KeywordIndex:
    """Return a keyword index of tools by name and description."""
    made = KeywordIndex()
    made.rebuild([ToolSpec(name, text, {}) for name, text in tools.items()])
    return made


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("天气", "get_weather"),
        ("工单创建", "create_ticket"),
        ("服装店在哪里", "list_shops"),
        ("ｗｅａｔｈｅｒ", "get_weather"),
        ("get weather", "get_weather"),
        ("店", "list_shops"),
    ],
)
def test_chinese_and_english(query: str, first: str) -> None:
    """TS1, i18n-02: the right tool comes first."""
    assert index(SHOP).search(query, 5)[0] == first


def test_splitting_and_partial_words() -> None:
    """TS2: camelCase is split, a beginning is enough, the limit holds."""
    made = index({"listFiles": "List", "get_weather": "Weather", "get_news": "News"})

    assert made.search("files", 5) == ["listFiles"]
    assert made.search("get", 5) == ["get_news", "get_weather"]
    assert made.search("get", 1) == ["get_news"]
    assert made.search("weath", 5) == ["get_weather"]
    assert made.search("weathers", 5) == ["get_weather"]
    assert made.search("ge", 5) == made.search("??", 5) == made.search("", 5) == []


def test_rare_words_count() -> None:
    """TS3: a word that all share finds nothing beside a rare one, and all of them alone."""
    tools = {f"query_{word}": f"Query {word}" for word in "abcdefg"} | {"query_weather": "Query it"}
    made = index(tools)

    assert made.search("query weather", 5) == ["query_weather"]
    assert len(made.search("query", 5)) == 5
    assert index({"only": "the only tool"}).search("only", 5) == ["only"]


def test_names_count_twice() -> None:
    """A word in the name counts more than one in the description."""
    made = index({"a_ship": "x", "other": "ship", "third": "y"})

    assert made.search("ship", 5) == ["a_ship", "other"]


@given(st.dictionaries(st.text("abc_", min_size=1, max_size=6), st.text(max_size=12)), st.text())
def test_any_query(tools: dict[str, str], query: str) -> None:
    """No query fails; what is found is there, once, and at most as many as asked for."""
    found = index(tools).search(query, 3)

    assert len(found) <= 3
    assert len(set(found)) == len(found)
    assert set(found) <= set(tools)
    assert index(dict(reversed(tools.items()))).search(query, 3) == found


def test_patterns_of_names() -> None:
    """TS4: in the order of the catalog; what is no pattern is taken as it is."""
    made = RegexIndex()
    made.rebuild([ToolSpec(name, "", {}) for name in ("get_weather", "list", "get_news")])

    assert made.search("GET_.*", 5) == ["get_weather", "get_news"]
    assert made.search("get_.*", 1) == ["get_weather"]
    assert made.search("get_weather[", 5) == made.search(" ", 5) == []
