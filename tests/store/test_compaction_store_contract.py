"""The compaction store in Redis does what every compaction store must do."""

from __future__ import annotations

import pytest
from backscroll.store.compaction_store import RedisCompactionStore
from backscroll.store.connection import RedisClients
from backscroll.store.keys import Keys
from compaction.compaction_store_contract import CompactionStoreContract


class TestRedis(CompactionStoreContract):
    """STO1, CS1, and the capabilities that several workers rely on."""

    @pytest.fixture
    def store(self, clients: RedisClients, keys: Keys) -> RedisCompactionStore:
        """Give a store without a run."""
        return RedisCompactionStore(clients, keys)
