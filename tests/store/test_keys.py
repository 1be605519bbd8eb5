"""Key names: one slot per thread, one spelling per thread."""

from __future__ import annotations

import pytest
from backscroll.store.keys import Keys, ThreadKey
from hypothesis import given
from hypothesis import strategies as st

any_text = st.text(st.characters(), min_size=1, max_size=40)


@given(any_text, any_text)
def test_a_key_leads_back_to_its_thread(owner: str, thread_id: str) -> None:
    """Whatever characters owner and id have, lone surrogates too."""
    thread = ThreadKey(owner, thread_id)

    assert ThreadKey.from_key(thread.key) == thread
    assert Keys("bs").thread_of(Keys("bs").meta(thread)) == thread


@given(any_text, any_text, any_text, any_text)
def test_two_threads_never_share_a_key(a: str, b: str, c: str, d: str) -> None:
    """Two different pairs of owner and id have different keys."""
    one, other = ThreadKey(a, b), ThreadKey(c, d)

    assert (one.key == other.key) == (one == other)


@given(any_text)
def test_the_hash_tag_is_the_threads_key(thread_id: str) -> None:
    """No brace of an id moves the hash tag, so every key of a thread is on one slot."""
    thread, keys = ThreadKey("local", thread_id), Keys()

    for name in (*keys.of_thread(thread), keys.bell(thread)):
        assert name[name.index("{") + 1 : name.index("}")] == thread.key


def test_the_operators_key_is_short_for_the_local_owner() -> None:
    """The key leaves `local` out and quotes everything but unreserved characters."""
    assert ThreadKey("local", "support-1").key == "support-1"
    assert ThreadKey("local", "a b").key == "a%20b"
    assert ThreadKey("ann", "support-1").key == "ann/support-1"


@pytest.mark.parametrize("key", ["", "a b", "local/t1", "a/b/c", "/t", "ann/", "%zz", "%ff", "%61"])
def test_refuses_another_spelling(key: str) -> None:
    """A key that `key` would spell otherwise is no key."""
    with pytest.raises(ValueError, match=r"expected the key of a thread|codec can't decode"):
        ThreadKey.from_key(key)


@pytest.mark.parametrize("name", ["bs:threads", "other:{t}:log", "bs:{a b}:log"])
def test_finds_no_thread_in_other_names(name: str) -> None:
    """Only the name of a thread's key leads to a thread."""
    with pytest.raises(ValueError, match="expected the"):
        Keys("bs").thread_of(name)


@pytest.mark.parametrize("prefix", ["", "a{b", "}"])
def test_refuses_a_prefix_with_braces(prefix: str) -> None:
    """Such a prefix would put every thread on one slot."""
    with pytest.raises(ValueError, match="without braces"):
        Keys(prefix)


def test_names_the_indexes() -> None:
    """Owners and run ids are quoted in them."""
    keys = Keys("p")

    assert keys.threads() == "p:threads"
    assert keys.threads("a:b") == "p:threads:a%3Ab"
    assert keys.run_index("ann", "r 1") == "p:run:ann:r%201"
    assert (keys.leases(), keys.workers(), keys.models()) == ("p:leases", "p:workers", "p:models")


def test_the_docstring_is_the_key_table() -> None:
    """Every kind of key stands in the table."""
    import backscroll.store.keys as module

    thread, keys = ThreadKey("local", "T"), Keys("bs")
    for name in (*keys.of_thread(thread), keys.bell(thread)):
        assert f"`{name}`" in (module.__doc__ or "")
