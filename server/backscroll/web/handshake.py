"""The beginning of an AG-UI WebSocket: accepted, refused for a bad address, or served."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from backscroll.agui.refusal import RequestRefused
from backscroll.agui.refused import refusal_event
from backscroll.kernel.errors import StoreError
from backscroll.web.services import Services
from backscroll.web.serving import abort_of
from backscroll.web.socket_query import answer_subprotocol, read_query
from backscroll.web.websocket import AguiSocket
from backscroll.web.writer import PeerGone, SocketWriter


async def agui_websocket(
    services: Services, scope: Scope, receive: Receive, send: Send, query: Mapping[str, str]
) -> None:
    """Serve one socket until it ends."""
    await receive()
    offered = tuple(scope.get("subprotocols", ()))
    await send({"type": "websocket.accept", "subprotocol": answer_subprotocol(offered)})
    writer = SocketWriter(send, abort_of(scope), services.limits.send_timeout_s)
    try:
        services.check_agent(scope)
        asked = read_query(query, offered)
    except RequestRefused as refusal:
        await _refuse_socket(services, writer, refusal)
        return
    services.worker.connections += 1
    try:
        await AguiSocket(services, asked, receive, writer).serve()
    finally:
        services.worker.connections -= 1
        writer.gone()


async def _refuse_socket(services: Services, writer: SocketWriter, refusal: RequestRefused) -> None:
    try:
        await writer.text(refusal_event(refusal, await services.worker.log.now()))
        await writer.close(1008, refusal.code)
    except (PeerGone, StoreError):
        await writer.close(1008, refusal.code)
