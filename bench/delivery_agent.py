"""The agent of the delivery bench: the demo model, playing prepared words as fast as it can."""

from __future__ import annotations

import os

from backscroll.agent.agent import Agent
from backscroll.providers.demo import DemoModel, DemoReply

WORDS = int(os.environ.get("BENCH_WORDS", "20000"))
RUNS = int(os.environ.get("BENCH_RUNS", "4"))

agent = Agent(
    name="bench",
    model=DemoModel([DemoReply(text="word " * WORDS)] * RUNS, delay_s=0, window=10_000_000),
)
