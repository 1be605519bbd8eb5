"""Content parts on the chat completions wire: what goes, how, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.content import Content, FilePart, Part, TextPart, VendorPart
from backscroll.kernel.model import ModelProfile
from backscroll.providers.parts import text_only, unsupported

VENDOR = "openai"

_AUDIO = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


@dataclass(frozen=True, slots=True)
class PartRules:
    """Whose wire it is, and what its model takes."""

    profile: ModelProfile
    provider: str

    def refuses(self, part: Part, role: str) -> str | None:
        """Return why a part cannot be sent in a message of this role, or None if it can."""
        if isinstance(part, TextPart):
            return None
        if isinstance(part, VendorPart):
            if part.vendor != VENDOR:
                return f"a part of {part.vendor!r} cannot go over the {VENDOR} wire"
            return None if role in ("user", "assistant") else f"{role} messages take text only"
        if role != "user":
            return f"{role} messages take text only"
        if part.handle is not None:
            known = part.provider == self.provider
            return None if known else f"its file handle belongs to {part.provider!r}"
        return _form_problem(part) or self.profile.accepts(part.media_type, role)

    def text(self, content: Content, role: str) -> str:
        """Return content that must be text; raises `unsupported_content` for anything else."""
        return text_only(content, lambda part: self.refuses(part, role))

    def parts(self, content: Sequence[Part], role: str) -> list[dict[str, Any]]:
        """Return the wire's parts, without blank texts; raises `unsupported_content`."""
        out: list[dict[str, Any]] = []
        for n, part in enumerate(content):
            reason = self.refuses(part, role)
            if reason is not None:
                raise unsupported(part, n, reason)
            if not isinstance(part, TextPart) or part.text.strip():
                out.append(_to_wire(part, n))
        return out


def _form_problem(part: FilePart) -> str | None:
    kind = part.media_type
    if kind.startswith("image/"):
        return None
    if kind == "application/pdf":
        return "a PDF is sent inline, not by URL" if part.url is not None else None
    if kind in _AUDIO:
        return "audio is sent inline, not by URL" if part.url is not None else None
    return "images, PDF, wav and mp3 are what this wire takes"


def _to_wire(part: Part, index: int) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, VendorPart):
        data: dict[str, Any] = part.data
        return data
    if part.handle is not None:
        return {"type": "file", "file": {"file_id": part.handle}}
    if part.media_type in _AUDIO:
        audio = {"data": part.data, "format": _AUDIO[part.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    uri = part.url if part.url is not None else f"data:{part.media_type};base64,{part.data}"
    if part.media_type.startswith("image/"):
        detail = {} if part.detail is None else {"detail": part.detail}
        return {"type": "image_url", "image_url": {"url": uri, **detail}}
    name = part.filename or f"part-{index + 1}.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": uri}}
