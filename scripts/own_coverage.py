"""Measure each module by its own test file: `own_coverage.py [--least 95] [path ...]`.

`server/backscroll/x/y.py` is measured while only `tests/x/test_y.py` (and `test_y_*.py` that no
other module owns) runs. Slow, since every module has a pytest run of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "server" / "backscroll"


def modules(chosen: list[str]) -> list[Path]:
    """Return the modules to measure, those that hold code."""
    places = [ROOT / name for name in chosen] or [PACKAGE]
    found = (
        path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))
    )
    return sorted(path for path in found if path.name != "__init__.py")


def own_tests(module: Path) -> list[Path]:
    """Return the test files that belong to the module."""
    folder = ROOT / "tests" / module.relative_to(PACKAGE).parent
    others = {f"test_{path.stem}" for path in module.parent.glob("*.py")} - {f"test_{module.stem}"}
    same_name = folder / f"test_{module.stem}.py"
    more = sorted(folder.glob(f"test_{module.stem}_*.py"))
    found = [same_name, *(path for path in more if not _belongs(path.stem, others))]
    return [path for path in found if path.is_file()]


def _belongs(stem: str, others: set[str]) -> bool:
    return any(stem == other or stem.startswith(f"{other}_") for other in others)


def measure(module: Path) -> tuple[Path, float | None, str]:
    """Return the percentage of lines run by the module's own tests, and what went wrong."""
    tests = own_tests(module)
    if not tests:
        return module, None, "has no test file of its own"
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "COVERAGE_FILE": str(Path(folder) / "data")}
        coverage = [sys.executable, "-m", "coverage"]
        run = [*coverage, "run", "-m", "pytest", "-q", *map(str, tests)]
        done = subprocess.run(run, cwd=ROOT, env=env, capture_output=True, text=True)
        report = [*coverage, "json", "-q", "--include", str(module), "-o", f"{folder}/report.json"]
        subprocess.run(report, cwd=ROOT, env=env, capture_output=True)
        try:
            files = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))["files"]
        except FileNotFoundError:
            return module, None, "was not imported by its tests"
    (told,) = files.values()
    missing = ",".join(map(str, told["missing_lines"][:12]))
    failed = "" if done.returncode == 0 else "tests failed; "
    share: float = told["summary"]["percent_covered"]
    return module, share, failed + (f"lines {missing}" if missing else "")


def main() -> int:
    """Print one line per module; return 1 when one is below the least share."""
    options = argparse.ArgumentParser()
    options.add_argument("paths", nargs="*")
    options.add_argument("--least", type=float, default=95.0)
    options.add_argument("--jobs", type=int, default=2)
    chosen = options.parse_args()
    low = 0
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for module, share, remark in pool.map(measure, modules(chosen.paths)):
            is_low = share is None or share < chosen.least
            low += is_low
            shown = "     -" if share is None else f"{share:5.1f}%"
            mark = "LOW" if is_low else "   "
            print(f"{mark} {shown}  {module.relative_to(ROOT)}  {remark}")  # noqa: T201
    print(f"{low} modules below {chosen.least:g} %")  # noqa: T201
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
