"""Content of messages between our shape and AG-UI's: text, or a list of parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ag_ui import core as ag
from pydantic import TypeAdapter

from backscroll.kernel.canon import clean_text
from backscroll.kernel.content import Content, FilePart, Part, TextPart

MediaPart = ag.ImagePart | ag.AudioPart | ag.VideoPart | ag.DocumentPart
WirePart = ag.TextPart | MediaPart
WireContent = str | list[WirePart]

_MEDIA: Mapping[str, type[MediaPart]] = {
    "image": ag.ImagePart,
    "audio": ag.AudioPart,
    "video": ag.VideoPart,
    "document": ag.DocumentPart,
}
_CONTENT: TypeAdapter[WireContent] = TypeAdapter(str | list[ag.ContentPart])
_UNSTATED = {"document": "application/*"}
_EXTRAS = ("filename", "detail")
_CUT_LINE = 100
_CUT = re.compile(r"\n\[… [0-9,]+ characters left out; the full result is stored …\]\n")


def to_wire(content: Content) -> WireContent:
    """Return content as AG-UI has it; parts come back as the parts that were sent."""
    if content is None or isinstance(content, str):
        return content or ""
    return [_to_part(part) for part in content]


def from_wire(content: WireContent) -> Content:
    """Return AG-UI content in our shape."""
    if isinstance(content, str):
        return clean_text(content)
    return tuple(from_wire_part(part) for part in content)


def from_wire_part(part: WirePart) -> Part:
    """Return one AG-UI part in our shape."""
    if isinstance(part, ag.TextPart):
        return TextPart(clean_text(part.text))
    source = part.source
    media_type = source.mime_type or _UNSTATED.get(part.type, f"{part.type}/*")
    extras = _extras(part.metadata)
    if isinstance(source, ag.DataSource):
        return FilePart(media_type, data=source.value, **extras)
    if isinstance(source, ag.UrlSource):
        return FilePart(media_type, url=source.value, **extras)
    return FilePart(media_type, handle=source.value, provider=source.provider, **extras)


def from_wire_json(value: Any) -> Content:
    """Return AG-UI content that was read from JSON in our shape (Any: JSON of our own events)."""
    return from_wire(_CONTENT.validate_python(value))


def media_kind(media_type: str) -> str:
    """Return which of AG-UI's media parts carries a media type."""
    major = media_type.split("/", 1)[0].lower()
    return major if major in ("image", "audio", "video") else "document"


def placeholder(part: Part) -> str:
    """Return the line that stands for a part that is not shown: kind, media type, size."""
    if isinstance(part, TextPart):
        return part.text
    if not isinstance(part, FilePart):
        return f"[{part.vendor} part]"
    kind = "file" if part.handle is not None else media_kind(part.media_type)
    shown = [kind] if part.media_type.endswith("/*") else [kind, part.media_type]
    if part.data is not None:
        shown.append(_size(len(part.data) * 3 // 4))
    return f"[{', '.join(shown)}]"


def plain_text(content: Content) -> str:
    """Return content as one text: text parts joined by line breaks, others as placeholders."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(placeholder(part) for part in content)


def is_same(stored: Content, sent: Content) -> bool:
    """Say whether a client sent back what is stored, also in the shape a small frame gave it."""
    ours, theirs = _listed(stored), _listed(sent)
    return len(ours) == len(theirs) and all(map(_is_same_part, ours, theirs))


def cut_text(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: head and tail, and between them what is left."""
    if len(text) <= limit:
        return text
    room = max(limit - _CUT_LINE, 2)
    tail = room // 3
    head = room - tail
    line = f"[… {len(text) - room:,} characters left out; the full result is stored …]"
    return f"{text[:head]}\n{line}\n{text[-tail:] if tail else ''}"


def cut_content(content: Content, limit: int) -> Content:
    """Return content with every text cut to the limit."""
    if content is None or isinstance(content, str):
        return content if content is None else cut_text(content, limit)
    return tuple(
        TextPart(cut_text(part.text, limit)) if isinstance(part, TextPart) else part
        for part in content
    )


def _listed(content: Content) -> tuple[Part, ...]:
    if content is None or isinstance(content, str):
        return (TextPart(content),) if content else ()
    return content


def _is_same_part(our: Part, their: Part) -> bool:
    if our == their or not isinstance(their, TextPart):
        return our == their
    text = placeholder(our)
    return their.text == text or _is_cut(text, their.text)


def _is_cut(text: str, cut: str) -> bool:
    """Say whether something is what `cut_text` makes of a text, at whichever limit."""
    rooms = (len(cut) - len(line[0]) for line in _CUT.finditer(cut))
    return any(cut_text(text, room + _CUT_LINE) == cut for room in rooms)


def _to_part(part: Part) -> WirePart:
    if not isinstance(part, FilePart):
        return ag.TextPart(text=placeholder(part))
    mime = None if part.media_type.endswith("/*") else part.media_type
    source: ag.DataSource | ag.UrlSource | ag.FileSource
    if part.data is not None:
        source = ag.DataSource(value=part.data, mime_type=part.media_type)
    elif part.url is not None:
        source = ag.UrlSource(value=part.url, mime_type=mime)
    else:
        source = ag.FileSource(value=part.handle or "", provider=part.provider, mime_type=mime)
    extras = {name: found for name in _EXTRAS if (found := getattr(part, name)) is not None}
    return _MEDIA[media_kind(part.media_type)](source=source, metadata=extras or None)


def _extras(metadata: Any) -> dict[str, str]:  # Any: whatever JSON a page attached
    if not isinstance(metadata, dict):
        return {}
    return {n: metadata[n] for n in _EXTRAS if isinstance(metadata.get(n), str)}


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 999_500 else f"{count / 1_000_000:.1f} MB"
