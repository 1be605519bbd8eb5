"""What every endpoint of a worker uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from starlette.types import Scope

from backscroll import __version__
from backscroll.agui.capabilities import AgentCard
from backscroll.agui.checks import InputLimits
from backscroll.agui.refusal import RequestRefused
from backscroll.kernel.model import ModelProfile
from backscroll.runs.call_book import CallBook
from backscroll.runs.joining import Joiner
from backscroll.runs.row_book import RowBook
from backscroll.runs.worker import Worker
from backscroll.store.keys import LOCAL_OWNER, ThreadKey

MIN_FRAME, MAX_FRAME = 65_536, 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Sizes and times of connections."""

    input: InputLimits = field(default_factory=InputLimits)
    max_frame: int = 1_000_000
    sse_max_frame: int = 8_000_000
    keepalive_s: float = 20.0
    send_timeout_s: float = 30.0
    idle_s: float = 300.0
    feeds_per_socket: int = 64
    bare_feeds: int = 16


class Services:
    """A worker with the limits of its connections; there is one owner until people sign in."""

    def __init__(self, worker: Worker, limits: WebLimits) -> None:
        self.worker, self.limits = worker, limits
        self.joiner = Joiner(worker.log, worker.registry.store, worker.agent_rules)
        self.rows = RowBook(worker.log)
        self.calls = CallBook(worker.log)

    def card(self) -> AgentCard:
        """Return what is told about the agent."""
        agent = self.worker.agent
        model = agent.client.model
        return AgentCard(
            self.worker.agent_rules,
            __version__,
            tools=agent.client.tools.specs(),
            profile=model.profile if model is not None else ModelProfile(),
            has_reasoning=self.worker.agent_rules.show_reasoning,
            has_client_tools=True,
            has_approvals=True,
            max_iterations=agent.max_iterations,
            run_seconds=round(self.run_seconds),
            max_input_bytes=self.limits.input.input_bytes,
        )

    @property
    def run_seconds(self) -> float:
        """How long a run may take."""
        return self.worker.rules.times.run_s

    @property
    def owner(self) -> str:
        """Whose threads a connection reaches."""
        return LOCAL_OWNER

    def check_agent(self, scope: Scope) -> None:
        """Raise `not_found` when the path names another agent than the one served."""
        wanted = scope.get("path_params", {}).get("agent")
        if wanted is not None and wanted != self.worker.agent_rules.name:
            raise RequestRefused("not_found", f"There is no agent {wanted}.", {"agent": wanted})

    def thread(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread of the connection's owner."""
        return ThreadKey(self.owner, thread_id)
