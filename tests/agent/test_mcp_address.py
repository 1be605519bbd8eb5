"""An address names a server without what is secret about it."""

from __future__ import annotations

import sys

import pytest
from backscroll.agent.mcp_address import Address, Endpoint, Program
from mcp import Client
from mcp_servers import PROGRAM


def test_an_endpoint_hides_its_secrets() -> None:
    """Neither password, query nor header is in the text; the headers' values are told apart."""
    url = "https://me:word@host:8443/mcp?key=k#x"
    address = Endpoint(url, {"authorization": "Bearer abc", "x-key": "z"}, 1.0, 2.0)

    assert str(address) == "https://host:8443/mcp"
    assert address.secrets == ("Bearer abc", "z", "abc", "z")


@pytest.mark.parametrize("address", [Program((sys.executable, "-m", "x", "--key", "k"))])
def test_a_program_is_named_without_arguments(address: Address) -> None:
    """Arguments may hold keys, so only the program itself is named."""
    assert str(address) == sys.executable and address.secrets == ()


async def test_a_program_gets_its_variables() -> None:
    """It starts in the given folder with the given variables, and answers."""
    async with Client(Program(tuple(PROGRAM), {"CLOCK": "on"}, "/").transport()) as client:
        tools = (await client.list_tools()).tools

    assert "add" in {tool.name for tool in tools}
