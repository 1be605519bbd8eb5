"""HTTP to a provider: connections, timeouts, limits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.providers.failures import Source, Timeouts
from backscroll.providers.transport import Incoming, Transport
from processes import free_port
from scripted_provider import Hold, Reply, ScriptedProvider

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
STREAM = BODY[:-1] + b',"stream":true}'
SOURCE = Source("generic", "127.0.0.1", ("KEY-PROV-789",))


@asynccontextmanager
async def transport(**options: Any) -> AsyncIterator[Transport]:
    """Give a transport and close it."""
    made = Transport(SOURCE, **{"trust_env": False, **options})
    try:
        yield made
    finally:
        await made.aclose()


async def post(made: Transport, url: str, body: bytes = BODY) -> str:
    """Send a request and return the text of the answer."""
    reply = await made.request("POST", f"{url}/v1/chat/completions", {"x-a": "1"}, body)
    return reply.text


async def events(incoming: Incoming) -> list[str]:
    """Read all events of a stream."""
    found: list[str] = []
    while (batch := await incoming.pull()) is not None:
        found += batch
    return found


async def test_an_answer_comes_whole(provider: ScriptedProvider) -> None:
    """Status, headers and text of an answer; the headers of the request are sent."""
    provider.add(Reply(body="hé", headers={"x-b": "2"}))
    url = f"{provider.url}/v1/chat/completions"

    async with transport() as made:
        reply = await made.request("POST", url, {"x-a": "1"}, BODY)

    assert (reply.status, reply.text, reply.headers["x-b"]) == (200, "hé", "2")
    assert provider.requests[0].headers["x-a"] == "1"
    assert provider.requests[0].body == BODY


async def test_connections_are_used_again(provider: ScriptedProvider) -> None:
    """Two requests in a row share one connection."""
    provider.otherwise(Reply(text="a"))

    async with transport() as made:
        await post(made, provider.url)
        await post(made, provider.url)

    assert [record.connection for record in provider.requests] == [1, 1]


async def test_a_dead_connection_is_replaced_at_once(provider: ScriptedProvider) -> None:
    """HTTP2: a server that gave up an idle connection gets the request once more, unasked."""
    provider.otherwise(Reply(text="a"))
    provider.configure(drop_reused=1)

    async with transport() as made:
        await post(made, provider.url)
        await post(made, provider.url)

    assert [record.connection for record in provider.requests] == [1, 1, 2]


async def test_a_new_connection_that_dies_is_a_network_error(provider: ScriptedProvider) -> None:
    """Only a reused connection is replaced; the rest is for the retry policy."""
    provider.configure(drop_all=1)

    async with transport() as made:
        with pytest.raises(ModelError, match=r"127\.0\.0\.1: Server disconnected") as raised:
            await post(made, provider.url)

    assert (raised.value.kind, raised.value.retryable) == ("network", True)
    assert len(provider.requests) == 1


async def test_a_request_is_sent_once_more_and_not_again(provider: ScriptedProvider) -> None:
    """A server that drops the repeated request too gets no third one."""
    provider.otherwise(Reply(text="a"))

    async with transport() as made:
        await post(made, provider.url)
        provider.configure(drop_all=2)
        with pytest.raises(ModelError, match="disconnected"):
            await post(made, provider.url)

    assert len(provider.requests) == 3


async def test_a_refused_connection_is_a_network_error() -> None:
    """HTTP4: nobody listens."""
    async with transport() as made:
        with pytest.raises(ModelError) as raised:
            await post(made, f"http://127.0.0.1:{free_port()}")

    assert raised.value.kind == "network"


@pytest.fixture
def full_port() -> Iterator[int]:
    """Give a port whose queue of new connections is full, so that none is accepted."""
    with ExitStack() as stack:
        server = stack.enter_context(closing(socket.socket()))
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(closing(socket.socket()))
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


async def test_a_connect_timeout_is_a_timeout(full_port: int) -> None:
    """HTTP4: no connection within the time says so."""
    async with transport(timeouts=Timeouts(connect_s=0.2)) as made:
        with pytest.raises(ModelError, match=r"no connection within 0\.2 s") as raised:
            await post(made, f"http://127.0.0.1:{full_port}")

    assert raised.value.kind == "timeout"


async def test_a_read_timeout_is_a_timeout(provider: ScriptedProvider) -> None:
    """HTTP4: no byte within the time says so, before the headers and inside the body."""
    provider.add(Reply(text="a", hold_after=0), Reply(text="a", hold_after=1))

    async with transport(timeouts=Timeouts(read_s=0.2)) as made:
        for _ in range(2):
            with pytest.raises(ModelError, match=r"no answer within 0\.2 s") as raised:
                await post(made, provider.url, STREAM)
            assert raised.value.kind == "timeout"


async def test_a_pool_timeout_is_a_timeout(provider: ScriptedProvider) -> None:
    """HTTP4: no free connection within the time says so."""
    provider.add(Reply(text="a", hold_after=0))

    async with transport(timeouts=Timeouts(pool_s=0.2), max_connections=1) as made:
        first = asyncio.create_task(post(made, provider.url))
        await provider.await_held()
        with pytest.raises(ModelError, match=r"no free connection within 0\.2 s"):
            await post(made, provider.url)
        provider.release()
        await first


async def test_a_redirect_is_not_followed(provider: ScriptedProvider) -> None:
    """HTTP4: a redirect is an invalid request."""
    provider.add(Reply(status=307, body="", headers={"location": provider.url + "/elsewhere"}))

    async with transport() as made:
        with pytest.raises(ModelError, match="HTTP 307: a redirect") as raised:
            await post(made, provider.url)

    assert raised.value.kind == "invalid_request"
    assert len(provider.requests) == 1


async def test_a_refusal_has_its_wait_and_no_secret(provider: ScriptedProvider) -> None:
    """ERR4: status, Retry-After and message are on the error; the key is not."""
    body = {"error": {"message": "slow down, KEY-PROV-789"}}
    provider.add(Reply(status=429, body=body, headers={"retry-after": "7"}))

    async with transport() as made:
        with pytest.raises(ModelError, match=r"^slow down, \*\*\*$") as raised:
            await post(made, provider.url)

    assert (raised.value.status, raised.value.retry_after_s) == (429, 7.0)


async def test_a_refusal_cut_off_is_read_as_far_as_it_came(provider: ScriptedProvider) -> None:
    """An error body that stalls still gives the status, and what it said so far."""
    chunks = ("upstream ", Hold())
    provider.add(Reply(status=503, chunks=chunks))

    async with transport(timeouts=Timeouts(read_s=0.2)) as made:
        with pytest.raises(ModelError) as raised:
            await post(made, provider.url, STREAM)

    assert (raised.value.kind, raised.value.status) == ("provider", 503)


async def test_a_body_too_large_is_a_parse_error(provider: ScriptedProvider) -> None:
    """A body over the limit is not read to its end."""
    provider.add(Reply(body="x" * 5000))

    async with transport(max_body_bytes=1000) as made:
        with pytest.raises(ModelError, match="at most 1000 bytes") as raised:
            await post(made, provider.url)

    assert raised.value.kind == "parse"


async def test_a_body_cut_off_is_a_network_error(provider: ScriptedProvider) -> None:
    """A whole answer whose connection closes inside the body cannot be used."""
    provider.add(Reply(text="a", end="drop"))

    async with transport() as made:
        with pytest.raises(ModelError) as raised:
            await post(made, provider.url, STREAM)

    assert raised.value.kind == "network"


async def test_a_stream_is_read_as_events(provider: ScriptedProvider) -> None:
    """Events come one after the other; a clean end leaves `broken` empty."""
    provider.add(Reply(chunks=("data: a\n\n", "data: b\n\n"), split=1, crlf=True))
    url = f"{provider.url}/v1/chat/completions"

    async with transport() as made, made.open("POST", url, {}, STREAM) as incoming:
        found = await events(incoming)
        assert await incoming.pull() is None

    assert found == ["a", "b", "[DONE]"]
    assert incoming.broken is None and not incoming.empty
    assert incoming.content_type == "text/event-stream"


async def test_a_stream_cut_off_says_so(provider: ScriptedProvider) -> None:
    """A body that breaks ends the events and sets `broken`."""
    provider.add(Reply(chunks=("data: a\n\n", "data: b"), end="drop"))
    url = f"{provider.url}/v1/chat/completions"

    async with transport() as made, made.open("POST", url, {}, STREAM) as incoming:
        found = await events(incoming)

    assert found == ["a", "b"]
    assert incoming.broken is not None


@pytest.mark.parametrize("end", ["open", "drop", "reset"])
async def test_after_the_marker_any_end_is_fine(provider: ScriptedProvider, end: Any) -> None:
    """While lingering, a timeout, an end or a reset is no error."""
    provider.add(Reply(chunks=("data: a\n\n", Hold()), end=end))
    url = f"{provider.url}/v1/chat/completions"

    async with transport() as made, made.open("POST", url, {}, STREAM) as incoming:
        assert await incoming.pull() == ["a"]
        incoming.linger(5)
        incoming.linger(0.2)
        await provider.await_held()
        provider.release()
        rest = await events(incoming)

    assert rest == [] and incoming.broken is None


async def test_a_read_timeout_while_lingering_is_an_end(provider: ScriptedProvider) -> None:
    """The read timeout is no error once the marker was seen."""
    provider.add(Reply(chunks=("data: a\n\n", Hold())))
    url = f"{provider.url}/v1/chat/completions"

    async with (
        transport(timeouts=Timeouts(read_s=0.1)) as made,
        made.open("POST", url, {}, STREAM) as incoming,
    ):
        await incoming.pull()
        incoming.linger(5)
        assert await events(incoming) == []


async def test_leaving_early_closes_the_connection(provider: ScriptedProvider) -> None:
    """HTTP3: a body that is not read to its end is closed, not drained."""
    provider.add(Reply(text="a b c", hold_after=2))
    url = f"{provider.url}/v1/chat/completions"

    async with transport() as made:
        async with made.open("POST", url, {}, STREAM) as incoming:
            await incoming.pull()
        await provider.await_closed(0)


async def test_the_environments_proxy_is_used(
    provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxy settings are honoured unless `trust_env` is off."""
    monkeypatch.setenv("HTTP_PROXY", provider.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    provider.add(Reply(body="through"))

    async with transport(trust_env=True) as made:
        assert await post(made, "http://model.invalid") == "through"

    assert provider.requests[0].path == "http://model.invalid/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "value"), [("SSL_CERT_FILE", "/no/such/file"), ("HTTP_PROXY", "gopher://x")]
)
async def test_settings_that_do_not_work_have_a_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A certificate file or a proxy that cannot be used is named in the error."""
    monkeypatch.setenv(name, value)

    async with transport(trust_env=True) as made:
        with pytest.raises(ModelError, match="proxy or certificate settings") as raised:
            await post(made, "http://model.invalid")

    assert raised.value.kind == "invalid_request"


@pytest.mark.parametrize("url", ["http://h:x/", "ftp://127.0.0.1/"])
async def test_a_url_that_cannot_be_used_has_a_sentence(url: str) -> None:
    """What the HTTP client refuses to send is an invalid request."""
    async with transport() as made:
        with pytest.raises(ModelError) as raised:
            await made.request("GET", url, {})

    assert raised.value.kind == "invalid_request"


def test_each_event_loop_has_its_own_connections(provider: ScriptedProvider) -> None:
    """One transport serves two loops, one after the other."""
    provider.otherwise(Reply(text="a"))
    made = Transport(SOURCE, trust_env=False)

    async def once() -> None:
        await post(made, provider.url)
        await made.aclose()
        await made.aclose()

    asyncio.run(once())
    asyncio.run(once())

    assert [record.connection for record in provider.requests] == [1, 2]
