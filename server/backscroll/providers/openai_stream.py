"""Reading a chat completions stream: data of events in, deltas out; knows no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from backscroll.kernel.canon import parse_json
from backscroll.kernel.errors import ModelError
from backscroll.kernel.model import Delta, Finished, ModelResponse, Partial, Reasoning, Text
from backscroll.kernel.usage import FinishReason, Usage, finish_reason
from backscroll.providers.failures import Source, broken_off, from_error
from backscroll.providers.openai_calls import Calls
from backscroll.providers.openai_response import error_in, read_content, read_reasoning, read_usage
from backscroll.providers.overflow import recognise
from backscroll.providers.reply import Channel, reply_message

DONE = "[DONE]"


class StreamReader:
    """Turns one streamed reply into deltas and, at its end, into a complete response."""

    def __init__(
        self, source: Source, offered: Iterable[str], mint: Callable[[], str], broken: str
    ) -> None:
        """`offered` are the names of the request's tools, `mint` makes ids for calls without.

        `broken` is what the error of a reply says that ends before its finish marker.
        """
        self.finished = False
        self.done = False
        self._closed = False
        self._source, self._broken = source, broken
        self._legacy = True
        self._calls = Calls(offered, mint)
        self._text, self._reasoning = Channel(), Channel()
        self._reason: FinishReason | None = None
        self._usage: Usage | None = None
        self._id: str | None = None
        self._model: str | None = None

    def feed(self, data: str) -> list[Delta]:
        """Return the deltas of one event; raises the mapped error of an error object.

        `finished` is true after a finish marker, `done` when nothing is expected to follow it.
        """
        if self._closed or data.strip() == DONE:
            self._closed = self.finished = self.done = True
            return []
        event = self._parse(data)
        if event.get("error") or event.get("object") == "error":
            raise from_error(error_in(event), self._source, partial=self.partial())
        if event.get("usage"):
            self._usage = read_usage(event["usage"]) or self._usage
            self.done = self.finished
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return []
        if self._id is None:
            self._name(event)
        return self._choice(choices[0])

    def finish(self) -> list[Delta]:
        """Return the last deltas, `Finished` at their end; call it once, when the body has ended.

        Raises `incomplete_stream` when there was no finish marker.
        """
        if not self.finished:
            raise broken_off(self._source, self._broken, self.partial())
        out: list[Delta] = [
            *(Reasoning(rest) for rest in (self._reasoning.end(),) if rest),
            *(Text(rest) for rest in (self._text.end(),) if rest),
            *self._calls.finish(),
        ]
        by_calls = FinishReason.TOOL_CALLS if self._calls else FinishReason.STOP
        response = ModelResponse(
            reply_message(self._text.whole(), self._reasoning.whole(), self._calls.read()),
            self._usage,
            self._reason or by_calls,
            self._id,
            self._model,
            self._source.provider,
        )
        return [*out, Finished(response)]

    def partial(self) -> Partial:
        """Return what has arrived so far."""
        return Partial(self._text.whole(), self._reasoning.whole(), self._calls.raw(), self._usage)

    def _choice(self, choice: Mapping[str, Any]) -> list[Delta]:
        out: list[Delta] = []
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(delta, out)
        if (reason := choice.get("finish_reason")) is not None:
            self.finished = True
            if self._reason is not FinishReason.REFUSAL:
                self._reason = finish_reason(str(reason))
        if choice.get("usage"):
            self._usage = read_usage(choice["usage"]) or self._usage
        return out

    def _delta(self, delta: Mapping[str, Any], out: list[Delta]) -> None:
        content, thought = delta.get("content"), read_reasoning(delta)
        if content and not isinstance(content, str):
            content, more = read_content(content)
            thought = thought or more
        if thought and (piece := self._reasoning.take(thought)):
            out.append(Reasoning(piece))
        if content and (piece := self._text.take(content)):
            out.append(Text(piece))
        refused = delta.get("refusal")
        if isinstance(refused, str) and refused:
            self._reason = FinishReason.REFUSAL
            if piece := self._text.take(refused):
                out.append(Text(piece))
        calls, legacy = delta.get("tool_calls"), delta.get("function_call")
        for fragment in calls if isinstance(calls, list) else ():
            if isinstance(fragment, dict):
                self._legacy = False
                out.extend(self._calls.feed(fragment))
        # Some servers send the old form beside the new one; then it says nothing new.
        if isinstance(legacy, dict) and self._legacy:
            out.extend(self._calls.feed({"function": legacy}))

    def _name(self, event: Mapping[str, Any]) -> None:
        found, model = event.get("id"), event.get("model")
        self._id = found if isinstance(found, str) else None
        self._model = model if isinstance(model, str) else None

    def _parse(self, data: str) -> Mapping[str, Any]:
        try:
            event = parse_json(data)
        except (ValueError, RecursionError):
            event = data
        if isinstance(event, dict):
            return event
        # Some servers put the sentence of an error where an object belongs.
        if recognise(200, None, event).cls != "other":
            raise from_error(event, self._source, partial=self.partial())
        message = f"expected an event with a JSON object, got {data[:200]!r}"
        raise ModelError(
            "parse",
            self._source.clean(message),
            provider=self._source.provider,
            partial=self.partial(),
        )
