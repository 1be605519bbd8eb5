"""Every rule by an example that it finds and one that it does not."""

from __future__ import annotations

import pytest
from backscroll.compaction.fact_rules import CLASSES, RULES, SHARES, FactRule
from hypothesis import given
from hypothesis import strategies as st

EXAMPLES: dict[tuple[str, str], tuple[list[str], list[str]]] = {
    ("update", "standing"): (
        [
            "The release branch is now B",
            "By the way, our port is now 8080.",
            "发布分支现在是 B",
            "负责人已改为李雷",
        ],
        ["It is nowhere to be found", "is now", "现在开始"],
    ),
    ("decision", "standing"): (
        ["We decided to use Redis", "Let's go with plan B.", "改用 Redis", "Change of plan: tea"],
        ["Which plan is better?", "改天再说"],
    ),
    ("constraint", "standing"): (
        [
            "You must ask first",
            "never touch C",
            "From now on, write tests",
            "Please don't push",
            "务必使用中文",
            "禁止直接推送",
        ],
        ["I like tea", "the mustard is here", "你好"],
    ),
    ("path", "argument"): (["src/queue.py", "README.md", "C:\\a\\b"], ["two words.txt", "main"]),
    ("command", "argument"): (["ls -la"], ["", "  "]),
    ("error", "result"): (
        ["ERROR db: gone", "ValueError: bad", "Traceback (most recent call last):", "写入失败"],
        ["no errors found", "Terror", "failed over to b"],
    ),
    ("value", "result"): (
        ["retries = 5", "Max pool size: 20", '"deploy_id":"dpl_7"', "端口：8080"],
        ["name = bob", "12:30:00 started", "just 5 words"],
    ),
    ("id", "result"): (
        ["dpl_7", "JIRA-123", "E4471", "1eb20109-a91c-2439-d5ab-8b4d15b40aeb", "commit 9fceb02"],
        ["defaced", "well-known", "1234567", "utf-8x/9"],
    ),
    ("port", "result"): (
        ["localhost:8080", "10.0.0.7:5432", "db.example.com:6379"],
        ["12:30", "note: 5", "a:1"],
    ),
    ("url", "result"): (["see https://a.example/b?c=1"], ["http://", "ftp://x"]),
    ("version", "result"): (["v1.2.3", "numpy 2.0.1"], ["1.2", "10.0.0.7.8"]),
    ("path", "result"): (["in src/a/b.py line 3", "./run.sh"], ["and/or", "https://a.b/c.html"]),
    ("tool_found", "writes"): (["get_weather"], ["two words"]),
}


def place(rule: FactRule) -> str:
    """Return what tells two rules of one name apart: the class, or where they look."""
    return rule.cls if rule.cls != "ledger" else next(iter(rule.sources))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{place(rule)}")
def test_finds_and_does_not_find(rule: FactRule) -> None:
    """FAC8: each rule has positive and negative examples."""
    positive, negative = EXAMPLES[rule.name, place(rule)]

    assert positive and negative
    assert [text for text in positive if not rule.pattern.search(text)] == []
    assert [text for text in negative if rule.pattern.search(text)] == []


SAID = (
    "now|NOW|The port is |是|变为|改成|现在是|ERROR|Error|Traceback|Exception|failed:"
    "|错误|失败|异常| |5"
).split("|")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.words], ids=lambda r: r.name)
@given(st.lists(st.sampled_from(SAID)).map("".join))
def test_no_hit_is_without_the_words(rule: FactRule, text: str) -> None:
    """Where none of its words is, a rule finds nothing, so the quick look loses no hit."""
    assert rule.may_hit(text) or not rule.pattern.search(text)


def test_a_text_without_the_words_is_not_searched() -> None:
    """The quick look tells most texts from those that may hold a hit; no words, no look."""
    rules = {rule.name: rule for rule in RULES}

    assert rules["error"].may_hit("a FATAL one") and not rules["error"].may_hit("all is well")
    assert rules["update"].may_hit("it is Now") and not rules["update"].may_hit("it is new")
    assert rules["id"].may_hit("")


def test_the_table_is_consistent() -> None:
    """Ledger rules have a share, shares add up, and nothing from tools is standing."""
    assert sum(SHARES.values()) == pytest.approx(1)
    for rule in RULES:
        assert rule.cls in CLASSES
        assert (rule.share in SHARES) == (rule.cls == "ledger")
        assert rule.cls != "standing" or not rule.sources & {"result", "argument", "writes"}


def test_argument_names() -> None:
    """FAC8: paths and commands are recognised by the names of arguments."""
    path, command = (rule for rule in RULES if "argument" in rule.sources)

    assert path.argument is not None and command.argument is not None
    for name in ("path", "file", "filename", "target", "output_path", "destination"):
        assert path.argument.fullmatch(name), name
    assert not path.argument.fullmatch("profile") and not path.argument.fullmatch("content")
    for name in ("command", "cmd", "script", "shell"):
        assert command.argument.fullmatch(name), name
