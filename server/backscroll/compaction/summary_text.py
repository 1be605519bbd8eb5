"""The messages that stand for what a view leaves out: the summary and the digest."""

from __future__ import annotations

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN, reference_text
from backscroll.compaction.tags import escape_tags
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.message import Message, Role

_OPEN, _CLOSE = "<facts>", "</facts>"


def join_summary(core: str, facts: str) -> str:
    """Return what a cache holds: the core, and the facts between two tag lines of their own."""
    return f"{escape_tags(core)}\n{_OPEN}\n{escape_tags(facts)}\n{_CLOSE}"


def split_summary(summary: str) -> tuple[str, str]:
    """Return core and facts; a summary of another writer, without the tag lines, is all core."""
    head, tag, tail = summary.partition(f"\n{_OPEN}\n")
    if not tag or not tail.endswith(_CLOSE):
        return summary, ""
    return head, tail.removesuffix(_CLOSE).removesuffix("\n")


def summary_message(
    summary: str, last_ref: int | None, texts: CompactionTexts, recall: bool = False
) -> Message:
    """Return the one message that stands for everything up to `#last_ref`."""
    core, facts = split_summary(summary)
    text = texts.summary_frame.format(
        n=reference_text(last_ref),
        core=escape_tags(core),
        facts=escape_tags(facts),
        recall=texts.recall_hint if recall else "",
    )
    return Message(Role.USER, text, origin=SUMMARY_ORIGIN)


def digest_message(
    span: tuple[int | None, int | None],
    count: int,
    tokens: int,
    facts: str,
    texts: CompactionTexts,
    recall: bool = False,
) -> Message:
    """Return the message that says what was left out without a summary; sizes are raw."""
    first, last = map(reference_text, span)
    names = {
        "count": count,
        "from": first,
        "to": last,
        "tokens": tokens,
        "facts": escape_tags(facts),
        "recall": texts.recall_hint if recall else "",
    }
    return Message(Role.USER, texts.digest_frame.format(**names), origin=SUMMARY_ORIGIN)
