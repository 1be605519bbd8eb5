"""System: whether the workers and Redis are well."""

from __future__ import annotations

from console_pages import api
from deadlines import wait_until
from playwright.sync_api import Page, expect
from processes import ServerProcess


def test_workers_and_redis(page: Page, server: ServerProcess) -> None:
    """Each worker has its row; Redis says how it keeps things and whether it is heard."""
    wait_until(lambda: len(api(server, "/system")["workers"]) == 2, 10, "both workers are known")
    known = api(server, "/system")
    page.goto("/console/threads")

    page.get_by_role("link", name="System").click()

    table = page.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(1 + len(known["workers"]))
    for worker in known["workers"]:
        expect(table.get_by_role("row", name=worker["worker"])).to_contain_text("serving")
    shown = page.get_by_role("region", name="System")
    expect(shown).to_contain_text("healthy")
    expect(shown).to_contain_text(known["redis"]["persistence"])
    expect(shown).to_contain_text(known["build"])


def test_lost_subscription_is_said(page: Page, server: ServerProcess) -> None:
    """While the subscription is lost, a sentence says so."""
    answer = api(server, "/system")
    answer["redis"]["subscribed"] = False
    page.route("**/console/api/system", lambda route: route.fulfill(json=answer))

    page.goto("/console/system")

    expect(page.get_by_text("has lost its Redis subscription")).to_be_visible()
