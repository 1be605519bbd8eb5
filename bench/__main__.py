"""Run the benches, and compare their ratios with the committed ones.

Ratios come from one run on one machine, so they can be compared where seconds cannot. A ratio that
has grown by more than half is pointed out; nothing fails, because a loaded machine is no fault.
The bench of compaction takes minutes and has gates of its own: `make bench-compaction`.

    python bench [--write]        # --write makes the present figures the baseline
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "baseline.json"
BENCHES = ("delivery", "tool_search", "wire")
GROWN = 1.5


def main() -> None:
    """Run each bench as a program and print its ratios beside the baseline's."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    found = {name: ratios(run(name)) for name in BENCHES}
    for name, values in found.items():
        for key, value in values.items():
            before = known.get(name, {}).get(key)
            shown = "no baseline" if before is None else f"baseline {before:g}"
            grown = "   GROWN" if before is not None and value > GROWN * before else ""
            sys.stdout.write(f"{name:10} {key:34} {value:<8g} {shown}{grown}\n")
    if asked.write:
        BASELINE.write_text(json.dumps(found, indent=1) + "\n")


def run(name: str) -> dict[str, object]:
    """Run one bench and return its report; what it prints is passed on."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(report)]
        subprocess.run(command, check=True, timeout=600)
        values: dict[str, object] = json.loads(report.read_text())
    return values


def ratios(report: dict[str, object]) -> dict[str, float]:
    """Return the members of a report that are ratios."""
    return {
        key: float(value)
        for key, value in report.items()
        if key.startswith("ratio") and isinstance(value, int | float)
    }


if __name__ == "__main__":
    main()
