"""The yardstick of the delivery bench: uvicorn sending prebuilt frames over a WebSocket."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Send as many equal frames as the client asks for, then close."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
        return
    await receive()
    await send({"type": "websocket.accept"})
    asked = (await receive())["text"].split()
    frame = "x" * int(asked[1])
    for _ in range(int(asked[0])):
        await send({"type": "websocket.send", "text": frame})
    await send({"type": "websocket.close", "code": 1000})


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="warning",
    )
