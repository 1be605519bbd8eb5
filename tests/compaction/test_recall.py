"""The tool that looks up earlier messages."""

from __future__ import annotations

import time
from typing import Any

from backscroll.compaction.recall import Recall
from backscroll.compaction.recalled import Piece, pieces_in, whole_text
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes
from backscroll.conversation.memory import InMemoryChatMemory
from backscroll.kernel.message import Message, system, tool_result
from backscroll.kernel.tool import ToolContext
from compaction.histories import a, t, u
from compaction.planning import MEANS, prose, talk

TEXTS = CompactionTexts()


def recall() -> Recall:
    """Return a fresh one."""
    return Recall(Sizes(), TEXTS)


def texts_of(history: list[Message], line: str) -> list[str]:
    """Return the texts that a line names."""
    refs = {m.id: n for n, m in enumerate(history, 1)}
    by_id = {m.id: m for m in history}
    return [
        whole_text(by_id[p.message_id], refs[p.message_id])[p.start : p.end]
        for p in pieces_in(line)
    ]


def context(conversation: str = "t", message: str = "a1") -> ToolContext:
    """Return what a tool is told of its call."""
    return ToolContext({"conversation_id": conversation}, call_id="c1", message_id=message)


def test_a_reference_gives_the_message_whole() -> None:
    """RCL1: with its role, number and calls."""
    history = [u(1), a(2, None, "c1", path="src/a.py"), t(3, "c1", "deploy_id = dpl_7")]
    line = recall().look_up(history, "#3", None)
    assert line.startswith("[recalled #3, part 1 of 1;")
    assert texts_of(history, line) == ["[#3 tool read] deploy_id = dpl_7"]


def test_a_range_gives_its_messages_in_order() -> None:
    """Up to eight; with or without the sign."""
    history = talk(6)
    assert len(texts_of(history, recall().look_up(history, "#2-#4", None))) == 3
    assert len(texts_of(history, recall().look_up(history, "2 - 9", None))) == 8
    assert "Nothing found for #2-#10." == recall().look_up(history, "#2-#10", None)


def test_a_long_message_comes_in_parts() -> None:
    """RCL2: at most 2,000 tokens each, and together the whole text."""
    history = [a(1, None, "c1"), t(2, "c1", "BEGIN " + prose(5_000) + " END")]
    lines = [recall().look_up(history, "#2", None, part) for part in (1, 2, 3)]
    assert lines[1].startswith("[recalled #2, part 2 of 3;")
    found = [text for line in lines for text in texts_of(history, line)]
    assert max(map(MEANS.sizes.text, found)) <= 2_000
    assert "".join(found) == whole_text(history[1], 2)
    assert recall().look_up(history, "#2", None, 4) == "Nothing found for #2."


def test_words_find_what_holds_them() -> None:
    """RCL1: in English and in Chinese; rare words count more, the newest of equals comes first."""
    history = [
        u(1, "the staging gateway is slow"),
        u(2, "the database is fine"),
        u(3, "我们决定改用消息队列"),
        u(4, "the gateway, again"),
        *talk(9),
    ]
    assert texts_of(history, recall().look_up(history, None, "gateway"))[:2] == [
        "[#4 user] the gateway, again",
        "[#1 user] the staging gateway is slow",
    ]
    assert "消息队列" in texts_of(history, recall().look_up(history, None, "消息队列"))[0]
    staging = texts_of(history, recall().look_up(history, None, "staging gateway"))
    assert staging[0].startswith("[#1 user]")


def test_an_exact_identifier_outranks_everything() -> None:
    """RCL1: the value of a summarised result is found by it."""
    log = "\n".join(f"row {n}: request fine" for n in range(400))
    history = [
        a(0, None, "c1"),
        t(1, "c1", f"{log}\ndeploy_id = dpl_7f3\n{log}"),
        *[u(n, "deploy id of the deploy, please: which deploy id is it?") for n in range(2, 9)],
    ]
    line = recall().look_up(history, None, "deploy id dpl_7f3")
    assert "dpl_7f3" in texts_of(history, line)[0]
    assert len(pieces_in(line)) == 5
    total = sum(map(MEANS.sizes.text, texts_of(history, line)))
    assert total <= 2_000


def test_what_cannot_be_found_gets_a_sentence() -> None:
    """RCL4: beyond the end, malformed, another thread's, or nothing and both given."""
    history = [system("secret rules", "s1"), u(2, "hello")]
    look = recall().look_up
    for ref in ("#99", "#0", "#5-#2", "twelve", "#1", ""):
        assert look(history, ref, None).startswith("Nothing found for ")
    assert look(history, None, "secret") == 'Nothing found for "secret".'
    assert look(history, None, "zzz") == 'Nothing found for "zzz".'
    assert look(history, "#2", "hello").startswith("Nothing found")
    assert look([], "#1", None).startswith("Nothing found")


def test_what_repair_made_up_or_left_out_has_no_number() -> None:
    """References are those of the views."""
    history = [u(1), t(2, "orphan"), a(3, None, "c1"), u(4, "here")]
    assert texts_of(
        [history[0], history[2], history[3]], recall().look_up(history, "#3", None)
    ) == ["[#3 user] here"]


def test_three_results_a_turn_and_no_fourth() -> None:
    """RCL2: also over the calls of one batch; a miss does not count, a new question does."""
    history = [u(n, f"number {n}") for n in range(1, 9)]
    looks = recall()

    def ask(ref: str, message: str = "a1", then: list[Message] = history) -> str:
        return looks.answer(then, {"ref": ref}, context(message=message))

    assert ask("#99").startswith("Nothing")
    assert [ask(f"#{n}")[:4] for n in (1, 2, 3)] == ["[rec"] * 3
    assert ask("#4").startswith("The limit of 3 look-ups")
    assert looks.answer(history, {"ref": "#1"}, context("other")).startswith("[rec")

    stored = [tool_result(f"c{n}", "recall", ask_line(n), id=f"r{n}") for n in (1, 2, 3)]
    asking = [a(50, None, "c1", "c2", "c3"), *stored]
    assert ask("#4", "a2", [*history, *asking]).startswith("The limit")
    assert ask("#4", "a3", [*history, *asking, u(60, "next")]).startswith("[rec")


def ask_line(n: int) -> str:
    """Return the line of a look-up that found something."""
    return f"[recalled #{n}]\n{Piece(f'm{n}', 0, 9)}"


async def test_the_tool_reads_its_own_conversation() -> None:
    """RCL4: of the memory it is bound to."""
    memory = InMemoryChatMemory()
    await memory.add("t", [u(1, "mine")])
    await memory.add("other", [u(2, "theirs")])
    tool = recall().tool(memory)
    assert (tool.name, tool.info.serial) == ("recall", True)
    args: Any = tool.check({"query": "mine theirs"})
    assert tool.body is not None
    line = await tool.body(args, context())
    assert [piece.message_id for piece in pieces_in(line)] == ["m1"]
    assert args["part"] == 1


def test_only_the_conversations_used_last_are_counted(monkeypatch: Any) -> None:
    """What is remembered has a bound."""
    monkeypatch.setattr("backscroll.compaction.recall.REMEMBERED", 1)
    looks, history = recall(), [u(1, "x")]
    for name in ("a", "b"):
        looks.answer(history, {"ref": "#1"}, context(name))
    assert list(looks._batches) == ["b"]


def test_ten_thousand_messages_are_searched_in_a_moment() -> None:
    """RCL6: once they were cut into words."""
    history = [u(n, f"message {n} about topic {n % 97}") for n in range(10_000)]
    looks = recall()
    looks.look_up(history, None, "topic 41")
    began = time.process_time()
    line = looks.look_up(history, None, "topic 41")
    assert time.process_time() - began < 0.6
    assert len(pieces_in(line)) == 5
