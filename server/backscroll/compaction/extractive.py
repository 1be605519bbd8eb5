"""A summariser without a model: it picks lines by score, so equal input gives equal bytes."""

from __future__ import annotations

from backscroll.compaction.summariser import SummaryDraft, SummaryPart


class ExtractiveSummariser:
    """Writes notes made of lines of the material, never of anything else."""

    kind = "extractive"
    window_tokens = None

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Return the chosen lines under the headings of a summary."""
        raise NotImplementedError
