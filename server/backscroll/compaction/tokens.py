"""How many tokens things take: messages, tools, media; and the calibration by real answers."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from backscroll.compaction.canon_forms import Digests
from backscroll.compaction.exact import exact_counter
from backscroll.compaction.memo import Memo, ObjectMemo
from backscroll.compaction.pieces import PieceCounter
from backscroll.kernel.canon import canonical_json
from backscroll.kernel.content import FilePart, Part, TextPart
from backscroll.kernel.message import Blocks, Message
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import ToolSpec

MESSAGE_FRAME = 6
CALL_FRAME = 8
TOOL_FRAME = 8
CHARS_PER_OPAQUE_TOKEN = 3
FILE_TOKENS = 1_200
FILE_TOKENS_PER_KIB = 25

RATIO_MIN, RATIO_MAX = 0.7, 2.0
CALIBRATION_WEIGHT = 0.3
CALIBRATION_MIN_RAW = 2_000

# What the neutral message says as text and calls already, so it is not counted twice.
_READABLE_BLOCKS = ("text", "tool_use")


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """What reports call this counter."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens the text takes."""
        ...


class Sizes:
    """Raw sizes of what a request holds, remembered by digest; `under` fits it to a model.

    Without a counter, texts are counted exactly where the extra `tokens` is installed and the
    profile names its vocabulary, else by pieces. `media_tokens` maps a media type (`image/png`,
    `image/*`) to the tokens of one file. `counts` is a memory that several may share.
    """

    def __init__(
        self,
        counter: TokenCounter | None = None,
        media_tokens: Mapping[str, int] | None = None,
        digests: Digests | None = None,
        counts: Memo[int] | None = None,
    ) -> None:
        self._given = counter
        self._pieces = PieceCounter()
        self._media = dict(media_tokens or {})
        self._messages: Memo[int] = Memo() if counts is None else counts
        self._texts: Memo[int] = Memo(4_096)
        self._profile = ModelProfile()
        self._fitted: dict[tuple[str, str | None], Sizes] = {}
        self._objects: ObjectMemo[int] = ObjectMemo(self._by_digest)
        self.digests = digests or Digests()
        self.counter: TokenCounter = counter or self._pieces

    def under(self, profile: ModelProfile) -> Sizes:
        """Return the sizes for another model, with the same memory."""
        key = (profile.replay_reasoning, profile.vocabulary)
        if key not in self._fitted:
            self._fitted[key] = self._fit(profile)
        return self._fitted[key]

    def _fit(self, profile: ModelProfile) -> Sizes:
        other = copy.copy(self)
        other._profile = profile
        other._objects = ObjectMemo(other._by_digest)
        other.counter = self._given or exact_counter(profile.vocabulary) or self._pieces
        return other

    def text(self, text: str) -> int:
        """Return the tokens of a bare text."""
        return self.counter.count(text)

    def message(self, message: Message) -> int:
        """Return the tokens of a message as it is sent."""
        return self._objects.get(message)

    def _by_digest(self, message: Message) -> int:
        key = (self.digests.sent(message), self.counter.name, self._profile.replay_reasoning)
        return self._messages.get(
            key, lambda: estimate_message(message, self._profile, self.counter, self._media)
        )

    def messages(self, messages: Iterable[Message]) -> int:
        """Return the tokens of several messages."""
        return sum(map(self.message, messages))

    def system(self, text: str) -> int:
        """Return the tokens of a system text or a note."""
        return MESSAGE_FRAME + self._fixed(text)

    def tool(self, tool: ToolSpec) -> int:
        """Return the tokens of what a model is told about a tool."""
        schema = canonical_json(dict(tool.schema))
        return TOOL_FRAME + self._fixed(f"{tool.name}\n{tool.description}\n{schema}")

    def response_format(self, value: Mapping[str, Any] | None) -> int:
        """Return the tokens of a response format, 0 without one."""
        return self._fixed(canonical_json(dict(value))) if value else 0

    def _fixed(self, text: str) -> int:
        return self._texts.get((text, self.counter.name), lambda: self.counter.count(text))


def estimate_message(
    message: Message,
    profile: ModelProfile,
    counter: TokenCounter,
    media_tokens: Mapping[str, int] | None = None,
) -> int:
    """Return the raw tokens of a message as it is sent to this model."""
    content = message.for_model()
    total = MESSAGE_FRAME
    if isinstance(content, str):
        total += counter.count(content)
    else:
        total += sum(_part(part, counter, media_tokens or {}) for part in content or ())
    for call in message.tool_calls:
        total += CALL_FRAME + counter.count(call.name) + counter.count(call.args_text)
    if message.reasoning and _replays(message, profile):
        total += counter.count(message.reasoning)
    return total + _opaque(message.blocks)


def estimate(raw: int, ratio: float) -> int:
    """Return the calibrated estimate of a raw size."""
    # Rounded first: 1.1 * 10 must give 11 and not 12.
    return raw if ratio == 1.0 else math.ceil(round(raw * ratio, 6))


def calibrate(ratio: float, raw: int, reported: int) -> float:
    """Return the ratio after an answer; unchanged when the report cannot be used."""
    expected = ratio * raw
    if raw < CALIBRATION_MIN_RAW or not expected / 4 <= reported <= expected * 4:
        return ratio
    mixed = (1 - CALIBRATION_WEIGHT) * ratio + CALIBRATION_WEIGHT * reported / raw
    return max(RATIO_MIN, min(mixed, RATIO_MAX))


def _part(part: Part, counter: TokenCounter, media_tokens: Mapping[str, int]) -> int:
    if isinstance(part, TextPart):
        return counter.count(part.text)
    if isinstance(part, FilePart):
        return _file(part, media_tokens)
    return counter.count(canonical_json(part.data))


def _file(part: FilePart, media_tokens: Mapping[str, int]) -> int:
    major = part.media_type.split("/", 1)[0]
    given = media_tokens.get(part.media_type, media_tokens.get(f"{major}/*"))
    if given is not None:
        return given
    if major == "image" or part.data is None:
        return FILE_TOKENS
    size = len(part.data) * 3 // 4
    return max(FILE_TOKENS, -(-size * FILE_TOKENS_PER_KIB // 1_024))


def _replays(message: Message, profile: ModelProfile) -> bool:
    if profile.replay_reasoning == "tool_calls":
        return bool(message.tool_calls)
    return profile.replay_reasoning == "always"


def _opaque(blocks: Blocks | None) -> int:
    if blocks is None:
        return 0
    chars = sum(
        len(canonical_json(item))
        for item in blocks.data
        if not (isinstance(item, Mapping) and item.get("type") in _READABLE_BLOCKS)
    )
    return -(-chars // CHARS_PER_OPAQUE_TOKEN)
