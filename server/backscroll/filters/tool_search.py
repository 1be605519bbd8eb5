"""ToolSearch: shows a model few tools, and a tool that finds the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from backscroll.filters.kept import Kept
from backscroll.filters.options import check_counts
from backscroll.filters.tool_index import KeywordIndex, ToolIndex
from backscroll.kernel.filter import ChatHandler, Filter
from backscroll.kernel.model import Named
from backscroll.kernel.request import ChatRequest, ChatResponse
from backscroll.kernel.texts import Texts
from backscroll.kernel.tool import Slot, Tool, ToolContext, ToolResult, ToolSpec

SLOT = "discovered_tools"
"""The name in the context under which discoveries are kept."""

BUILT_IN = frozenset({"recall"})
"""Tools an agent adds itself: shown always, or a prompt cache would break when they appear."""

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool should do"}},
    "required": ["query"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class _Catalog:
    """The tools of a conversation, as its last model call could have used them."""

    tools: tuple[ToolSpec, ...] = ()
    texts: Texts = field(default_factory=Texts)


class ToolSearch(Filter):
    """Shows the search tool, the tools in `always`, and what was found in this turn.

    What is not shown may be called all the same. Pauses keep discoveries; later turns have them
    if the caller passes the context on. Give it to an agent as `tool_search`; `finder` is the tool.
    """

    name = "tool_search"

    def __init__(
        self,
        index: ToolIndex | None = None,
        limit: int = 5,
        always: Collection[str] = (),
        tool_name: str = "search_tools",
    ) -> None:
        check_counts(limit=limit)
        self._index: ToolIndex = index or KeywordIndex()
        self._built: tuple[ToolSpec, ...] | None = None
        self._limit, self._always = limit, frozenset(always)
        self._catalogs: Kept[_Catalog] = Kept(_Catalog)
        self.finder = Tool.from_schema(tool_name, Texts().search_description, SCHEMA, self._search)
        self.slots = {SLOT: Slot(list, _union)}

    async def chat(self, request: ChatRequest, chain: ChatHandler) -> ChatResponse:
        """Show the model what it needs for this call."""
        return await chain(self.narrowed(request))

    def narrowed(self, request: ChatRequest) -> ChatRequest:
        """Return a request with the tools that are shown; its own are what can be found."""
        catalog = tuple(tool for tool in request.tools if tool.name != self.finder.name)
        if not catalog:
            return request
        kept = self._catalogs.of(request.conversation_id)
        kept.tools, kept.texts = catalog, request.texts
        wanted = self._always.union(BUILT_IN, request.context.get(SLOT, ()))
        if isinstance(request.tool_choice, Named):
            wanted = wanted.union([request.tool_choice.name])
        search = replace(self.finder.spec(), description=request.texts.search_description)
        shown = (search, *(tool for tool in catalog if tool.name in wanted))
        return request.replace(tools=shown)

    async def _search(self, args: dict[str, Any], context: ToolContext) -> Any:
        """Find tools: the next call of the turn shows them."""
        kept = self._catalogs.of(context.conversation_id)
        query = args["query"]
        names = self._found(kept.tools, query) if query.strip() else []
        by_name = {tool.name: tool for tool in kept.tools}
        hits = [by_name[name] for name in names if name in by_name]
        if not hits:
            return kept.texts.search_miss.format(query=query)
        lines = [kept.texts.search_hit.format(count=len(hits))]
        lines += [f"- {tool.name}: {tool.description}" for tool in hits]
        return ToolResult("\n".join(lines), writes={SLOT: [tool.name for tool in hits]})

    def _found(self, catalog: tuple[ToolSpec, ...], query: str) -> list[str]:
        # One index serves all conversations: built and asked without a pause between.
        if self._built != catalog:
            self._index.rebuild(catalog)
            self._built = catalog
        return self._index.search(query, self._limit)


def _union(seen: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*seen, *new]))
