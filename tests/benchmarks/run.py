"""All benchmarks, one after the other, as one Markdown table with machine and versions: what stands in the README.

Run it with ``python tests/benchmarks/run.py``; it takes some minutes and wants an idle machine. Every ``*_benchmark.py`` in this folder is
a script of its own that prints one JSON object a line when asked with ``--json`` (see ``lines.py``).
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lines import Line

LIBRARIES = ("mlflow", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "SQLAlchemy")


def machine() -> str:
    """Say in one line on what this was measured."""
    processor = platform.processor() or platform.machine()
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(line.partition(":")[2].strip() for line in words if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    found = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {found}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def lines_of(script: Path) -> Iterator[Line]:
    """Run one benchmark and give its lines as they come; what it says on standard error stays there."""
    command = [sys.executable, str(script), "--json"]
    shared = os.pathsep.join((str(script.parents[1]), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": shared}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for text in process.stdout or ():
            yield Line(**json.loads(text))
    if process.returncode not in (0, 1):
        yield Line(f"`{script.name}`", f"stopped with exit code {process.returncode}", "to end", kept=False)


def main() -> int:
    print(f"Measured on {machine()}.\n\n| work | measured | target | |\n|---|---|---|---|", flush=True)
    missed = 0
    for script in sorted(Path(__file__).parent.glob("*_benchmark.py")):
        for line in lines_of(script):
            missed += line.kept is False
            word = {True: "kept", False: "**missed**", None: ""}[line.kept]
            print(f"| {line.work} | {line.measured} | {line.target} | {word} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
