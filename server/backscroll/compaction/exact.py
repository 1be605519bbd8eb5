"""Exact counts for models whose vocabulary is at hand, when the extra `tokens` is installed."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from backscroll.kernel.canon import clean_text

VOCABULARIES = {"o200k": "o200k_base", "cl100k": "cl100k_base"}
"""The vocabularies that can be counted exactly, and what the library calls them."""


class ExactCounter:
    """Counts with the vocabulary of a model."""

    def __init__(self, vocabulary: str, tokenizer: Any) -> None:  # Any: the library has no types
        self.name = vocabulary
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        """Return how many tokens the text takes."""
        return int(self._tokenizer.count(clean_text(text)))


@lru_cache(maxsize=8)
def exact_counter(vocabulary: str | None) -> ExactCounter | None:
    """Return the exact counter of a vocabulary, or None where it cannot be had."""
    name = VOCABULARIES.get(vocabulary or "")
    if name is None:
        return None
    try:
        library = importlib.import_module("rs_bpe.bpe")
    except ImportError:
        return None
    return ExactCounter(str(vocabulary), getattr(library.openai, name)())
