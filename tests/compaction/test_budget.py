"""What one call may use, for any profile, options and overhead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from backscroll.compaction.budget import Asked, Budget, fit_output, make_budget
from backscroll.compaction.settings import Settings
from backscroll.compaction.tokens import Sizes
from backscroll.kernel.model import ModelOptions, ModelProfile
from backscroll.kernel.tool import ToolSpec
from hypothesis import given
from hypothesis import strategies as st

SIZES = Sizes()


def budget(
    profile: ModelProfile, asked: Asked | None = None, settings: Settings | None = None, **how: Any
) -> Budget:
    """Return a budget with defaults for what a test does not speak of."""
    asked = replace(asked or Asked(), profile=profile)
    return make_budget(asked, settings or Settings(), SIZES, **how)


def words(count: int) -> str:
    """Return a text of about that many tokens."""
    return "word " * count


def tools(count: int, tokens: int) -> list[ToolSpec]:
    """Return tools of about that many tokens together."""
    each = tokens // count
    return [ToolSpec(f"tool{n}", words(each - 12 - n), {}) for n in range(count)]


def test_counts_system_texts_and_tools() -> None:
    """BUD1: system texts and tools are part of what is compared with the window."""
    asked = Asked(system=(words(1_450),), tools=tools(40, 4_000))

    found = budget(ModelProfile(context_window=10_000), asked)

    assert found.overhead.system > 1_400
    assert found.overhead.tools > 2_500
    assert found.available == found.hard - found.safety - found.overhead.total
    assert found.room == found.available


def test_reserves_the_output() -> None:
    """The reserve is what was asked for, at most a quarter of the window."""
    profile = ModelProfile(context_window=100_000)

    def reserve(asked: Asked, settings: Settings | None = None) -> int:
        return budget(profile, asked, settings).output

    assert reserve(Asked()) == 8_192
    assert reserve(Asked(options=ModelOptions(max_output_tokens=4_000))) == 4_000
    assert reserve(Asked(options=ModelOptions(max_output_tokens=90_000))) == 25_000
    assert reserve(Asked(default_output=1_000)) == 1_000
    assert reserve(Asked(), Settings(reserve_output=60_000)) == 60_000
    assert budget(replace(profile, max_output_tokens=2_000)).output == 2_000


def test_input_and_output_counted_apart() -> None:
    """A model with a limit for its input alone needs no reserve and no fitting of the output."""
    profile = ModelProfile(context_window=100_000, max_input_tokens=90_000)

    found = budget(profile, Asked(options=ModelOptions(max_output_tokens=50_000)))

    assert (found.output, found.hard, found.shares_window) == (0, 90_000, False)
    assert fit_output(found, ModelOptions(max_output_tokens=50_000), 80_000)[1] is None


def test_an_unknown_window_is_assumed() -> None:
    """BUD5: without a stated window there is one warning, and a budget all the same."""
    for profile in (ModelProfile(), ModelProfile(200_000, window_source="default")):
        found = budget(profile)

        assert (found.window, found.source, found.configured) == (32_768, "assumed", None)
        assert [warned.reason for warned in found.warnings] == ["window_assumed"]
        assert found.available > 20_000
    assert budget(ModelProfile(), settings=Settings(window=9_000)).warnings == ()


def test_says_where_the_window_comes_from() -> None:
    """The source of the window is named, and a learned limit lowers it."""
    profile = ModelProfile(50_000, window_source="catalogue")

    assert budget(profile).source == "catalogue"
    assert budget(replace(profile, window_source="unknown")).source == "profile"
    assert budget(profile, settings=Settings(window=9_000)).source == "setting"
    learned = budget(profile, learned_limit=20_000)
    assert (learned.window, learned.source) == (20_000, "learned")
    assert (learned.configured, learned.learned) == (50_000, 20_000)
    assert budget(profile, learned_limit=60_000).learned is None


def test_too_large_an_overhead_leaves_a_floor() -> None:
    """An overhead that leaves nothing names the largest tools, and a floor is used."""
    found = budget(ModelProfile(context_window=8_000), Asked(tools=tools(7, 14_000)))

    assert found.available == 1_024
    assert found.size_base == 768
    (warned,) = found.warnings
    assert warned.reason == "overhead_too_large"
    assert [name for name, _ in warned.data["tools"]] == [f"tool{n}" for n in range(5)]
    assert "room" in warned.text


def test_values_without_sense_are_clamped() -> None:
    """BUD3: catalogue and request values that make no sense are not used, and named."""
    profile = ModelProfile(-5, max_input_tokens=0, max_output_tokens=-1)
    asked = Asked(options=ModelOptions(max_output_tokens=0), default_output=-2)

    found = budget(profile, asked)

    assert (found.window, found.output) == (32_768, 8_192)
    assert len(found.clamped) == 5
    assert "context_window: expected more than 0, got -5" in found.clamped[0]
    small = budget(ModelProfile(10_000), settings=Settings(reserve_output=9_000))
    assert small.output == 7_500
    assert small.clamped == ("reserve_output: 9000 of 10000 lowered to 7500",)


def test_notes_and_ratio_do_not_move_the_size_base() -> None:
    """BUD4: with a note, and with a ratio of 0.8 or 1.0, bodies have the same size base."""
    profile = ModelProfile(30_000)
    found = {
        budget(profile, Asked(system=("hi",), notes=notes), ratio=ratio).size_base
        for notes in ((), (words(900),))
        for ratio in (0.8, 0.93, 1.0)
    }

    assert len(found) == 1
    assert found.pop() % 256 == 0
    assert budget(profile, ratio=1.1).size_base < budget(profile).size_base


def test_a_note_takes_room() -> None:
    """A note is part of the overhead, so less is available."""
    profile = ModelProfile(30_000)

    noted = budget(profile, Asked(notes=(words(900),)))

    assert budget(profile).available - noted.available == noted.overhead.notes > 800


def test_output_is_fitted_to_the_window() -> None:
    """BUD2: window 10,000, output 4,000, input 7,000: never more than the window is asked for."""
    options = ModelOptions(max_output_tokens=4_000, temperature=0.5)
    found = budget(ModelProfile(10_000), Asked(options=options))

    fitted, warned = fit_output(found, options, 7_000)

    assert fitted.max_output_tokens is not None
    assert 7_000 + fitted.max_output_tokens <= 10_000 - found.safety
    assert fitted.max_output_tokens >= found.output == 2_500
    assert warned is not None
    assert dict(warned.data) == {"from": 4_000, "to": fitted.max_output_tokens}
    assert fitted.temperature == 0.5


def test_output_that_fits_is_left_alone() -> None:
    """Nothing changes where the output fits, or where no maximum would be sent."""
    options = ModelOptions(max_output_tokens=1_000)
    found = budget(ModelProfile(10_000), Asked(options=options))

    assert fit_output(found, options, 3_000) == (options, None)
    assert fit_output(budget(ModelProfile(10_000)), ModelOptions(), 9_999)[1] is None
    wire = budget(ModelProfile(10_000), Asked(default_output=4_096))
    assert fit_output(wire, ModelOptions(), 7_000)[0].max_output_tokens is not None


def test_a_view_that_cannot_fit_keeps_the_reserve() -> None:
    """A view above the window still goes out with room for an answer."""
    options = ModelOptions(max_output_tokens=4_000)
    found = budget(ModelProfile(10_000), Asked(options=options))

    assert fit_output(found, options, 20_000)[0].max_output_tokens == 2_500


@given(
    st.integers(1, 300_000),
    st.integers(1, 5_000),
    st.none() | st.integers(-5, 400_000),
    st.none() | st.integers(1, 400_000),
    st.floats(0.5, 3.0),
    st.none() | st.integers(1, 400_000),
)
def test_is_positive_and_monotone(
    window: int, more: int, requested: int | None, most: int | None, ratio: float, keep: int | None
) -> None:
    """BUD6: all numbers are positive, and none gets smaller with a larger window."""
    asked = Asked(options=ModelOptions(max_output_tokens=requested), system=("You help.",))
    settings = Settings(reserve_output=keep)
    pair = [
        budget(ModelProfile(size, max_input_tokens=most), asked, settings, ratio=ratio)
        for size in (window, window + more)
    ]

    for name in ("window", "hard", "safety", "available", "size_base"):
        low, high = (getattr(found, name) for found in pair)
        assert 0 < low <= high, name
    assert 0 <= pair[0].output <= pair[1].output
    assert pair[0].estimate(100) >= 70
