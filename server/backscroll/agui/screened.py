"""Questions that a safeguard refuses: the run answers them, and nothing of them is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from backscroll.agui.plan import Plan
from backscroll.kernel.message import Message, Role

Screen = Callable[[Sequence[Message]], object | None]
"""Says why messages would not be answered, None if they may be."""


def screened(plan: Plan, screen: Screen) -> Plan:
    """Return the plan without the new questions that are refused.

    If the last one is among them, it is what the turn is asked, unstored; the others are left out,
    so that a page that sends its whole list along does not bring an old one back.
    """
    asked = list(takewhile(lambda message: message.role is Role.USER, reversed(plan.store)))
    refused = [message for message in reversed(asked) if screen([message]) is not None]
    if not refused:
        return plan
    gone = {message.id for message in refused}
    return replace(
        plan,
        store=tuple(message for message in plan.store if message.id not in gone),
        echo=tuple(message for message in plan.echo if message.id not in gone),
        refused=tuple(refused[-1:]) if plan.store[-1].id in gone else (),
    )
