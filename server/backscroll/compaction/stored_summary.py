"""A summary that was written back into the history: how it is made, sent, and read again."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from backscroll.compaction.canon_forms import SUMMARY_ORIGIN
from backscroll.compaction.summary_text import summary_message
from backscroll.compaction.texts import CompactionTexts
from backscroll.kernel.message import Message, Role


def is_stored_summary(message: Message) -> bool:
    """Say whether a message of the history stands for others that were there before."""
    return message.origin == SUMMARY_ORIGIN and message.role is Role.ASSISTANT


def stored_summary(
    summary: str, last_ref: int | None, message_id: str, texts: CompactionTexts
) -> Message:
    """Return the message to store for a summary; no user said it, so it is no user message."""
    framed = summary_message(summary, last_ref, texts)
    return framed.replace(role=Role.ASSISTANT, id=message_id)


def as_sent(message: Message) -> Message:
    """Return a stored summary as a view sends it: with the authority of a user's words."""
    return message.replace(role=Role.USER)


def core_of(message: Message, texts: CompactionTexts) -> str:
    """Return the core of a stored summary; of one in another frame, all but its facts."""
    start, end = (_pattern(part) for part in texts.summary_frame.split("{core}", 1))
    found = re.match(f"{start}(?P<core>.*){end}", message.text, re.DOTALL)
    if found is not None:
        return found["core"]
    return re.sub(r"\n<facts>\n.*?\n</facts>", "", message.text, flags=re.DOTALL).strip()


def compacted_history(
    history: Sequence[Message], prefix_n: int, kept: Collection[int], summary: Message
) -> tuple[Message, ...]:
    """Return the history with a summary in place of the last message it stands for.

    What is kept of the prefix stays where it is, and everything behind the prefix too.
    """
    covered = [index for index in range(prefix_n) if index not in kept]
    last = covered[-1] if covered else -1
    out: list[Message] = []
    for index, message in enumerate(history):
        if index == last:
            out.append(summary)
        elif index >= prefix_n or index in kept:
            out.append(message)
    return tuple(out)


def _pattern(template: str) -> str:
    """Return a pattern for a piece of a frame, whatever its placeholders were filled with."""
    return "(?:.*?)".join(map(re.escape, re.split(r"\{[^{}]*\}", template)))
