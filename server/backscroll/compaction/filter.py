"""The chat filter: it reads what is known, asks the pure parts what to send, and sends that."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from backscroll.compaction.actions import Actions
from backscroll.compaction.ahead import Ahead
from backscroll.compaction.beside import beside
from backscroll.compaction.call_state import CallStates
from backscroll.compaction.counting import Counting
from backscroll.compaction.decision import CompactionFinished
from backscroll.compaction.fact_lines import ResultReader
from backscroll.compaction.facts import FactReader
from backscroll.compaction.flight import Flights
from backscroll.compaction.inputs import Call, Inputs
from backscroll.compaction.learn import Learning
from backscroll.compaction.making import Making
from backscroll.compaction.micro import Shaper
from backscroll.compaction.overflow import refusal_of
from backscroll.compaction.overrides import InMemoryOverrideStore, OverrideStore, is_enabled
from backscroll.compaction.plan import Plan, force, plan, settle
from backscroll.compaction.prefix import compare, sent_view
from backscroll.compaction.reading import Means
from backscroll.compaction.reasons import REASONS
from backscroll.compaction.recall import HistoryReader, Recall
from backscroll.compaction.settings import Settings
from backscroll.compaction.store import (
    CompactionStore,
    InMemoryCompactionStore,
    InMemoryModelFacts,
    InMemoryPinStore,
    ModelFacts,
    PinStore,
)
from backscroll.compaction.store_access import Held, StoreAccess
from backscroll.compaction.summariser import Summariser
from backscroll.compaction.summarisers import Summarisers
from backscroll.compaction.summary_run import SummaryOutcome
from backscroll.compaction.texts import CompactionTexts
from backscroll.compaction.tokens import Sizes, TokenCounter
from backscroll.compaction.write_back import StoreBack, WriteBack, WritingBack
from backscroll.kernel.errors import AssemblyError, ModelError
from backscroll.kernel.filter import ChatHandler, Filter
from backscroll.kernel.model import ChatModel
from backscroll.kernel.ports import Clock, Ids, RandomIds, SystemClock
from backscroll.kernel.request import ChatRequest, ChatResponse, Note, ViewPlanned
from backscroll.kernel.tool import Tool


class Compaction(Actions, Ahead, Filter):
    """Makes every request fit its model's window; the stored history is never changed.

    `summariser`: "own" for the model of the call, another model, a Summariser, or None. `numbers`
    are those of `Settings`; a wrong one raises `invalid_option`. Stores left None are in the
    process. `count_exactly` asks the provider how large a request is, once in a run, if it tells.
    `write_back` is called after each fresh summary; only with it is a history changed.
    `background` asks the host for summaries between runs, ahead of need; `recall` offers the model
    a tool that looks up earlier messages.
    """

    name = "compaction"

    def __init__(
        self,
        summariser: str | ChatModel | Summariser | None = "own",
        *,
        store: CompactionStore | None = None,
        model_facts: ModelFacts | None = None,
        pins: PinStore | None = None,
        counter: TokenCounter | None = None,
        exclude_tools: Collection[str] = (),
        write_back: WriteBack | None = None,
        recall: bool = False,
        background: bool = False,
        enabled: bool = True,
        count_exactly: bool = False,
        texts: CompactionTexts | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        **numbers: Any,
    ) -> None:
        self.enabled, self.background = enabled, background
        self._write_back = write_back
        self.settings = _settings(numbers)
        self.texts = texts or CompactionTexts()
        self.texts.check()
        sizes = Sizes(counter, self.settings.media_tokens)
        results = ResultReader()
        shaper = Shaper(sizes, self.texts, results, exclude_tools)
        facts = FactReader(sizes, self.texts, results=results)
        self._means = Means(sizes, shaper, facts, self.texts, recall)
        self._recall = Recall(sizes, self.texts) if recall else None
        self._summarisers = Summarisers(summariser, self.texts)
        self._clock, self._ids = clock or SystemClock(), ids or RandomIds()
        self._counting = Counting(self.settings.count_timeout) if count_exactly else None
        self._states, self._held = CallStates(), Held()
        self._flights: Flights[Plan] = Flights()
        self._given = (store, model_facts, pins)
        self._open(
            store or InMemoryCompactionStore(clock=self._clock),
            model_facts or InMemoryModelFacts(),
            pins or InMemoryPinStore(),
        )

    def bind(
        self,
        store: CompactionStore | None = None,
        model_facts: ModelFacts | None = None,
        pins: PinStore | None = None,
        overrides: OverrideStore | None = None,
    ) -> Compaction:
        """Return this filter on the stores of a host, where it was given none of its own.

        What the process remembers of conversations is shared by both.
        """
        bound = copy.copy(self)
        own_store, own_facts, own_pins = self._given
        bound._open(
            own_store or store or self._access.store,
            own_facts or model_facts or self._learning.facts,
            own_pins or pins or self._inputs.pins,
            overrides or self._inputs.overrides,
        )
        return bound

    def over(self, memory: object) -> Compaction:
        """Return this filter with its write-back on a memory, if it wants the agent's own.

        Raises `invalid_option` for one that cannot do what write-back needs.
        """
        hook = self._write_back
        if not isinstance(hook, StoreBack) or hook.memory is not None:
            return self
        bound = copy.copy(self)
        bound._write_back = hook.bind(memory)
        back = WritingBack(bound._write_back, self._access, self._ids)
        bound._making = dataclasses.replace(self._making, write_back=back)
        return bound

    async def aclose(self) -> None:
        """Let go of the summariser's connections."""
        await self._summarisers.aclose()

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Make one model call with a view that fits; after a refusal for size, once another."""
        overrides = await self._inputs.overridden(request.conversation_id)
        if not is_enabled(self.enabled, overrides) or request.model is None:
            return await chain(request)
        state = self._states.of(request.conversation_id)
        call = await self._inputs.of(request, request.model, state, overrides)
        planned = await beside(partial(plan, call.given), request.messages)
        if self._counting is not None:
            call, planned = await self._counting.counted(call, planned)
        used = await self._carried_out(call, planned)
        await self._report(call, used)
        try:
            response = await chain(_filled(request, used))
        except ModelError as error:
            used = await self._second(call, used, error)
            response = await chain(_filled(request, used))
        note = await self._learning.answer(call.key, state, used, response)
        if note is not None:
            await request.report(note)
        return response

    def recall_tool(self, memory: HistoryReader) -> Tool | None:
        """Return the tool that looks up earlier messages of a memory, if it is wanted."""
        return self._recall.tool(memory) if self._recall is not None else None

    def is_shortened(self, conversation_id: str, message_id: str) -> bool:
        """Say whether the last view of a conversation did not show a message whole."""
        return message_id in self._states.of(conversation_id).shortened

    def _open(
        self,
        store: CompactionStore,
        model_facts: ModelFacts,
        pins: PinStore,
        overrides: OverrideStore | None = None,
    ) -> None:
        self._access = StoreAccess(store, self._clock, self._held, self.settings.ring)
        self._learning = Learning(model_facts, self._clock)
        self._inputs = Inputs(
            self._access,
            self._learning,
            pins,
            overrides or InMemoryOverrideStore(),
            self._summarisers,
            self._means,
            self.settings,
            self._clock,
        )
        hook = self._write_back
        self._making = Making(
            self._access,
            self._flights,
            self.settings,
            self._clock,
            self._ids,
            WritingBack(hook, self._access, self._ids) if hook is not None else None,
        )

    async def _carried_out(self, call: Call, planned: Plan) -> Plan:
        """Return the plan with its summary made; one that is cancelled meanwhile is reported."""
        try:
            return await self._making.carry_out(planned, call.request, call.run, call.summariser)
        except ModelError:
            stopped = settle(planned, SummaryOutcome("cancelled", why="the call was cancelled"))
            if stopped.decision is not None:
                decision = stopped.decision.replace(result="cancelled", reason=None)
                await call.request.report(CompactionFinished(decision.to_dict()))
            raise

    async def _second(self, call: Call, used: Plan, error: ModelError) -> Plan:
        """Return the plan of the second attempt, or raise the error."""
        stream = call.request.stream
        if used.reading is None or (stream is not None and stream.started):
            raise error
        refusal = refusal_of(
            error, used.reading.budget, used.prompt, shrink_on_tpm=self.settings.shrink_on_tpm
        )
        forced = force(used, refusal) if refusal is not None else None
        if forced is None or forced.reaction is None or forced.reaction.kind == "none":
            raise error
        forced = await self._carried_out(call, forced)
        await self._learning.limit(call.key, call.run, forced)
        is_rate = forced.reaction is not None and forced.reaction.refusal.cls == "over_tpm"
        if forced.reaction is not None and forced.reaction.kind == "forced" and not is_rate:
            call.run.was_refused(call.key, used)
        if not forced.is_smaller:
            await self._report(call, forced.unsent())
            raise error if is_rate else _overflow(error) from error
        await self._report(call, forced)
        return forced

    async def _report(self, call: Call, planned: Plan) -> None:
        """Tell what was decided, and the claims of the view about to be sent."""
        call.state.saw_cache(planned)
        await self._report_store(call)
        if planned.decision is not None:
            decision = planned.decision.replace(
                ms=round((self._clock.monotonic() - call.began) * 1000),
                health=self._inputs.health(planned.entry),
            )
            await call.request.report(CompactionFinished(decision.to_dict(), planned.blobs))
        if not planned.sends:
            return
        facts, sent = dict(planned.facts), sent_view(planned, call.request)
        if sent is not None and planned.reading is not None:
            facts["prefix"] = compare(call.state.sent, sent, planned.reading.hashes)
        call.state.sent = sent
        call.state.shortened = planned.shortened
        await call.request.report(ViewPlanned(planned.claims, facts))

    async def _report_store(self, call: Call) -> None:
        """Tell once in a run that the store does not work."""
        failed, self._access.failed = self._access.failed, 0
        if failed and not call.run.store_noted:
            call.run.store_noted = True
            await call.request.report(Note("store_unavailable", REASONS["store_unavailable"]))


def _filled(request: ChatRequest, planned: Plan) -> ChatRequest:
    return request.replace(messages=planned.view, options=planned.options)


def _overflow(error: ModelError) -> ModelError:
    """Return the error of a request that no smaller view could replace."""
    if error.kind == "context_overflow":
        return error
    return ModelError(
        "context_overflow",
        str(error),
        status=error.status,
        provider=error.provider,
        partial=error.partial,
        refusal=error.refusal,
        cause=error,
    )


def _settings(numbers: Mapping[str, Any]) -> Settings:
    known = {field.name for field in dataclasses.fields(Settings)}
    unknown = sorted(set(numbers) - known)
    if unknown:
        message = f"compaction: there is no setting {unknown[0]!r}"
        raise AssemblyError("invalid_option", message, unknown[0])
    return Settings(**numbers)
