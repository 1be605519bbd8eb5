"""An agent on whatever answers at OPENAI_BASE_URL, which claims a larger window than it has."""

from __future__ import annotations

import os

from backscroll import Agent, Compaction, ModelOptions, ModelProfile, OpenAIModel

window = int(os.environ["LOCAL_AGENT_WINDOW"])
quiet = ModelOptions(temperature=0, seed=1, max_output_tokens=24)
profile = ModelProfile(context_window=window, window_source="configured")

agent = Agent(
    name="local",
    model=OpenAIModel("smollm2", provider="llama.cpp", profile=profile, options=quiet),
    instructions="Answer in one short sentence.",
    compaction=Compaction(),
)
