"""Fixed texts can be replaced, and a wrong placeholder is found at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from backscroll.kernel.errors import AssemblyError
from backscroll.kernel.texts import Texts, check_texts, placeholders


def test_the_defaults_are_fine() -> None:
    """Every default text passes its own check."""
    check_texts(Texts(), Texts())


@pytest.mark.parametrize("text", ["{nmae} failed", "broken {", 7])
def test_a_wrong_placeholder_is_refused(text: object) -> None:
    """TXT2: a template with an unknown placeholder names the text and the placeholder."""
    with pytest.raises(AssemblyError, match="tool_error") as caught:
        check_texts(replace(Texts(), tool_error=text), Texts())  # type: ignore[arg-type]
    assert caught.value.kind == "invalid_text"


def test_fewer_placeholders_are_fine() -> None:
    """A text may leave a placeholder out."""
    check_texts(replace(Texts(), tool_error="it failed"), Texts())


def test_placeholders_of_several_texts_unite() -> None:
    """A tuple of texts has the placeholders of all."""
    assert placeholders(("{a}", "{b} {a}", "none")) == {"a", "b"}
