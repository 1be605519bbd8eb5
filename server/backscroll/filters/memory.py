"""The memory filter: it owns the history, so that every model call is sent and stored whole."""

from __future__ import annotations

from collections.abc import Sequence

from backscroll.conversation.memory import ChatMemory
from backscroll.conversation.parts import fit
from backscroll.conversation.repair import Repair, repair
from backscroll.conversation.windowed import WindowedChatMemory, full_memory
from backscroll.filters.kept import Kept
from backscroll.kernel.errors import ModelError
from backscroll.kernel.filter import ChatHandler, Filter
from backscroll.kernel.message import Message, Role
from backscroll.kernel.model import Partial
from backscroll.kernel.request import ChatRequest, ChatResponse, Claim, Fate, Note, ViewPlanned

_FATES: dict[str, Fate] = {
    "result_orphaned": "dropped",
    "result_duplicate": "dropped",
    "result_moved": "kept",
    "call_renamed": "rewritten",
    "result_missing": "injected",
}


class MemoryFilter(Filter):
    """Stores what is new, sends the whole history, and stores the reply.

    It must be the outermost chat filter. Without a conversation id it does nothing.
    """

    name = "memory"

    def __init__(self, memory: ChatMemory) -> None:
        self.memory = memory
        self._reported: Kept[set[str]] = Kept(set)

    def bind(self, memory: ChatMemory) -> MemoryFilter:
        """Return this filter on another memory; both remember what was reported."""
        bound = MemoryFilter(memory)
        bound._reported = self._reported
        return bound

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Make one model call over the whole history."""
        conversation_id = request.conversation_id
        if not conversation_id:
            return await chain(request)
        await self.memory.add(conversation_id, request.messages)
        try:
            response = await chain(await self.expand(request))
        except ModelError as error:
            await self._keep_partial(request, conversation_id, error)
            raise
        reply = reply_message(response, request.reply_id)
        (stored,) = await self.memory.add(conversation_id, [reply])
        return response.replace(message=stored)

    async def expand(self, request: ChatRequest) -> ChatRequest:
        """Return the request with the stored history as its messages, repaired and fitted.

        What the view has otherwise than the history is reported: claims always, notes once.
        """
        conversation_id = request.conversation_id or ""
        history, outside = await self._read(conversation_id)
        view, repairs = repair(history, request.texts.no_result)
        misfits: tuple[int, ...] = ()
        if request.model is not None:
            view, misfits = fit(view, request.model, request.texts.part_not_shown)
        hidden = [view[at].id or "" for at in misfits]
        claims = [claim for done in repairs for claim in _repair_claims(done, history)]
        claims += [Claim("rewritten", "part not shown", self.name, message_id=m) for m in hidden]
        claims += [
            Claim("dropped", "outside the window", self.name, message_id=m.id) for m in outside
        ]
        await self._report(request, conversation_id, claims, repairs, hidden)
        taken = frozenset(call.id for m in (*history, *outside) for call in m.tool_calls)
        return request.replace(messages=tuple(view), taken_call_ids=taken)

    async def _read(self, conversation_id: str) -> tuple[list[Message], list[Message]]:
        """Return the history that is sent, and what a window keeps out of it."""
        history = await full_memory(self.memory).get(conversation_id)
        if not isinstance(self.memory, WindowedChatMemory):
            return history, []
        shown = self.memory.shown(history)
        ids = {message.id for message in shown}
        return shown, [message for message in history if message.id not in ids]

    async def _report(
        self,
        request: ChatRequest,
        conversation_id: str,
        claims: Sequence[Claim],
        repairs: Sequence[Repair],
        hidden: Sequence[str],
    ) -> None:
        if request.observer is None:
            return
        if claims:
            await request.report(ViewPlanned(tuple(claims)))
        notes = [Note("repair", done.text, done.key) for done in repairs]
        notes += [
            Note("part_not_shown", f"message {m!r} has parts this model cannot read", f"part:{m}")
            for m in hidden
        ]
        known = self._reported.of(conversation_id)
        for note in notes:
            if note.key not in known:
                known.add(note.key or "")
                await request.report(note)

    async def _keep_partial(
        self, request: ChatRequest, conversation_id: str, error: ModelError
    ) -> None:
        """Store the text of a reply that broke off; calls received in part go into a note."""
        partial = error.partial
        if not isinstance(partial, Partial):
            return
        if partial.text.strip():
            message = Message(
                Role.ASSISTANT,
                partial.text,
                request.reply_id,
                reasoning=partial.reasoning or None,
                incomplete=True,
            )
            await self.memory.add(conversation_id, [message])
        if partial.text or partial.calls:
            data = {"message_id": request.reply_id, "calls": list(partial.calls)}
            await request.report(Note(error.kind, str(error), data=data))


def reply_message(response: ChatResponse, reply_id: str | None) -> Message:
    """Return the message to store for a reply: as it was delivered, with what the model said."""
    message = response.message
    text = message.content or (None if message.tool_calls else "")
    reply = message.replace(id=reply_id or message.id, content=text)
    if response.delivered is None:
        return reply
    shown = response.delivered or (None if message.tool_calls else "")
    said = response.text
    return reply.replace(content=shown, model_content=said, rewritten_by=response.rewritten_by)


def _repair_claims(done: Repair, history: Sequence[Message]) -> list[Claim]:
    fate = _FATES[done.kind]
    if not done.positions:
        return [Claim(fate, done.text, "memory", what=done.kind)]
    return [
        Claim(fate, done.text, "memory", message_id=history[at].id, what=done.kind)
        for at in done.positions
    ]
