"""An agent for tests: WIRE and PROVIDER_URL say how it speaks to one scripted provider."""

from __future__ import annotations

import os

from backscroll.agent.agent import Agent
from backscroll.kernel.model import ChatModel, ModelOptions, ModelProfile
from backscroll.kernel.tool import tool
from backscroll.providers.anthropic import AnthropicModel
from backscroll.providers.openai import OpenAIModel

THINK = {"type": "enabled", "budget_tokens": 1_024}
PROFILE = ModelProfile(context_window=32_000, replay_reasoning="tool_calls")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def broken() -> str:
    """Fail, always."""
    raise RuntimeError("the warehouse does not answer")


@tool(sensitive=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody; people are asked first."""
    return f"paid {amount} to {to}"


def model_over(wire: str, url: str) -> ChatModel:
    """Return a model of the provider at a URL, over `openai` or `anthropic`."""
    options = ModelOptions(max_output_tokens=4_000, thinking=THINK)
    if wire == "anthropic":
        return AnthropicModel("m", base_url=url, api_key="k", profile=PROFILE, options=options)
    return OpenAIModel("m", base_url=f"{url}/v1", api_key="k", profile=PROFILE, options=options)


def agent_over(wire: str, url: str) -> Agent:
    """Return the agent with such a model."""
    return Agent(
        name="vendors",
        model=model_over(wire, url),
        instructions="You are tested.",
        tools=[add, broken, pay],
    )


if "PROVIDER_URL" in os.environ:
    agent = agent_over(os.environ["WIRE"], os.environ["PROVIDER_URL"])
