"""The reference pages and the code say the same."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from backscroll.agui.refusal import REFUSALS
from backscroll.agui.run_end import _SENTENCES
from backscroll.compaction.reasons import REASONS
from backscroll.compaction.settings import Settings as Numbers
from backscroll.kernel.model import ModelProfile
from backscroll.providers.profiles import VENDORS
from backscroll.settings import Settings
from backscroll.web.app import routes
from starlette.routing import Mount, Route

NUMBERS = "## Numbers of `Compaction`"
REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def test_every_setting_is_documented() -> None:
    """The table of settings has each field once, with its default and sentence."""
    rows = rows_of(read("settings.md").partition(NUMBERS)[0])

    assert [row[0] for row in rows] == list(Settings.model_fields)
    for name, default, sentence in rows:
        field = Settings.model_fields[name]
        assert sentence == field.description
        assert default in (f"`{field.default}`", "none" if field.default == "" else "`[]`")


def test_every_number_of_compaction_is_documented() -> None:
    """The table of numbers has each once, in order, with its default."""
    rows = rows_of(read("settings.md").partition(NUMBERS)[2])

    plain = dataclasses.asdict(Numbers()).items()
    assert [row[:2] for row in rows] == [
        (name, "none" if value is None else f"`{value}`") for name, value in plain
    ]


def test_every_refusal_is_documented() -> None:
    """The table of errors has each code with its HTTP status and close code."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\S+) \|", read("errors.md"), re.MULTILINE)

    found = {code: (int(http), close) for code, http, close in rows}
    assert found == {code: (s.http, str(s.close or "–")) for code, s in REFUSALS.items()}


def test_every_end_of_a_run_is_documented() -> None:
    """The table of failed runs names each code that the terminal event can have of its own."""
    table = read("errors.md").partition("## How a run fails")[2].partition("\n## ")[0]

    assert {*_SENTENCES, "max_iterations_exceeded", "retrieval_failed"} == set(
        re.findall(r"`([a-z_]+)`(?=[^|\n]*\|[^|\n]*\|$)", table, re.MULTILINE)
    )


def test_every_reason_of_compaction_is_documented() -> None:
    """The table of reasons has each once, in order, with the sentence that operators read."""
    table = read("errors.md").partition("## Why compaction did less, or warns")[2]

    assert re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE) == list(REASONS.items())


def test_every_route_is_documented() -> None:
    """Each route of the operator API, and each endpoint of the wire, is named."""
    documented = read("operator-api.md") + read("protocol.md")
    documented = documented.replace("…", "/console/api/threads/{thread}")
    plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", "\n".join(paths(routes())))
    hidden = ("{path}", "/console/static", "/favicon.ico")
    for path in plain.splitlines():
        if path not in ("/", "/console") and not any(part in path for part in hidden):
            assert path in documented, path


ASKED_AT = {
    "models": "`/v1/models`",
    "props": "`/props`",
    "ollama": "`/api/ps`, `/api/show`",
    "lm-studio": "`/api/v0/models`",
}


def test_every_provider_is_documented() -> None:
    """The table of providers has each with its hosts, its window's path and its differences."""
    page = read("providers.md")

    for name, vendor in VENDORS.items():
        changes = sorted((key, value) for key, value in vendor.changes.items() if key != "parts")
        differs = ", ".join(f"`{key}` {json.dumps(value)}" for key, value in changes)
        hosts = ", ".join(f"`{host}`" for host in vendor.hosts)
        asked = "" if name == "anthropic" else ASKED_AT[vendor.window_at]
        cells = (f"`{name}`", *(cell or "–" for cell in (hosts, asked, differs)))
        assert f"| {' | '.join(cells)} |" in page


def test_every_field_of_a_profile_is_documented() -> None:
    """The table of fields has each once, in order, with its default."""
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", read("providers.md"), re.MULTILINE)
    plain = dataclasses.asdict(ModelProfile()).items()

    shown = [(k, "none" if v is None else f"`{json.dumps(v)}`") for k, v in plain]
    assert [row for row in rows if row[0] in dict(plain)] == shown


def paths(routes: list[Any], prefix: str = "") -> list[str]:
    """Return the paths of routes, those inside mounts too."""
    found: list[str] = []
    for route in routes:
        if isinstance(route, Mount):
            found += paths(list(route.routes), prefix + route.path)
        elif isinstance(route, Route):
            found.append(prefix + route.path)
    return found


def rows_of(page: str) -> list[tuple[str, str, str]]:
    """Return the rows of tables of a name, a default and a sentence."""
    return re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", page, re.MULTILINE)


def read(name: str) -> str:
    """Return a reference page."""
    return (REFERENCE / name).read_text(encoding="utf-8")
