"""The messages of a chat completions body, in the shape its server takes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from backscroll.kernel.canon import canonical_json
from backscroll.kernel.message import Message, Role, ToolCall
from backscroll.kernel.model import ModelProfile, ModelRequest
from backscroll.providers.openai_parts import PartRules


@dataclass(frozen=True, slots=True)
class _IdForm:
    """Ids a server takes as they are, and how others are written from their hash."""

    pattern: str
    prefix: str
    bytes: int
    digits: int


_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CALL_IDS = {
    "alnum9": _IdForm("[A-Za-z0-9]{9}", "", 8, 9),
    "short": _IdForm(r"[\s\S]{1,40}", "call_", 18, 24),
}

_NAME = re.compile(r"[^A-Za-z0-9_-]")


class WireMessages:
    """The message list of one request."""

    def __init__(self, request: ModelRequest, profile: ModelProfile, provider: str) -> None:
        self._request, self._profile, self._texts = request, profile, request.texts
        self._rules = PartRules(profile, provider)

    def build(self) -> list[dict[str, Any]]:
        """Return the list, system text first."""
        profile = self._profile
        hoists = profile.single_system or profile.system_role == "user"
        first, rest = list(self._request.system), []
        for message in self._request.messages:
            if message.role is Role.SYSTEM and hoists:
                first.append(self._rules.text(message.for_model(), "system"))
            elif (wire := self._message(message)) is not None:
                rest.append(wire)
        if profile.alternate_roles:
            rest = self._alternating(rest)
        if profile.reply_after_tools:
            rest = self._replied(rest)
        system = "\n".join(text for text in first if text.strip())
        if not system:
            return rest
        if profile.system_role == "user":
            return _folded(system, rest)
        return [{"role": profile.system_role, "content": system}, *rest]

    def _message(self, message: Message) -> dict[str, Any] | None:
        if message.role is Role.USER:
            return {"role": "user", "content": self._user_content(message)}
        if message.role is Role.ASSISTANT:
            return self._assistant(message)
        if message.role is Role.TOOL:
            return self._result(message)
        text = self._rules.text(message.for_model(), "system")
        return {"role": self._profile.system_role, "content": text} if text.strip() else None

    def _user_content(self, message: Message) -> str | list[dict[str, Any]]:
        content = message.for_model()
        if content is None or isinstance(content, str):
            return content if content and content.strip() else self._texts.empty_message
        return self._rules.parts(content, "user") or self._texts.empty_message

    def _assistant(self, message: Message) -> dict[str, Any] | None:
        content = message.for_model()
        said: Any = content
        if isinstance(content, tuple):
            parts = self._rules.parts(content, "assistant")
            plain = all(part["type"] == "text" for part in parts)
            said = "".join(part["text"] for part in parts) if plain else parts
        if isinstance(said, str) and not said.strip():
            said = None
        if said is None and not message.tool_calls:
            return None
        empty = None if self._profile.null_content else ""
        out = {"role": "assistant", "content": empty if said is None else said}
        if self._replays(message):
            # Half a thought is none, but a server that demands the field demands it here, too.
            thought = None if message.incomplete else message.reasoning
            out[self._profile.reasoning_field] = thought or ""
        if message.tool_calls:
            out["tool_calls"] = [self._call(call) for call in message.tool_calls]
        return out

    def _replays(self, message: Message) -> bool:
        wanted = self._profile.replay_reasoning
        return wanted == "always" or (wanted == "tool_calls" and bool(message.tool_calls))

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": _wire_name(call.name), "arguments": _arguments(call)}
        return {"id": self._call_id(call.id), "type": "function", "function": function}

    def _result(self, message: Message) -> dict[str, Any]:
        text = self._rules.text(message.for_model(), "tool")
        out = {"role": "tool", "tool_call_id": self._call_id(message.tool_call_id or "")}
        if self._profile.tool_name_field:
            out["name"] = _wire_name(message.name or "")
        return {**out, "content": text if text.strip() else self._texts.tool_empty}

    def _call_id(self, call_id: str) -> str:
        form = _CALL_IDS.get(self._profile.call_id_style)
        if form is None or re.fullmatch(form.pattern, call_id):
            return call_id
        digest = hashlib.sha256(call_id.encode("utf-8", "replace")).digest()
        number = int.from_bytes(digest[: form.bytes])
        digits = (number // len(_ALPHABET) ** place for place in range(form.digits))
        return form.prefix + "".join(_ALPHABET[digit % len(_ALPHABET)] for digit in digits)

    def _alternating(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Merge neighbours of one role, and let a user begin, as strict chat templates demand."""
        out: list[dict[str, Any]] = []
        for message in messages:
            if not out and message["role"] == "assistant":
                out.append({"role": "user", "content": self._texts.continued})
            if out and out[-1]["role"] == message["role"] != "tool":
                out[-1] = _merged(out[-1], message)
            else:
                out.append(message)
        return out

    def _replied(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put a reply between tool results and the user, for servers that demand one."""
        out: list[dict[str, Any]] = []
        for message in messages:
            if out and out[-1]["role"] == "tool" and message["role"] == "user":
                out.append({"role": "assistant", "content": self._texts.continued})
            out.append(message)
        return out


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    contents = [m["content"] for m in (first, second) if m["content"]]
    out = {**first, "content": _joined(contents) if contents else first["content"]}
    for name in ("reasoning_content", "reasoning"):
        if reasons := [m[name] for m in (first, second) if m.get(name)]:
            out[name] = "\n\n".join(reasons)
    calls = [*first.get("tool_calls", ()), *second.get("tool_calls", ())]
    return {**out, "tool_calls": calls} if calls else out


def _joined(contents: list[Any]) -> Any:
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents)
    lists = ([_text_part(c)] if isinstance(c, str) else c for c in contents)
    return [part for parts in lists for part in parts]


def _folded(system: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the system text in front of the first user message, for servers without that role."""
    for n, message in enumerate(messages):
        if message["role"] == "user":
            whole = {**message, "content": _joined([system, message["content"]])}
            return [*messages[:n], whole, *messages[n + 1 :]]
    return [{"role": "user", "content": system}, *messages]


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _arguments(call: ToolCall) -> str:
    if call.args is None:
        return canonical_json({"invalid_arguments": call.raw or ""})
    return call.raw if call.raw is not None else canonical_json(call.args)


def _wire_name(name: str) -> str:
    """Return a name that servers take, also for one that the model made up."""
    return _NAME.sub("_", name)[:64] or "_"
