"""An answer that is streamed for saving; a reader that takes none of it is dropped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from backscroll.web.serving import abort_of
from backscroll.web.writer import PeerGone

logger = logging.getLogger(__name__)


class Download(StreamingResponse):
    """Lines as they are read, each part written within a time."""

    def __init__(
        self,
        lines: AsyncIterator[bytes],
        headers: Mapping[str, str],
        media_type: str,
        timeout_s: float,
    ) -> None:
        super().__init__(lines, 200, headers, media_type)
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end, or until the reader leaves or stalls."""

        async def timed(message: Message) -> None:
            try:
                async with asyncio.timeout(self._timeout_s):
                    await send(message)
            except TimeoutError as error:
                raise PeerGone from error

        try:
            await super().__call__(scope, receive, timed)
        except PeerGone:
            logger.warning("a reader took nothing of a download for %s s", self._timeout_s)
            abort = abort_of(scope)
            if abort is not None:
                abort()
                # Returns once the connection is gone; only then is an unfinished answer no fault.
                await receive()
