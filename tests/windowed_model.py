"""A model with a small window whose long answers come in one piece, so that tests are quick."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.kernel.model import Finished, ModelProfile, Text
from played_model import Said, Streamed, StreamingModel


class Windowed(StreamingModel):
    """Streams each text of its script at once; 8,000 tokens fit."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__([at_once(text) for text in texts])
        self.profile = ModelProfile(8_000, "configured")


def at_once(text: str) -> Streamed:
    """Return a reply whose text is one delta."""
    return Streamed([Text(text), Finished(Said(text).response())])
