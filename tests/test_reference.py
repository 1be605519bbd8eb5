"""The reference pages and the code say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from backscroll.agui.refusal import REFUSALS
from backscroll.kernel.model import ModelProfile
from backscroll.providers.profiles import VENDORS
from backscroll.settings import Settings
from backscroll.web.app import routes
from starlette.routing import Mount, Route

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def test_every_setting_is_documented() -> None:
    """The table of settings has each field once, with its default and sentence."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", read("settings.md"), re.MULTILINE)

    assert [row[0] for row in rows] == list(Settings.model_fields)
    for name, default, sentence in rows:
        field = Settings.model_fields[name]
        assert sentence == field.description
        assert default in (f"`{field.default}`", "none" if field.default == "" else "`[]`")


def test_every_refusal_is_documented() -> None:
    """The table of errors has each code with its HTTP status and close code."""
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\S+) \|", read("errors.md"), re.MULTILINE)

    found = {code: (int(http), close) for code, http, close in rows}
    assert found == {code: (s.http, str(s.close or "–")) for code, s in REFUSALS.items()}


def test_every_provider_is_documented() -> None:
    """The table of providers has each with its hosts, its ways and who tells its window."""
    rows = re.findall(r"^\| `([\w.-]+)` \| (.+?) \| (.+?) \| (.+) \|$", read("providers.md"), re.M)
    found = {row[0]: row[1:] for row in rows if len(row[3]) > 1 and row[0] in VENDORS}
    asked = {"models": "/v1/models", "props": "/props", "ollama": "/api/show"}

    assert list(found) == list(VENDORS)
    for name, vendor in VENDORS.items():
        hosts, differs, window = (re.findall(r"`([^`]+)`", cell) for cell in found[name])
        assert (tuple(hosts), differs) == (vendor.hosts, sorted(vendor.changes)), name
        expected = asked.get(vendor.window_at, "/api/v0/models")
        assert window == ([] if name == "anthropic" else [expected]), name


def test_every_way_of_a_provider_is_documented() -> None:
    """The table of fields has each with its default."""
    rows = re.findall(r"^\| `(\w+)` \| `?(\w+)`? \| [^|]+ \|$", read("providers.md"), re.MULTILINE)
    profile, ways = ModelProfile(), {field for v in VENDORS.values() for field in v.changes}

    assert {name: value.lower() for name, value in rows} == {
        name: str(getattr(profile, name)).lower() for name, _ in rows
    }
    assert ways - {"parts"} <= {name for name, _ in rows}


def test_every_route_is_documented() -> None:
    """Each route of the operator API, and each endpoint of the wire, is named."""
    documented = read("operator-api.md") + read("protocol.md")
    documented = documented.replace("…", "/console/api/threads/{thread}")
    plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", "\n".join(paths(routes())))
    hidden = ("{path}", "/console/static", "/favicon.ico")
    for path in plain.splitlines():
        if path not in ("/", "/console") and not any(part in path for part in hidden):
            assert path in documented, path


def paths(routes: list[Any], prefix: str = "") -> list[str]:
    """Return the paths of routes, those inside mounts too."""
    found: list[str] = []
    for route in routes:
        if isinstance(route, Mount):
            found += paths(list(route.routes), prefix + route.path)
        elif isinstance(route, Route):
            found.append(prefix + route.path)
    return found


def read(name: str) -> str:
    """Return a reference page."""
    return (REFERENCE / name).read_text(encoding="utf-8")
