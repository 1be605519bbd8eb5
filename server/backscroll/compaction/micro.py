"""How messages are shortened: caps at first sight, and placeholders before the watermark."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from backscroll.compaction.canon_forms import reference_text
from backscroll.compaction.fact_lines import (
    SALIENT_LINES,
    SALIENT_WIDTH,
    ResultReader,
    Salient,
    salient_lines,
)
from backscroll.compaction.groups import Group
from backscroll.compaction.memo import Memo
from backscroll.compaction.settings import Limits
from backscroll.compaction.shorten import fit_lines, take_ends
from backscroll.compaction.stubs import MAX_SHARE, stub_call, stub_media
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import MESSAGE_FRAME, Sizes
from backscroll.kernel.content import Content, TextPart, text_of
from backscroll.kernel.message import Message, Role
from backscroll.kernel.request import Fate

LEVEL_MIN = 120
_SALIENT_PART = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """How one message of the history is sent: the message, its fate, and the reason."""

    message: Message
    fate: Fate = "kept"
    why: str = ""


class Shaper:
    """Shortens messages; equal messages, references and limits give equal bytes, remembered.

    `exclude` are names of tools whose results are never shortened. Messages that must keep their
    bytes for another reason (pinned, the newest user message) are not handed in.
    """

    def __init__(
        self,
        sizes: Sizes,
        texts: CompactionTexts | None = None,
        results: ResultReader | None = None,
        exclude: Collection[str] = frozenset(),
    ) -> None:
        self._sizes = sizes
        self._texts = texts or CompactionTexts()
        self._results = results or ResultReader()
        self._exclude = frozenset(exclude)
        self._made: Memo[Message] = Memo(20_000)

    def under(self, sizes: Sizes) -> Shaper:
        """Return the shaper for another model, with the same memory."""
        other = copy.copy(self)
        other._sizes = sizes
        return other

    def capped(
        self, messages: Sequence[Message], refs: Sequence[int | None], limits: Limits
    ) -> tuple[Shape, ...]:
        """Return the messages of one group with caps on its results and arguments (step 0).

        Results share `group_cap`: sizes are levelled down from the largest until the sum fits.
        """
        level = self._level(messages, limits)
        return tuple(
            self._capped(message, ref, level, limits)
            for message, ref in zip(messages, refs, strict=True)
        )

    def shortened(self, message: Message, ref: int | None, limits: Limits) -> Shape:
        """Return a message as it stands before the watermark (step 1)."""
        if message.role is Role.TOOL and message.name not in self._exclude:
            made = self._remember(
                "placeholder", message, ref, limits.placeholder_min, self._stand_in
            )
        elif message.role is Role.ASSISTANT:
            made = self._remember("args", message, ref, limits.args_cap, self._stubbed_args)
        elif message.role is Role.USER and isinstance(message.for_model(), tuple):
            made = self._remember("media", message, ref, 0, self._stubbed_media)
        else:
            made = message
        return Shape(message) if made is message else Shape(made, "placeholder", "before the mark")

    def cut(self, message: Message, ref: int | None, allowed: int) -> Shape:
        """Return a message of any role with its text cut to `allowed` tokens; files stay.

        A message with `blocks` is returned as it is.
        """
        made = self._remember("cut", message, ref, allowed, self._cut)
        why = f"larger than {allowed} tokens"
        return Shape(message) if made is message else Shape(made, "truncated", why)

    def _capped(self, message: Message, ref: int | None, level: int, limits: Limits) -> Shape:
        if message.role is Role.ASSISTANT:
            made = self._remember("args", message, ref, limits.group_cap, self._stubbed_args)
            why = f"arguments above the cap of {limits.group_cap} tokens"
            return Shape(message) if made is message else Shape(made, "truncated", why)
        if message.role is Role.TOOL and message.name not in self._exclude:
            return self.cut(message, ref, level)
        return Shape(message)

    def _level(self, messages: Sequence[Message], limits: Limits) -> int:
        """Return the size that results are cut to, so that their sum fits the group's cap."""
        results = [m for m in messages if m.role is Role.TOOL]
        if sum(map(self._body, results)) <= min(limits.group_cap, limits.tool_cap):
            return limits.tool_cap
        free = [m for m in results if m.name not in self._exclude]
        fixed = sum(map(self._body, results)) - sum(map(self._body, free))
        room = limits.group_cap - fixed
        rising = sorted(min(self._body(m), limits.tool_cap) for m in free)
        for done, size in enumerate(rising):
            if size * (len(rising) - done) > room:
                return max(LEVEL_MIN, room // (len(rising) - done))
            room -= size
        return limits.tool_cap

    def _body(self, message: Message) -> int:
        return self._sizes.message(message) - MESSAGE_FRAME

    def _remember(
        self,
        kind: str,
        message: Message,
        ref: int | None,
        number: int,
        make: Callable[[Message, int | None, int], Message],
    ) -> Message:
        """Return what was made of a message; the message itself where nothing changed."""
        # Most messages are small, and then nothing has to be looked up.
        if self._body(message) <= number:
            return message
        digest = self._sizes.digests.sent(message)
        key = (kind, digest, message.id, ref, number, self._sizes.counter.name)
        made = self._made.get(key, lambda: make(message, ref, number))
        return message if self._sizes.digests.sent(made) == digest else made

    def _stand_in(self, message: Message, ref: int | None, least: int) -> Message:
        """Put a placeholder with salient lines in place of a result."""
        full = self._body(message)
        body = text_of(message.for_model())
        if full <= least or self._is_placeholder(message, ref, body):
            return message
        head = self._fill("placeholder", ref, name=message.name or "tool", tokens=full)
        room = int(MAX_SHARE * full) - self._sizes.text(head) - 1
        if room < 0:
            return message
        lines = fit_lines(self._lines(body), room, self._sizes.counter)
        return _with(message, "\n".join([head, *(line.text for line in lines)]))

    def _is_placeholder(self, message: Message, ref: int | None, body: str) -> bool:
        """Say whether a body is what `_stand_in` writes for this message; a tool may imitate it."""
        first, _, rest = body.partition("\n")
        name = message.name or "tool"
        before, _, after = self._fill("placeholder", ref, name=name, tokens="\0").partition("\0")
        size = first.removeprefix(before).removesuffix(after)
        if first != f"{before}{size}{after}" or not size.isdigit():
            return False
        lines = rest.split("\n") if rest else []
        return len(lines) <= SALIENT_LINES and max(map(len, lines), default=0) <= SALIENT_WIDTH

    def _stubbed_args(self, message: Message, ref: int | None, cap: int) -> Message:
        tokens = sum(self._sizes.text(call.args_text) for call in message.tool_calls)
        if message.blocks is not None or tokens <= cap:
            return message
        calls = (stub_call(c, ref, self._texts, self._sizes.counter) for c in message.tool_calls)
        return message.replace(tool_calls=tuple(calls))

    def _stubbed_media(self, message: Message, ref: int | None, _: int) -> Message:
        return _with(message, stub_media(message.for_model(), ref, self._texts))

    def _cut(self, message: Message, ref: int | None, allowed: int) -> Message:
        """Cut the text of a message; what else it holds stays behind it."""
        content = message.for_model()
        text = text_of(content)
        is_bare = isinstance(content, str) and not message.tool_calls and not message.reasoning
        full = self._body(message) if is_bare else self._sizes.text(text)
        if full <= allowed or message.blocks is not None:
            return message
        cut = self._cut_text(text, full, ref, allowed)
        if isinstance(content, tuple):
            media = (part for part in content if not isinstance(part, TextPart))
            return _with(message, (TextPart(cut), *media))
        return _with(message, cut)

    def _cut_text(self, text: str, full: int, ref: int | None, allowed: int) -> str:
        counter = self._sizes.counter
        marker = self._fill("capped", ref, tokens=full)
        found = self._lines(text)
        for room in range(allowed - counter.count(marker) - 2, 0, -max(1, allowed // 10)):
            lines = fit_lines(found, room // _SALIENT_PART, counter)
            ends = take_ends(text, room - sum(counter.count(x.text) + 1 for x in lines), counter)
            shown = [line.text for line in lines if line.text not in ends.head + ends.tail]
            out = "\n".join([ends.head, marker, *shown, ends.tail])
            if counter.count(out) <= allowed and len(out) < len(text):
                return out
        lines = fit_lines(found, allowed - counter.count(marker), counter)
        out = "\n".join([marker, *(line.text for line in lines)])
        return out if counter.count(out) < full and len(out) < len(text) else text

    def _lines(self, body: str) -> tuple[Salient, ...]:
        return salient_lines(self._results.best(body))

    def _fill(self, key: str, ref: int | None, /, **values: object) -> str:
        return self._texts.fill(key, ref=reference_text(ref), **values)


def watermark(history: Sequence[Message], groups: Sequence[Group], keep: int) -> int:
    """Return the candidate: the start of the `keep`-th newest group with tool results."""
    starts = [group.start for group in groups if group.results]
    if keep <= 0:
        return len(history)
    return starts[-keep] if len(starts) >= keep else 0


def watermark_pays(before: int, after: int, limits: Limits) -> bool:
    """Say whether moving the watermark is worth the change; both are estimates of the view."""
    enough = before - after >= limits.micro_min_gain
    return enough or (before > limits.trigger and after <= limits.micro_goal)


def _with(message: Message, content: Content) -> Message:
    return message.replace(content=content, model_content=None, rewritten_by=())
