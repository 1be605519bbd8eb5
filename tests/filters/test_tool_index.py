"""Tools are found by what they do, in any script."""

from __future__ import annotations

import math
import time
from itertools import pairwise

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


WORDS = ["red", "blue", "green", "black"]
CATALOG = st.dictionaries(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True).map("_".join),
    st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
    min_size=1,
)


@given(CATALOG, st.lists(st.sampled_from([*WORDS, "plum"]), min_size=1, max_size=3, unique=True))
def test_scores_as_they_are_defined(tools: dict[str, str], asked: list[str]) -> None:
    """TS3: rare words count more, twice in a name; words all tools share count only alone."""
    has = {name: ({*name.split("_")}, {*text.split()}) for name, text in tools.items()}
    used = {w: sum(w in a | b for a, b in has.values()) for w in asked}
    idf = {w: math.log((len(tools) + 1) / (n + 1)) for w, n in used.items() if n}
    if not any(idf.values()):
        idf = dict.fromkeys(idf, 1.0)
    score = {
        name: sum(idf[w] * (2 * (w in in_name) + (w in in_text)) for w in idf)
        for name, (in_name, in_text) in has.items()
    }

    found = index(tools).search(" ".join(asked), 99)

    assert set(found) == {name for name, value in score.items() if value > 0}
    for before, after in pairwise(found):
        assert score[before] > score[after] - 1e-9
        assert score[before] > score[after] + 1e-9 or before < after


def test_patterns_of_names() -> None:
    """TS4: in the order of the catalog; what is no pattern is taken as it is."""
    made = RegexIndex()
    made.rebuild([ToolSpec(name, "", {}) for name in ("get_weather", "list", "get_news")])

    assert made.search("GET_.*", 5) == ["get_weather", "get_news"]
    assert made.search("get_.*", 1) == ["get_weather"]
    assert made.search("get_weather[", 5) == made.search(" ", 5) == []
    assert made.search("(?=get)", 5) == made.search("weather)(get", 5) == []


def test_a_pattern_that_backtracks_costs_nothing() -> None:
    """TS4: a model may ask with any pattern; the answer comes at once."""
    made = RegexIndex()
    made.rebuild([ToolSpec("a" * 28 + "_b", "", {})])
    began = time.process_time()

    assert made.search("^(a+)+$", 5) == []
    assert time.process_time() - began < 1
