"""HTTPS to a provider: whose certificates are trusted, and which way the connection takes."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from backscroll.kernel.errors import ModelError
from backscroll.providers.failures import Source
from backscroll.providers.transport import Transport
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from cutting_proxy import listening

PASSWORD = "PASSWORD-9"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a file with the key and the self-signed certificate of 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of one's own")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(private + made.public_bytes(pem))
    return path


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin without proxies and certificates of the environment."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


class Greeter(BaseHTTPRequestHandler):
    """Greets whoever asks."""

    def do_GET(self) -> None:
        """Answer with a greeting."""
        self.send_response(200)
        self.send_header("content-length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url(certificate: Path) -> Iterator[str]:
    """Serve HTTPS in a thread, where a handshake that fails disturbs no event loop."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Greeter) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join(10)


class Proxy:
    """An HTTP proxy that tunnels, or refuses; keeps the heads of what it was asked."""

    def __init__(self, refuses: bool = False) -> None:
        self.heads: list[str] = []
        self._refuses = refuses

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve; give the proxy's host and port."""
        async with listening(self._serve) as server:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        with closing(writer):
            if self._refuses:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                await writer.drain()
                return
            host, port = head.split(" ")[1].split(":")
            there, back = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            with closing(back):
                await asyncio.gather(_pump(reader, back), _pump(there, writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(4096):
        target.write(data)
    if target.can_write_eof():
        target.write_eof()


async def fetch(url: str, **options: Any) -> str:
    """Ask once and return the text of the answer."""
    made = Transport(Source("generic", "the-host"), **options)
    try:
        return (await made.request("GET", url, {})).text
    finally:
        await made.aclose()


async def test_an_unknown_certificate_is_a_network_error(url: str) -> None:
    """A server whose certificate nobody vouches for is not talked to, and the error says why."""
    with pytest.raises(ModelError, match="CERTIFICATE_VERIFY_FAILED") as raised:
        await fetch(url)

    assert raised.value.kind == "network"


async def test_certificates_of_the_environment_are_trusted(
    url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSL_CERT_FILE is honoured unless `trust_env` is off."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    assert await fetch(url) == "hello"
    with pytest.raises(ModelError, match="CERTIFICATE_VERIFY_FAILED"):
        await fetch(url, trust_env=False)


async def test_a_context_of_ones_own_is_used(url: str, certificate: Path) -> None:
    """`verify` takes a context; False trusts anybody."""
    context = ssl.create_default_context(cafile=str(certificate))

    assert await fetch(url, verify=context) == "hello"
    assert await fetch(url, verify=False) == "hello"


async def test_https_goes_through_the_environments_proxy(
    url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY is asked for a tunnel, with its credentials; NO_PROXY goes around it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    proxy = Proxy()
    async with proxy.serving() as place:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@{place}")
        through = await fetch(url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        around = await fetch(url)

    assert (through, around, len(proxy.heads)) == ("hello", "hello", 1)
    token = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert proxy.heads[0].startswith("CONNECT 127.0.0.1:")
    assert f"basic {token}".lower() in proxy.heads[0].lower()


async def test_a_proxy_that_refuses_is_a_network_error(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what the proxy said, without its password."""
    async with Proxy(refuses=True).serving() as place:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:{PASSWORD}@{place}")
        with pytest.raises(ModelError, match="407 Proxy Authentication Required") as raised:
            await fetch(url)

    assert raised.value.kind == "network" and PASSWORD not in repr(raised.value)
