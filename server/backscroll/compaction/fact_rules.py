"""The rules of the facts block, as data: what counts as a fact, in which class, how it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

FactClass = Literal["standing", "ledger", "other"]
Share = Literal["path", "error", "value", "id"]
Source = Literal["user", "assistant", "argument", "result", "writes"]
Printed = Literal["around", "operation", "start"]

CLASSES: tuple[FactClass, ...] = ("standing", "ledger", "other")
"""The classes in the order in which they are printed and hand on what they do not use."""

SHARES: dict[Share, float] = {"path": 0.40, "error": 0.20, "value": 0.25, "id": 0.15}
"""How the ledger is divided, in the order in which parts hand on what they do not use."""


@dataclass(frozen=True, slots=True)
class FactRule:
    """One rule: where it looks, what it finds, and how it prints.

    A group named `key` in the pattern makes newer entries of the rule replace older ones of equal
    key. `rank` 1 is the best. `argument` matches the names of the call arguments it reads.
    `printed` says what of a line is shown: up to `width` characters on either side of the hit,
    the first `width` characters, or what the tool did (`wrote`, `read`) and the hit. `rows` says
    that the rule also reads lines of logs and tables, and then at most two of one shape. Where
    there are `words`, in small letters, a text without any of them needs no search.
    """

    name: str
    cls: FactClass
    sources: frozenset[Source]
    pattern: re.Pattern[str]
    rank: int
    share: Share | None = None
    argument: re.Pattern[str] | None = None
    printed: Printed = "around"
    width: int = 32
    rows: bool = False
    words: tuple[str, ...] = ()

    def may_hit(self, text: str) -> bool:
        """Say whether there may be a hit in a text; quick, for most have none."""
        return not self.words or any(map(text.lower().__contains__, self.words))


def _any(*words: str) -> str:
    return "|".join(words)


def _pattern(text: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(text, flags)


_USER: frozenset[Source] = frozenset({"user"})
_SAID: frozenset[Source] = frozenset({"user", "assistant"})
_RESULT: frozenset[Source] = frozenset({"result"})
_ARGUMENT: frozenset[Source] = frozenset({"argument"})

_CHANGED = ("现在是", "现在为", "已改为", "已改成", "已变为", "变为", "变成")
_UPDATE = _pattern(
    r"(?:^|[,;:]\s*|\b(?:the|our|my|that|and|so|because)\s+)"
    r"(?P<key>\w[\w ./#'-]{0,60}?)\s+(?:is|are)\s+now\s+\S"
    r"|(?P<key_zh>[^\s，。；：、,;:]{1,30}?)\s*(?:" + _any(*_CHANGED) + r")\s*\S"
)
_CONSTRAINT = _pattern(
    r"\b(?:"
    + _any(
        "must",
        "never",
        "always",
        "only",
        "from now on",
        "do not",
        "don['’]t",
        "no longer",
        "prefer(?:s|red|ably)?",
        "avoid",
        "make sure",
        "be sure",
        "required?",
        "at most",
        "at least",
        "no more than",
        "should(?: not|n['’]t)?",
        "cannot",
        "under no circumstances",
    )
    + r")\b|"
    + _any("必须", "不要", "不得", "禁止", "务必", "以后", "从现在起", "只能", "永远", "总是")
    + "|"
    + _any("优先", "避免", "不能", "不许", "不可", "一律", "始终", "至少", "至多", "最多", "请勿")
)
_DECISION = _pattern(
    r"\b(?:"
    + _any(
        "decisions?",
        "decided?",
        r"(?:we(?:['’]ll| will)?|let['’]?s|i(?:['’]ll| will)?) (?:go|going) with",
        "agreed",
        "settled? on",
        "chang(?:e|ed) of plan",
        "switch(?:ed|ing)? (?:over )?to",
        "instead of",
        "chose(?:n)?",
        "approved",
    )
    + r")\b|"
    + _any("决定", "改为", "改成", "改用", "选定", "采用", "换成", "敲定", "定为", "商定")
)

_PATH_NAMES = _pattern(
    r"(?:.*_)?(?:paths?|files?|file_?names?|file_?paths?|targets?|dest(?:ination)?|dir(?:ectory)?)"
)
_COMMAND_NAMES = _pattern(r"(?:.*_)?(?:command|cmd|script|shell)")
_WHOLE_PATH = _pattern(r"\A(?P<key>[^\s<>|\"]*[./\\][^\s<>|\"]*)\Z")
_PATH_IN_TEXT = _pattern(
    r"(?<![\w/.:@-])(?P<key>(?:[~.]{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*\.[A-Za-z]\w{0,7})(?![\w/])"
)
_FAILURES = ("ERROR", "FATAL", "PANIC", "CRITICAL", "FAILED")
_FAILURES_TOLD = ("error", "fatal", "panic", "failed")
_RAISED = ("Traceback", "Error", "Exception")
_FAILURES_ZH = ("错误", "失败", "异常")
# Every branch begins with a letter, and looks back afterwards: that is what makes a search fast.
_ERROR = _pattern(
    _any(
        *(rf"{word}\b(?<!\w{word})" for word in _FAILURES),
        *(rf"{word}(?=:)(?<!\w{word})" for word in _FAILURES_TOLD),
        *(rf"{word}\b" for word in _RAISED),
        *_FAILURES_ZH,
    ),
    0,
)
_VALUE = _pattern(
    # The hit ends with the value: what a line says behind it is shown only in part.
    r"\A[\"']?[^\W\d][\w .()-]{0,48}[\"']?\s*[:=：]\s*(?=[^\n]{1,120}\Z)[^\n]{0,80}?\d[^\s,;]*"
)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HASH = r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}"
_PREFIXED = r"[A-Za-z]{2,12}[_-](?=\w*\d)[A-Za-z0-9]{1,40}"
_TICKET = r"[A-Z]{2,10}-\d{1,7}"
_CODE = r"E\d{3,6}|ERR_\w{2,40}"
_ID = _pattern(rf"(?<![\w/-])(?:{_UUID}|{_HASH}|{_TICKET}|{_CODE}|{_PREFIXED})(?![\w/])", 0)
_URL = _pattern(r"\bhttps?://[^\s\"'<>()]{3,120}")
_PORT = _pattern(
    r"(?<![\w.@/-])(?:localhost|(?:\d{1,3}\.){3}\d{1,3}|[a-z][\w-]*(?:\.[\w-]+)+|[a-z][\w-]+-[\w-]+)"
    r":\d{2,5}(?![\w:.])"
)
_VERSION = _pattern(r"(?<![\w.])v?\d{1,4}\.\d{1,4}\.\d{1,5}(?:[-+][\w.]{1,20})?(?![\w.])")

RULES: tuple[FactRule, ...] = (
    FactRule("update", "standing", _SAID, _UPDATE, 1, words=("now", *_CHANGED)),
    FactRule("decision", "standing", _SAID, _DECISION, 2),
    FactRule("constraint", "standing", _USER, _CONSTRAINT, 3),
    FactRule("path", "ledger", _ARGUMENT, _WHOLE_PATH, 1, "path", _PATH_NAMES, "operation"),
    FactRule(
        "command", "ledger", _ARGUMENT, _pattern(r"\S"), 2, "path", _COMMAND_NAMES, "start", 80
    ),
    FactRule(
        "error",
        "ledger",
        _RESULT,
        _ERROR,
        1,
        "error",
        width=80,
        rows=True,
        words=(*map(str.lower, (*_FAILURES, *_RAISED)), *_FAILURES_ZH),
    ),
    FactRule("value", "ledger", _RESULT, _VALUE, 2, "value"),
    FactRule("id", "ledger", _RESULT, _ID, 3, "id"),
    FactRule("port", "ledger", _RESULT, _PORT, 4, "id"),
    FactRule("url", "ledger", _RESULT, _URL, 5, "id"),
    FactRule("version", "ledger", _RESULT, _VERSION, 6, "id"),
    FactRule("path", "ledger", _RESULT, _PATH_IN_TEXT, 7, "path", printed="operation"),
    FactRule(
        "tool_found",
        "ledger",
        frozenset({"writes"}),
        _pattern(r"\A(?P<key>[A-Za-z0-9_-]{1,64})\Z"),
        8,
        "path",
    ),
)
"""The rules that a facts block is made with unless an application says otherwise."""
