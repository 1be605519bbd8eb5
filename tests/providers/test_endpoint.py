"""Base URLs, keys and what must not be shown."""

from __future__ import annotations

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.providers.endpoint import authorization, clean_key, read_endpoint, secrets_of

ROUTE = "/chat/completions"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        (" http://localhost:8080/v1/ ", "http://localhost:8080/v1/chat/completions"),
        ("http://[::1]:8080", "http://[::1]:8080/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("https://x/deployments/d?api-version=1", "https://x/deployments/d/chat/completions?api-version=1"),
        ("https://u:p%40ss@h/v1", "https://h/v1/chat/completions"),
    ],
)  # fmt: skip
def test_a_base_url_is_read(given: str, url: str) -> None:
    """Slashes, a pasted route, a query and credentials are all read as people mean them."""
    assert read_endpoint(given, ROUTE).url(ROUTE) == url


def test_a_path_at_the_root_leaves_the_base_out() -> None:
    """A server's own routes lie beside the API, not below it."""
    assert read_endpoint("http://h:1/v1", ROUTE).root("/props") == "http://h:1/props"


@pytest.mark.parametrize("given", ["localhost:8080/v1", "ftp://h/v1", "", "http://", "http://h:x"])
def test_a_wrong_base_url_says_what_is_expected(given: str) -> None:
    """A base URL without scheme or host is refused with a sentence."""
    with pytest.raises(AssemblyError, match="expected http://… or https://…") as raised:
        read_endpoint(given, ROUTE)

    assert raised.value.kind == "invalid_option"


def test_a_wrong_base_url_with_a_password_is_not_shown() -> None:
    """security-05: a URL that may hold a password is not repeated in the error."""
    with pytest.raises(AssemblyError) as raised:
        read_endpoint("ftp://u:PASSWORD-1@h", ROUTE)

    assert "PASSWORD-1" not in str(raised.value)


def test_credentials_are_no_part_of_what_is_shown() -> None:
    """The repr holds neither user nor password."""
    endpoint = read_endpoint("https://user-1:PASSWORD-1@h/v1", ROUTE)

    assert endpoint.credentials == "user-1:PASSWORD-1"
    assert "PASSWORD-1" not in repr(endpoint)


def test_the_key_goes_into_the_header_its_provider_reads() -> None:
    """Bearer by default, another header by name; the URL's credentials without a key."""
    endpoint = read_endpoint("https://u:p@h", ROUTE)

    assert authorization(endpoint, "k", "bearer") == {"authorization": "Bearer k"}
    assert authorization(endpoint, "k", "api-key") == {"api-key": "k"}
    assert authorization(endpoint, None, "bearer") == {"authorization": "Basic dTpw"}
    assert authorization(read_endpoint("https://h", ROUTE), None, "bearer") == {}


def test_a_key_is_cleaned() -> None:
    """Blanks and line ends around a key are cut; an empty one is none."""
    assert clean_key(" key\n", "K") == "key"
    assert clean_key("  ", "K") is None
    assert clean_key(None, "K") is None


@pytest.mark.parametrize("key", ["KEY-ÄÖ-123", "KEY-1\nKEY-2"])
def test_a_key_no_header_can_carry_is_refused_unseen(key: str) -> None:
    """The error names the setting, never the key."""
    with pytest.raises(AssemblyError, match="OPENAI_API_KEY: expected printable") as raised:
        clean_key(key, "OPENAI_API_KEY")

    assert "KEY-1" not in str(raised.value) and "KEY-Ä" not in str(raised.value)


def test_secrets_are_keys_passwords_and_telling_headers() -> None:
    """What must not be shown: the key, the password, and headers that carry one."""
    endpoint = read_endpoint("https://user:PASSWORD-1@h", ROUTE)
    headers = {"Authorization": "Bearer TOKEN-12", "x-title": "my application"}

    found = secrets_of(endpoint, "KEY-PROV-789", headers)

    assert set(found) == {
        "KEY-PROV-789", "user:PASSWORD-1", "PASSWORD-1", "Bearer TOKEN-12", "TOKEN-12",
    }  # fmt: skip


def test_a_key_in_the_query_is_a_secret() -> None:
    """security-05: gateways that take their key in the URL: it is sent, and never shown."""
    endpoint = read_endpoint("https://h/v1?api-version=2024-10-21&api-key=KEY%2FPROV-789", ROUTE)

    assert endpoint.url(ROUTE).endswith("?api-version=2024-10-21&api-key=KEY%2FPROV-789")
    assert set(secrets_of(endpoint, None, None)) == {"KEY/PROV-789", "KEY%2FPROV-789"}
    assert "PROV-789" not in repr(endpoint)


def test_placeholder_keys_are_no_secrets() -> None:
    """A short dummy key of a local server would garble every message."""
    assert secrets_of(read_endpoint("http://h", ROUTE), "none", None) == ()
