"""The budget that every strategy has to keep to: a window, and the default output it leaves."""

from __future__ import annotations

from functools import cache

from backscroll.compaction.budget import Asked, Budget, make_budget
from backscroll.compaction.settings import Settings
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.model import ModelProfile


def asked(window: int) -> Asked:
    """Return what the budget of a model with this window depends on."""
    return Asked(ModelProfile(window, window_source="catalogue"))


@cache
def budget_for(window: int) -> Budget:
    """Return the budget of a request without system text and tools."""
    return make_budget(asked(window), Settings(), Sizes())
