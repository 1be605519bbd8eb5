"""The summary and the digest as messages, with one real pair of tags each."""

from __future__ import annotations

import re

from backscroll.compaction.summary_text import (
    digest_message,
    join_summary,
    split_summary,
    summary_message,
)
from backscroll.compaction.tags import RESERVED
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.message import Role
from hypothesis import given
from hypothesis import strategies as st

TEXTS = CompactionTexts()
TAGGED = st.text("ab \n").flatmap(
    lambda text: st.sampled_from(RESERVED).flatmap(
        lambda tag: st.sampled_from(
            [text, f"{text}<{tag}>", f"</{tag.upper()}>{text}", f"< / {tag} x>", f"{text}\n<{tag}>"]
        )
    )
)


def test_core_and_facts_come_back() -> None:
    """What a cache holds is core and facts; the frame is not in it."""
    summary = join_summary("## Goal\n- x", "- must (#1)\n- never (#2)")
    assert split_summary(summary) == ("## Goal\n- x", "- must (#1)\n- never (#2)")
    assert "earlier-conversation" not in summary


def test_a_summary_of_another_writer_is_all_core() -> None:
    """Without the tag lines nothing is taken for facts."""
    for text in ("just text", "text\n<facts>\nopen end", "<facts>\nx\n</facts>"):
        assert split_summary(text) == (text, "")


def test_the_summary_is_a_framed_user_message() -> None:
    """SUM9: role user, marked as ours, and the frame says it is a record."""
    message = summary_message(join_summary("CORE", "FACTS"), 170, TEXTS)
    assert (message.role, message.origin, message.id) == (Role.USER, "filter:compaction", None)
    assert "messages #1 to #170" in message.text
    assert message.text.index("CORE") < message.text.index("FACTS")
    assert "recall" not in message.text
    assert "recall" in summary_message("x", 1, TEXTS, recall=True).text


def test_the_digest_names_count_range_and_size() -> None:
    """It is labelled as what was left out, never as a summary."""
    message = digest_message((3, 40), 38, 12_345, "- must (#1)", TEXTS)
    assert "38 earlier messages (#3 to #40, about 12345 tokens) are left out" in message.text
    assert "there is no summary of them" in message.text
    assert "(#- to #-" in digest_message((None, None), 1, 5, "", TEXTS).text


@given(TAGGED, TAGGED)
def test_there_is_one_real_pair_of_each_tag(core: str, facts: str) -> None:
    """SUM7: tags inside core and facts, in any case, are not ours."""
    text = summary_message(join_summary(core, facts), 9, TEXTS).text
    for tag in ("earlier-conversation", "facts"):
        assert len(re.findall(rf"<\s*{tag}\b", text, re.IGNORECASE)) == 1
        assert len(re.findall(rf"<[\s/]*/\s*{tag}\b", text, re.IGNORECASE)) == 1


@given(TAGGED)
def test_an_unescaped_summary_is_escaped_when_it_is_shown(core: str) -> None:
    """SUM7: also one that another writer stored."""
    text = summary_message(core, 9, TEXTS).text
    assert len(re.findall(r"<[\s/]*earlier-conversation\b", text, re.IGNORECASE)) == 2
