"""What a request comes to, in its parts."""

from __future__ import annotations

from agui_stories import CountedIds
from backscroll.agui.input import RunInput
from backscroll.agui.plan import abandoned, answer_of, refusal_of
from backscroll.kernel.message import Message, Role, tool_call
from backscroll.kernel.texts import Texts


def test_results_that_we_make() -> None:
    """A call nobody answered is told so; an empty answer is told as empty."""
    call = tool_call("c1", "pick")
    sent = Message(Role.TOOL, " ", "t1", tool_call_id="c1", outcome="ok")

    (gone,) = abandoned([call], CountedIds(), Texts())

    assert (gone.tool_call_id, gone.name, gone.outcome) == ("c1", "pick", "cancelled")
    assert answer_of(call, sent, Texts()).content == Texts().client_empty
    assert answer_of(call, sent.replace(content="x"), Texts()).content == "x"


def test_a_refusal_names_the_request() -> None:
    """Details that are not known are left out."""
    refusal = refusal_of(RunInput("t", "r"), "not_paused", "No.", open=None, interruptId="c")

    assert refusal.details == {"threadId": "t", "runId": "r", "interruptId": "c"}
