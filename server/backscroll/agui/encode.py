"""One run as AG-UI events: what the agent reports goes in, entries for the log come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ag_ui import core as ag

from backscroll.agent import events as agent
from backscroll.agui.ids import reasoning_id
from backscroll.agui.lanes import Lane
from backscroll.agui.live_run import Activity
from backscroll.agui.messages import Shown, echo
from backscroll.agui.options import Timeline
from backscroll.agui.run_end import RunEnd
from backscroll.agui.sent import Sent
from backscroll.agui.snapshot import messages_snapshot
from backscroll.agui.terminal import Ending, activity_event, ending_events, result_event, settled
from backscroll.agui.wire import event_entry
from backscroll.kernel.message import Message
from backscroll.kernel.ports import Ids
from backscroll.kernel.usage import Usage
from backscroll.store.entry import NewEntry


@dataclass(frozen=True, slots=True)
class RunIds:
    """Which run of which thread, and which run the client says it follows."""

    thread_id: str
    run_id: str
    parent_run_id: str | None = None


class RunEncoder:
    """The events of one run, in the order clients accept, ending with exactly one terminal event.

    Everything returned is to be appended in order. After `close` nothing comes any more.
    """

    def __init__(
        self,
        run: RunIds,
        ids: Ids,
        *,
        timeline: Timeline = "brief",
        shown: Shown | None = None,
    ) -> None:
        self._run, self._ids, self._timeline = run, ids, timeline
        self._shown = shown or Shown()
        self._lane = Lane()
        self._sent = Sent()
        self._step = ""
        self._models: dict[str, tuple[str, str]] = {}
        self._usage: dict[tuple[str, str], Usage] = {}
        self._activities: dict[str, Activity] = {}
        self._last: str | None = None
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Say whether the terminal event was made."""
        return self._is_closed

    @property
    def activities(self) -> list[Activity]:
        """The activities of the run, as they were last stated."""
        return list(self._activities.values())

    @property
    def usage(self) -> list[dict[str, Any]]:
        """What the run's calls used, one item per provider and model; only known numbers."""
        return [
            {"provider": provider, "model": model, **used.to_dict()}
            for (provider, model), used in self._usage.items()
            if used.to_dict()
        ]

    def start(
        self,
        echoed: Sequence[Message] = (),
        settled: Sequence[Message] = (),
        superseding: Sequence[Message] | None = None,
    ) -> list[NewEntry]:
        """Return the first events: RUN_STARTED and what must follow it at once.

        `echoed` is what the run adds to the history from the client, `settled` the results that
        the server made up for calls nobody answered. `superseding` is the whole history where
        something was superseded; then clients get it as a snapshot.
        """
        run = self._run
        self._last = echoed[-1].id if echoed else None
        started = ag.RunStartedEvent(
            thread_id=run.thread_id,
            run_id=run.run_id,
            protocol_version=ag.PROTOCOL_VERSION,
            parent_run_id=run.parent_run_id,
            input=echo(run.thread_id, run.run_id, echoed),
        )
        events: list[ag.BaseEvent] = [started]
        if superseding is not None:
            snapshot = messages_snapshot(superseding, shown=self._shown)
            events += [snapshot] if snapshot else []
            for message in settled:
                self._sent.result(message.tool_call_id or "")
        else:
            events += (self._result(message) for message in settled)
        return self._entries(events)

    def feed(self, event: agent.AgentEvent) -> list[NewEntry]:
        """Return what clients see of one thing that happened in the turn."""
        if self._is_closed:
            return []
        return self._entries(self._events_of(event))

    def activity(self, message_id: str, kind: str, content: Mapping[str, Any]) -> list[NewEntry]:
        """State an activity whole, again whenever it changed; nothing at timeline `off`."""
        if self._is_closed or self._timeline == "off":
            return []
        held = self._activities.get(message_id)
        after = held.after if held is not None else self._last
        self._activities[message_id] = Activity(message_id, kind, content, after)
        return self._entries([activity_event(message_id, kind, content)])

    def custom(self, name: str, value: Any) -> list[NewEntry]:
        """Return a custom event of ours; only at timeline `full`."""
        if self._is_closed or self._timeline != "full":
            return []
        return self._entries([ag.CustomEvent(name=name, value=value)])

    def add_usage(self, provider: str, model: str, usage: Usage | None) -> None:
        """Count what a call used that the agent did not report itself, such as a summary's."""
        if usage is not None:
            key = (provider, model)
            self._usage[key] = self._usage.get(key, Usage()) + usage

    def unstored(self, history: Sequence[Message]) -> list[Message]:
        """Return what clients were sent of replies that the history does not have."""
        return self._sent.unstored(history)

    def close(
        self, end: RunEnd, history: Sequence[Message] | None = None, before: int = 0
    ) -> list[NewEntry]:
        """End the run: close what is open, put right what differs, and say how it ended.

        `history` is what is stored now, `before` how many messages of it the run began with;
        without it nothing is compared. A second call returns nothing.
        """
        if self._is_closed:
            return []
        events = self._lane.close(incomplete=True)
        self._note(events)
        ending = Ending(
            end,
            activities=self.activities,
            steps=[self._step] if self._step else [],
            usage=self._usage,
        )
        if history is not None:
            ending = self._corrected(ending, history, before)
        events += ending_events(self._run.thread_id, self._run.run_id, ending, self._shown)
        self._activities = {one.id: one for one in settled(self.activities, end)}
        self._is_closed = True
        return [event_entry(event, self._run.run_id) for event in events]

    def _events_of(self, event: agent.AgentEvent) -> list[ag.BaseEvent]:
        match event:
            case agent.TextDelta():
                return self._lane.text(event.message_id, event.delta)
            case agent.ReasoningDelta():
                if not self._shown.reasoning:
                    return []
                return self._lane.reasoning(event.message_id, event.delta)
            case agent.ToolCallOpened():
                return self._lane.open_call(event.message_id, event.call_id, event.name)
            case agent.ToolCallArgs():
                return self._lane.args(event.call_id, event.delta)
            case agent.ToolCallClosed():
                return self._lane.close_call(event.call_id)
            case agent.ToolFinished():
                return [*self._lane.close_call(event.call_id), self._result(event.message)]
            case agent.IterationStarted():
                return self._begin_step(f"iteration-{event.index + 1}")
            case agent.CallStarted():
                model = event.request.options.model or event.model.name
                self._models[event.message_id] = (event.model.provider, model)
            case agent.CallFinished():
                return self._end_reply(event)
            case agent.TurnEnded():
                return self._answer(event)
        return []

    def _end_reply(self, event: agent.CallFinished) -> list[ag.BaseEvent]:
        provider, model = self._models.get(event.message_id, ("", ""))
        self.add_usage(provider, model, event.usage)
        return self._lane.close(incomplete=event.error is not None)

    def _answer(self, event: agent.TurnEnded) -> list[ag.BaseEvent]:
        """Show the answer that a filter gave in the model's place: nothing of it was streamed."""
        result = event.result
        is_said = result.return_direct or not result.text.strip()
        if result.status != "completed" or is_said:
            return []
        message_id = (result.message.id if result.message else None) or ""
        if self._sent.has_text(message_id, result.text):
            return []
        message_id = message_id or self._ids.new("msg")
        return self._lane.text(message_id, result.text) + self._lane.close()

    def _result(self, message: Message) -> ag.BaseEvent:
        self._sent.result(message.tool_call_id or "")
        return result_event(message, self._shown)

    def _begin_step(self, name: str) -> list[ag.BaseEvent]:
        events = self._lane.close()
        if self._step:
            events.append(ag.StepFinishedEvent(step_name=self._step))
        if self._timeline == "off":
            return events
        self._step = name
        return [*events, ag.StepStartedEvent(step_name=name)]

    def _corrected(self, ending: Ending, history: Sequence[Message], before: int) -> Ending:
        """Add the results that were stored unseen, and a snapshot where clients saw otherwise."""
        own = history[before:]
        ending = replace(ending, results=self._sent.missing_results(own))
        if ending.end.is_blocked or self._sent.is_stored(own, self._shown.reasoning):
            return ending
        stale = self._sent.reasoning_ids()
        snapshot = messages_snapshot(history, shown=self._shown, stale_reasoning=stale)
        return replace(ending, snapshot=snapshot)

    def _entries(self, events: Iterable[ag.BaseEvent]) -> list[NewEntry]:
        listed = list(events)
        self._note(listed)
        return [event_entry(event, self._run.run_id) for event in listed]

    def _note(self, events: Iterable[ag.BaseEvent]) -> None:
        """Remember what clients were sent of the replies."""
        for event in events:
            self._last = _message_of(event) or self._last
            match event:
                case ag.TextMessageContentEvent() | ag.ReasoningMessageContentEvent():
                    self._sent.text(event.message_id, event.delta)
                case ag.ToolCallStartEvent():
                    self._sent.call(event.tool_call_id, event.parent_message_id or "")
                case ag.ToolCallArgsEvent():
                    self._sent.args(event.tool_call_id, event.delta)


def _message_of(event: ag.BaseEvent) -> str | None:
    """Return the message that an event begins to show."""
    match event:
        case ag.TextMessageStartEvent() | ag.ToolCallResultEvent():
            return event.message_id
        case ag.ReasoningMessageStartEvent():
            return event.message_id.removesuffix(reasoning_id(""))
        case ag.ToolCallStartEvent():
            return event.parent_message_id
    return None
