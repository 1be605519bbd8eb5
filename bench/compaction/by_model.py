"""What a summary written by a model keeps of a conversation, alone and with the facts beside it.

    python bench/compaction/by_model.py [--model NAME] [--spans 8] [--json FILE]
                                         [--window 8192] [--model-window 8192]

Without OPENAI_BASE_URL a tiny model is served for it (`make model`), which is about the worst that
can write a summary; with it, the model named there is asked. Each span is the beginning of another
session, up to its first summary. It ends with 1 when too few facts are left, when an identifier
that the model invented is not marked, and when no text of the model could be used.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from backscroll.compaction.acceptance import UNVERIFIED, ground
from backscroll.compaction.summarise import ModelSummariser
from backscroll.compaction.summariser import Summariser, SummaryDraft, SummaryPart
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.providers.failures import Timeouts
from backscroll.providers.openai import OpenAIModel
from ours import MOST_S, Backscroll
from session import make_session

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from processes import LlamaProcess  # the tests' own

SPANS, WINDOW, MODEL_WINDOW, TURNS = 8, 8_192, 8_192, 120
LEAST_KEPT = 0.65
BULKS = ("plain", "noisy")


@dataclass(frozen=True, slots=True)
class Span:
    """What is left of one span: its facts, in the model's text, and in the whole view.

    `refused` says why the text was not used; the view then has the facts alone. `unmarked` are
    identifiers in the text that are neither in the material nor marked.
    """

    bulk: str
    facts: int
    in_core: int
    in_view: int
    refused: str
    invented: int
    unmarked: tuple[str, ...]
    seconds: float


class ByModel:
    """Asks a model, on a new connection each time: each summary runs in a loop of its own."""

    kind = "model"

    def __init__(self, name: str, base_url: str | None, window: int) -> None:
        self._name, self._base_url = name, base_url
        self.window_tokens: int | None = window

    async def summarise(self, part: SummaryPart) -> SummaryDraft:
        """Return the model's answer."""
        model = OpenAIModel(
            self._name,
            base_url=self._base_url,
            api_key=os.environ.get("OPENAI_API_KEY", "none-needed"),
            profile=ModelProfile(context_window=self.window_tokens, window_source="configured"),
            options=ModelOptions(seed=1),
            timeouts=Timeouts(read_s=MOST_S),
        )
        try:
            return await ModelSummariser(model).summarise(part)
        finally:
            await model.aclose()


def main() -> int:
    """Measure span after span, print each, and say whether the aims are met."""
    options = _options()
    asked = options.parse_args()
    if asked.spans < 1:
        options.error(f"--spans: expected 1 or more, got {asked.spans}")
    with _endpoint(asked.model_window) as base_url:
        by = ByModel(asked.model, base_url, asked.model_window)
        spans = [_shown(measure_span(n, asked.window, by)) for n in range(asked.spans)]
    facts = sum(span.facts for span in spans)
    core = sum(span.in_core for span in spans) / facts
    kept = sum(span.in_view for span in spans) / facts
    unmarked = sum(len(span.unmarked) for span in spans)
    sys.stdout.write(
        f"{asked.model}, {len(spans)} spans, {facts} facts: {core:.0%} in its texts, {kept:.0%} "
        f"with the facts beside them; {sum(bool(span.refused) for span in spans)} texts not used; "
        f"{sum(span.invented for span in spans)} identifiers invented, {unmarked} unmarked\n"
    )
    if asked.json:
        asked.json.write_text(
            json.dumps([asdict(span) for span in spans], indent=1) + "\n", "utf-8"
        )
    unused = all(span.refused for span in spans)
    return 0 if kept >= LEAST_KEPT and not unmarked and not unused else 1


def measure_span(number: int, window: int, by: Summariser) -> Span:
    """Return what is left of the beginning of a session after its first summary."""
    bulk = BULKS[number % len(BULKS)]
    strategy = Backscroll(window, by=by)
    for call in make_session(number + 1, TURNS, bulk).calls:
        began = time.monotonic()
        view = strategy.view(call.history)
        if strategy.made:
            break
    if not strategy.made:
        raise SystemExit(
            f"--window: {TURNS} turns need no summary at {window:,} tokens; give fewer"
        )
    job, outcome = strategy.made[0]
    newest = {place.fact.subject: place.fact for place in call.places if place.fact.subject}
    probes = [
        place.fact.probe
        for place in call.places
        if place.at < job.cut and newest.get(place.fact.subject, place.fact) is place.fact
    ]
    shown = "\n".join(
        f"{message.text} {' '.join(call.args_text for call in message.tool_calls)}"
        for message in view
    )
    invented, unmarked = _invented(outcome)
    return Span(
        bulk, len(probes), _count(probes, outcome.core), _count(probes, shown),
        "" if outcome.status == "done" else outcome.why, invented, unmarked,
        round(time.monotonic() - began, 1),
    )  # fmt: skip


def _invented(outcome: SummaryOutcome) -> tuple[int, tuple[str, ...]]:
    """Return how many identifiers the model invented, and which stand unmarked in its text."""
    material = "\n".join(exchange.prompt for exchange in outcome.exchanges)
    _, _, found = ground(outcome.core.replace(UNVERIFIED, ""), material)
    unmarked = tuple(item for item in found if f"{item}{UNVERIFIED}" not in outcome.core)
    return len({*found, *outcome.ungrounded}), unmarked


def _count(probes: list[str], text: str) -> int:
    return sum(probe in text for probe in probes)


def _shown(span: Span) -> Span:
    told = (
        f"{span.bulk}: of {span.facts} facts {span.in_core} in its text, {span.in_view} in the view"
    )
    sys.stdout.write(f"{told}; {span.invented} invented; {span.seconds:.0f} s {span.refused}\n")
    sys.stdout.flush()
    return span


@contextmanager
def _endpoint(window: int) -> Iterator[str | None]:
    """Give the address of the model: None for the one in the environment."""
    if os.environ.get("OPENAI_BASE_URL"):
        yield None
        return
    with LlamaProcess(n_ctx=window) as llama:
        yield f"{llama.url}/v1"


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--model", default="smollm2")
    options.add_argument("--spans", type=int, default=SPANS)
    options.add_argument("--window", type=int, default=WINDOW, help="of the conversation's model")
    options.add_argument("--model-window", type=int, default=MODEL_WINDOW)
    options.add_argument("--json", type=Path, help="where to write the figures")
    return options


if __name__ == "__main__":
    sys.exit(main())
