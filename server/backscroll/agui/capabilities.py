"""What an agent can do, as clients ask for it before they start a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ag_ui import core as ag

from backscroll.agui.options import AgentRules
from backscroll.kernel.model import ModelProfile
from backscroll.kernel.tool import ToolSpec

SUBPROTOCOLS = {"bare": "backscroll.bare.v1", "durable": "backscroll.durable.v1"}
"""The dialects of the WebSocket and the subprotocol that stands for each."""


@dataclass(frozen=True, slots=True)
class AgentCard:
    """What is told about an agent; `profile` is that of its model."""

    rules: AgentRules
    version: str
    description: str = ""
    tools: Sequence[ToolSpec] = ()
    profile: ModelProfile = field(default_factory=ModelProfile)
    has_reasoning: bool = True
    has_client_tools: bool = False
    has_approvals: bool = False
    has_state: bool = False
    max_iterations: int = 10
    run_seconds: int = 600
    max_input_bytes: int = 8 * 1024 * 1024
    mirror: bool = False


def capabilities(card: AgentCard) -> str:
    """Return the capabilities of an agent as JSON; what is not supported is stated as false."""
    rules = card.rules
    told = ag.AgentCapabilities(
        identity=ag.IdentityCapabilities(
            name=rules.name,
            type="backscroll",
            version=card.version,
            description=card.description or None,
        ),
        transport=ag.TransportCapabilities(
            streaming=True,
            websocket=True,
            http_binary=False,
            push_notifications=False,
            resumable=True,
        ),
        tools=_tools(card),
        output=ag.OutputCapabilities(structured_output=False),
        state=ag.StateCapabilities(
            snapshots=card.has_state,
            deltas=card.has_state,
            memory=True,
            persistent_state=card.has_state,
        ),
        multi_agent=ag.MultiAgentCapabilities(supported=False),
        reasoning=ag.ReasoningCapabilities(
            supported=card.has_reasoning, streaming=card.has_reasoning, encrypted=False
        ),
        multimodal=_multimodal(card.profile),
        execution=ag.ExecutionCapabilities(
            code_execution=False,
            sandboxed=False,
            max_iterations=card.max_iterations,
            max_execution_time=card.run_seconds * 1000,
        ),
        human_in_the_loop=_people(card),
        custom={"backscroll": _own(card)},
    )
    return told.model_dump_json(by_alias=True)


def _tools(card: AgentCard) -> ag.ToolsCapabilities:
    items = [
        ag.Tool(name=tool.name, description=tool.description, parameters=dict(tool.schema))
        for tool in card.tools
    ]
    return ag.ToolsCapabilities(
        supported=True, parallel_calls=True, client_provided=card.has_client_tools, items=items
    )


def _multimodal(profile: ModelProfile) -> ag.MultimodalCapabilities:
    def takes(media_type: str) -> bool:
        return profile.accepts(media_type, "user") is None

    taken = ag.MultimodalInputCapabilities(
        image=takes("image/png"),
        audio=takes("audio/wav"),
        video=takes("video/mp4"),
        pdf=takes("application/pdf"),
        file=False,
    )
    given = ag.MultimodalOutputCapabilities(image=False, audio=False)
    return ag.MultimodalCapabilities(input=taken, output=given)


def _people(card: AgentCard) -> ag.HumanInTheLoopCapabilities:
    return ag.HumanInTheLoopCapabilities(
        supported=card.has_approvals,
        approvals=card.has_approvals,
        approve_with_edits=card.has_approvals,
        interventions=False,
        feedback=False,
        interrupts=card.has_approvals,
    )


def _own(card: AgentCard) -> dict[str, object]:
    rules = card.rules
    return {
        "dialects": list(SUBPROTOCOLS),
        "subprotocols": list(SUBPROTOCOLS.values()),
        "busy": rules.busy,
        "busy_allowed": list(rules.busy_allowed),
        "timeline": rules.timeline,
        "mirror": card.mirror,
        "max_input_bytes": card.max_input_bytes,
    }
