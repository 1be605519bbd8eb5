"""Every page of the console loads, and complains about nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

PAGES = ["/console/", "/console/chat"]


@pytest.mark.parametrize("path", PAGES)
def test_page_loads(page: Page, path: str, shoot: Callable[[Page, str], Path]) -> None:
    """The page has a title and a heading or main part; nothing is requested from elsewhere."""
    page.goto(path)

    expect(page.get_by_role("main")).to_be_visible()
    assert page.title()
    assert shoot(page, f"page{path.replace('/', '-').rstrip('-')}").stat().st_size > 0
