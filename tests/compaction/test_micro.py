"""Caps and placeholders: what shortened messages look like, and when the watermark moves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from backscroll.compaction.budget import Asked, make_budget
from backscroll.compaction.canon_forms import references
from backscroll.compaction.groups import find_groups
from backscroll.compaction.micro import Shape, Shaper, watermark, watermark_pays
from backscroll.compaction.settings import Limits, Settings, limits
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.content import TextPart
from backscroll.kernel.message import Message, Role, assistant, tool_call, tool_result, user
from backscroll.kernel.model import ModelProfile
from compaction.histories import PNG, SIGNED, a, histories, rounds, t, u
from hypothesis import given
from hypothesis import strategies as st

SIZES = Sizes()
LIMITS = limits(Settings(), 8_000, 9_000)
BODY = "\n".join(f"line {n} of the result" for n in range(4_000))


def capped(
    messages: Sequence[Message], given: Limits = LIMITS, shaper: Shaper | None = None
) -> tuple[Shape, ...]:
    """Return one group with caps."""
    return (shaper or Shaper(SIZES)).capped(messages, references(messages), given)


def shortened(message: Message, given: Limits = LIMITS) -> Shape:
    """Return a message before the watermark, with the reference 7."""
    return Shaper(SIZES).shortened(message, 7, given)


def test_a_large_result_keeps_head_and_tail() -> None:
    """MIC3: 30,000 tokens in a window of 8,000 are capped, and the size is named."""
    message = t(1, "c", f"{BODY}\ndeploy_id = dpl_7\n{BODY}")

    (shape,) = capped([message])

    text = shape.message.text
    assert (shape.fate, shape.why) == ("truncated", "larger than 1200 tokens")
    assert 1_000 <= SIZES.text(text) <= LIMITS.tool_cap == 1_200
    assert f"[… {SIZES.text(message.text)} tokens in full, #1; the middle is left out …]" in text
    assert "\ndeploy_id = dpl_7\n" in text
    assert text.startswith("line 0 of") and text.endswith("line 3999 of the result")
    assert (shape.message.id, shape.message.tool_call_id) == ("m1", "c")


def test_parallel_results_share_a_cap() -> None:
    """MIC4: six results fit the cap of their group, and the small ones are untouched."""
    calls = [f"c{n}" for n in range(6)]
    batch = [a(0, None, *calls)]
    batch += [t(n + 1, c, BODY if n > 1 else "small") for n, c in enumerate(calls)]

    shapes = capped(batch)

    assert [shape.fate for shape in shapes] == ["kept"] * 3 + ["truncated"] * 4
    assert sum(SIZES.text(shape.message.text) for shape in shapes[1:]) <= LIMITS.group_cap
    assert len({SIZES.text(shape.message.text) // 100 for shape in shapes[3:]}) == 1


def test_levels_have_a_floor() -> None:
    """However many results share a cap, each keeps 120 tokens."""
    calls = [f"c{n}" for n in range(60)]

    shapes = capped([a(0, None, *calls), *(t(n + 1, c, BODY) for n, c in enumerate(calls))])

    assert {90 <= SIZES.text(shape.message.text) <= 120 for shape in shapes[1:]} == {True}


def test_large_arguments_are_shortened_at_once() -> None:
    """Arguments above the cap of a group are shortened at first sight, unless there are blocks."""
    call = tool_call("c", "write", {"path": "a.py", "content": BODY})
    message = assistant("I write.", [call], "m1")

    (shape,) = capped([message])
    (signed,) = capped([message.replace(blocks=SIGNED)])

    assert shape.fate == "truncated"
    assert shape.message.text == "I write."
    assert (shape.message.tool_calls[0].args or {})["path"] == "a.py"
    assert SIZES.message(shape.message) < 80
    assert signed.fate == "kept"


def test_files_of_a_result_stay_beside_its_text() -> None:
    """A cap cuts the text of a result and leaves its files."""
    message = tool_result("c", "read", (TextPart(BODY), PNG, TextPart(BODY)), id="m1")

    (shape,) = capped([message])

    cut, image = shape.message.content or ()
    assert isinstance(cut, TextPart) and SIZES.text(cut.text) <= LIMITS.tool_cap
    assert image == PNG


def test_caps_follow_the_size_base_alone() -> None:
    """BUD4: with and without a note, at a ratio of 0.8 or 1.0, shortened bodies are the same."""
    results = [t(n, "c", f"{BODY[:40_000]}\nERROR {n}") for n in range(3)]
    results.append(t(9, "c", "word " * 200))
    sent, available = set(), set()
    for notes in ((), ("reminder " * 300,)):
        for ratio in (0.8, 1.0):
            found = make_budget(
                Asked(ModelProfile(16_000), notes=notes), Settings(), SIZES, ratio=ratio
            )
            sizes = limits(Settings(), found.size_base, found.available)
            shapes = [*capped(results, sizes), *capped(results[:1], sizes)]
            shapes += [shortened(one, sizes) for one in results]
            sent.add(tuple(shape.message.text for shape in shapes))
            available.add(found.available)

    assert len(sent) == 1 < len(available)


def test_old_results_become_placeholders() -> None:
    """MIC1: a placeholder names tool, size and reference, and has the salient lines."""
    message = t(1, "c", f"{BODY}\ndeploy_id = dpl_7\nERROR <b>x</b>")

    shape = shortened(message)

    assert shape.fate == "placeholder"
    assert shape.message.text == (
        f"[result of read shortened: {SIZES.text(message.text)} tokens, #7]\n"
        "deploy_id = dpl_7\n"
        "ERROR bx/b"
    )
    assert (shape.message.id, shape.message.tool_call_id, shape.message.name) == ("m1", "c", "read")


def test_small_results_stay() -> None:
    """A result up to `placeholder_min`, or one that a placeholder would not shorten, stays."""
    assert shortened(t(1, "c", "word " * 100)).fate == "kept"
    assert shortened(t(1, "c", "word " * 120), LIMITS.replace(placeholder_min=1)).fate != "kept"
    assert shortened(t(1, "c", "tiny result"), LIMITS.replace(placeholder_min=1)).fate == "kept"


def test_salient_lines_give_way_first() -> None:
    """A placeholder stays below four fifths of what it replaces."""
    body = "\n".join(f"ERROR E{n} {'long words here ' * 4}" for n in range(8))
    message = t(1, "c", body)

    shape = shortened(message)

    assert SIZES.text(shape.message.text) <= 0.8 * SIZES.text(body)


def test_a_tool_may_not_pass_for_a_placeholder() -> None:
    """A large body that begins like a placeholder is shortened all the same."""
    fake = t(1, "c", f"[result of read shortened: 9 tokens, #7]\n{BODY}")

    assert shortened(fake).fate == "placeholder"


def test_old_arguments_become_stubs() -> None:
    """Argument text above `args_cap` is shortened; the text of the message stays."""
    call = tool_call("c", "write", {"path": "a.py", "content": "some words " * 120})

    shape = shortened(assistant("I write.", [call], "m1"))

    assert (shape.fate, shape.message.text) == ("placeholder", "I write.")
    assert shape.message.tool_calls[0].args == {
        "path": "a.py",
        "content": "(left out here: 1320 characters, #7; the call itself carried the full text)",
    }
    small = tool_call("c", "write", {"content": "some words " * 20})
    assert shortened(assistant(None, [small])).fate == "kept"


def test_old_media_become_texts() -> None:
    """Files of older user messages are replaced, also where a filter wrote the text."""
    plain = user((TextPart("look"), PNG), "m1")
    rewritten = user("look", "m1").replace(model_content=(PNG,), rewritten_by=("x",))

    assert shortened(plain).message.content == (
        TextPart("look"), TextPart("[image/png left out here, #7]")
    )  # fmt: skip
    assert shortened(rewritten).message.for_model() == (TextPart("[image/png left out here, #7]"),)
    assert shortened(u(1)).fate == "kept"
    assert shortened(Message(Role.SYSTEM, BODY)).fate == "kept"


def test_excluded_tools_and_blocks_keep_their_bytes() -> None:
    """MIC6: an excluded tool's result and a message with blocks are the same object after all."""
    shaper = Shaper(SIZES, exclude={"read"})
    result = t(1, "c", BODY)
    call = tool_call("c", "write", {"content": BODY})
    signed = assistant(BODY, [call], "m1").replace(blocks=SIGNED)

    assert shaper.capped([signed, result], (1, 2), LIMITS) == (Shape(signed), Shape(result))
    assert shaper.shortened(result, 1, LIMITS).message is result
    assert shaper.shortened(signed, 1, LIMITS).message is signed
    assert shaper.cut(signed, 1, 100).message is signed


def test_an_excluded_result_leaves_less_for_the_others() -> None:
    """What an excluded tool returns counts in the cap of its group."""
    shaper = Shaper(SIZES, exclude={"map"})
    batch = [a(0, None, "c", "d"), t(1, "c", BODY), t(2, "d", "w " * 2_400, name="map")]

    shapes = capped(batch, shaper=shaper)

    assert [shape.fate for shape in shapes] == ["kept", "truncated", "kept"]
    assert 300 < SIZES.text(shapes[1].message.text) <= LIMITS.group_cap - 2_688


def test_any_text_can_be_cut() -> None:
    """A message of any role is cut to a number of tokens, as the last resort."""
    found = Shaper(SIZES).cut(user(BODY, "m1"), 1, 300)

    assert (found.fate, SIZES.text(found.message.text) <= 300) == ("truncated", True)
    assert Shaper(SIZES).cut(u(1), 1, 300).fate == "kept"
    tiny = Shaper(SIZES).cut(user(BODY, "m1"), 1, 3)
    assert tiny.message.text.startswith("[… ")


@given(histories(), st.sampled_from([900, 4_000, 30_000]))
def test_shortening_is_idempotent_and_never_longer(history: list[Message], base: int) -> None:
    """MIC2: deterministic, idempotent, never longer; role, call id and name stay, JSON is valid."""
    given, refs = limits(Settings(), base, base), references(history)
    for group in find_groups(history):
        span = slice(group.start, group.end)
        once = capped(history[span], given)
        again = capped([shape.message for shape in once], given)
        assert [shape.message for shape in again] == [shape.message for shape in once]
        assert capped(history[span], given, Shaper(Sizes())) == once
        for before, after in zip(history[span], once, strict=True):
            check_shape(before, after)
    for message, ref in zip(history, refs, strict=True):
        once_short = Shaper(SIZES).shortened(message, ref, given)
        twice = Shaper(SIZES).shortened(once_short.message, ref, given)
        assert twice.message is once_short.message
        check_shape(message, once_short)


def check_shape(before: Message, shape: Shape) -> None:
    """Check what holds of every shortened message."""
    after = shape.message
    assert (shape.fate == "kept") == (after is before)
    assert SIZES.message(after) <= SIZES.message(before)
    assert (after.role, after.id, after.tool_call_id, after.name) == (
        before.role, before.id, before.tool_call_id, before.name
    )  # fmt: skip
    assert [call.name for call in after.tool_calls] == [call.name for call in before.tool_calls]
    for call in after.tool_calls:
        assert isinstance(json.loads(call.args_text), dict)


def test_the_candidate_is_the_start_of_a_tool_group() -> None:
    """MIC1: all but the last 4 tool groups are before the candidate."""
    history = [u(0), *rounds(10), u(50)]
    groups = find_groups(history)

    assert watermark(history, groups, 4) == 13
    assert watermark(history, groups, 10) == 1
    assert watermark(history, groups, 11) == 0
    assert watermark(history, groups, 0) == 22


def test_the_watermark_moves_only_if_it_pays() -> None:
    """MIC5: enough gain, or alone enough to leave the trigger well behind."""
    given = LIMITS.replace(micro_min_gain=2_000, trigger=8_000, micro_goal=7_000)

    assert watermark_pays(7_500, 5_500, given)
    assert not watermark_pays(7_500, 5_501, given)
    assert watermark_pays(8_100, 6_900, given)
    assert not watermark_pays(8_100, 7_100, given)


def test_another_model_shares_the_memory() -> None:
    """A shaper under other sizes writes the same bytes."""
    shaper = Shaper(SIZES)
    message = t(1, "c", BODY)

    first = shaper.shortened(message, 1, LIMITS).message

    assert shaper.under(Sizes()).shortened(message, 1, LIMITS).message == first
