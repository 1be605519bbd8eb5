"""Content parts on the messages wire: what goes, how, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.content import Content, FilePart, Part, TextPart, VendorPart
from backscroll.kernel.model import ModelProfile
from backscroll.providers.parts import text_only, unsupported

VENDOR = "anthropic"
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")

_OTHER_NAMES = {"image/jpg": "image/jpeg"}


@dataclass(frozen=True, slots=True)
class PartRules:
    """Whose wire it is, and what its model takes."""

    profile: ModelProfile
    provider: str

    def refuses(self, part: Part, role: str) -> str | None:
        """Return why a part cannot be sent in a message of this role, or None if it can."""
        if isinstance(part, TextPart):
            return None
        if role == "system":
            return "system messages take text only"
        if isinstance(part, VendorPart):
            ours = part.vendor == VENDOR
            return None if ours else f"a part of {part.vendor!r} cannot go over the {VENDOR} wire"
        if role == "assistant":
            return "assistant messages take text only"
        is_image = part.media_type.startswith("image/")
        if role == "tool" and not is_image:
            return "tool messages take text and images only"
        if part.handle is not None:
            known = part.provider == self.provider
            return None if known else f"its file handle belongs to {part.provider!r}"
        return _form_problem(part) or self.profile.accepts(part.media_type, role)

    def text(self, content: Content, role: str) -> str:
        """Return content that must be text; raises `unsupported_content` for anything else."""
        return text_only(content, lambda part: self.refuses(part, role))

    def blocks(self, content: Content, role: str) -> list[dict[str, Any]]:
        """Return the wire's blocks, without blank texts; raises `unsupported_content`."""
        parts: Sequence[Part] = (TextPart(content),) if isinstance(content, str) else content or ()
        out: list[dict[str, Any]] = []
        for n, part in enumerate(parts):
            reason = self.refuses(part, role)
            if reason is not None:
                raise unsupported(part, n, reason)
            if not isinstance(part, TextPart) or part.text.strip():
                out.append(_to_wire(part))
        return out


def _form_problem(part: FilePart) -> str | None:
    kind = part.media_type
    if kind.startswith("image/"):
        if kind == "image/*":
            return "an inline image needs its exact media type" if part.data is not None else None
        known = _OTHER_NAMES.get(kind, kind) in IMAGES
        return None if known else f"images are one of {', '.join(IMAGES)}"
    return None if kind == "application/pdf" else "images and PDF are what this wire takes"


def _to_wire(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, VendorPart):
        data: dict[str, Any] = part.data
        return data
    kind = "image" if part.media_type.startswith("image/") else "document"
    block: dict[str, Any] = {"type": kind, "source": _source(part)}
    return {**block, "title": part.filename} if kind == "document" and part.filename else block


def _source(part: FilePart) -> dict[str, Any]:
    if part.handle is not None:
        return {"type": "file", "file_id": part.handle}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    kind = _OTHER_NAMES.get(part.media_type, part.media_type)
    return {"type": "base64", "media_type": kind, "data": part.data}
