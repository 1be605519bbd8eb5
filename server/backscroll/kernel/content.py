"""What a message holds: text, or parts of text and files."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backscroll.kernel.canon import clean_text
from backscroll.kernel.errors import InputError


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class FilePart:
    """An image, audio, video or document: inline base64, a URL, or a provider's file handle."""

    media_type: str
    data: str | None = None
    url: str | None = None
    handle: str | None = None
    provider: str | None = None
    filename: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class VendorPart:
    """A part that only the wire named `vendor` understands; it passes unchanged."""

    vendor: str
    data: Any  # Any: whatever JSON the vendor defines


Part = TextPart | FilePart | VendorPart
Content = str | tuple[Part, ...] | None


def file_part(
    source: str | bytes | os.PathLike[str],
    media_type: str | None = None,
    filename: str | None = None,
) -> FilePart:
    """Make a file part from a URL, a base64 data URI, base64 text, bytes or a path.

    Raises `invalid_content` when inline data comes without a media type: nothing is guessed.
    """
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return FilePart(media_type or "image/*", url=source, filename=filename)
    if isinstance(source, str) and source.startswith("data:"):
        return _from_data_uri(source, media_type, filename)
    if isinstance(source, os.PathLike):
        path = Path(source)
        source, filename = path.read_bytes(), filename or path.name
    data = base64.b64encode(source).decode() if isinstance(source, bytes) else source
    if media_type is None:
        raise InputError("invalid_content", "inline data needs a media type", "media_type")
    _check_base64(data)
    return FilePart(media_type, data=data, filename=filename)


def text_of(content: Content) -> str:
    """Return the text of a message: its text parts joined with one space."""
    if isinstance(content, str):
        return content
    return " ".join(part.text for part in content or () if isinstance(part, TextPart))


def is_parts(value: object) -> bool:
    """Say whether a value is content in parts; any other tuple is data."""
    kinds = TextPart | FilePart | VendorPart
    return isinstance(value, tuple) and bool(value) and all(isinstance(p, kinds) for p in value)


def content_to_json(content: Content) -> Any:
    """Return content as JSON values; absent members are left out."""
    if content is None or isinstance(content, str):
        return content
    return [_part_to_json(part) for part in content]


def content_from_json(value: Any, path: str = "content") -> Content:
    """Read content from JSON values; raises `invalid_message` naming the path."""
    if value is None:
        return None
    if isinstance(value, str):
        return clean_text(value)
    if not isinstance(value, list):
        raise InputError("invalid_message", "expected text or a list of parts", path)
    return tuple(_part_from_json(item, f"{path}[{n}]") for n, item in enumerate(value))


def _part_to_json(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, VendorPart):
        return {"type": "vendor", "vendor": part.vendor, "data": part.data}
    names = ("media_type", "data", "url", "handle", "provider", "filename", "detail")
    members = ((name, getattr(part, name)) for name in names)
    return {"type": "file", **{name: value for name, value in members if value is not None}}


def _part_from_json(value: Any, path: str) -> Part:
    if not isinstance(value, Mapping):
        raise InputError("invalid_message", "expected an object", path)
    kind = value.get("type")
    if kind == "text" and isinstance(value.get("text"), str):
        return TextPart(clean_text(value["text"]))
    if kind == "vendor" and isinstance(value.get("vendor"), str):
        return VendorPart(value["vendor"], value.get("data"))
    if kind != "file":
        raise InputError("invalid_message", "expected a part of type text, file or vendor", path)
    return _file_from_json(value, path)


def _file_from_json(value: Mapping[str, Any], path: str) -> FilePart:
    members = {k: v for k, v in value.items() if k != "type"}
    if any(not isinstance(v, str) for v in members.values()):
        raise InputError("invalid_message", "members of a file part are text", path)
    if sum(k in members for k in ("data", "url", "handle")) != 1:
        raise InputError("invalid_message", "expected exactly one of data, url, handle", path)
    try:
        return FilePart(**members)
    except TypeError as error:
        raise InputError("invalid_message", "unknown or missing member", path) from error


def _from_data_uri(uri: str, media_type: str | None, filename: str | None) -> FilePart:
    head, comma, data = uri.partition(",")
    if not comma or not head.endswith(";base64"):
        raise InputError("invalid_content", "expected a base64 data URI", "source")
    _check_base64(data)
    found = head[5 : -len(";base64")].split(";")[0]
    if not (media_type or found):
        raise InputError("invalid_content", "the data URI names no media type", "media_type")
    return FilePart(media_type or found, data=data, filename=filename)


def _check_base64(data: str) -> None:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("invalid_content", "expected base64 text", "source") from error
