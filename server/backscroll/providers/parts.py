"""What the wires say alike about content parts."""

from __future__ import annotations

from collections.abc import Callable

from backscroll.kernel.content import Content, FilePart, Part, TextPart
from backscroll.kernel.errors import ModelError


def unsupported(part: Part, index: int, reason: str) -> ModelError:
    """Make the error for a part that cannot be sent; it names its place and media type."""
    kind = part.media_type if isinstance(part, FilePart) else type(part).__name__
    return ModelError("unsupported_content", f"part {index} ({kind}) cannot be sent: {reason}")


def text_only(content: Content, refuses: Callable[[Part], str | None]) -> str:
    """Return content where only text can go; raises `unsupported_content` for anything else."""
    if isinstance(content, str) or content is None:
        return content or ""
    pieces: list[str] = []
    for n, part in enumerate(content):
        if not isinstance(part, TextPart):
            raise unsupported(part, n, refuses(part) or "text is expected here")
        pieces.append(part.text)
    return "".join(pieces)
