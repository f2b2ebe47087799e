"""Lines of the benchmarks' table: what was measured, the figure, the target it should keep.

Every benchmark is a script that gives such lines: printed as they come, or with ``--json`` one JSON object a line for ``run.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from time import process_time


@dataclass(frozen=True)
class Line:
    """One line; ``kept`` None where there is no target, and the figure is there to be known."""

    work: str
    measured: str
    target: str = ""
    kept: bool | None = None


def at_most(work: str, value: float, limit: float, unit: str, *, digits: int = 2, note: str = "") -> Line:
    """Give the line of a figure that should not be above ``limit``."""
    return Line(work, _figure(value, unit, digits, note), f"≤ {limit:g} {unit}", value <= limit)


def at_least(work: str, value: float, limit: float, unit: str, *, digits: int = 2, note: str = "") -> Line:
    """Give the line of a figure that should not be below ``limit``."""
    return Line(work, _figure(value, unit, digits, note), f"≥ {limit:g} {unit}", value >= limit)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of this process and its threads."""
    started = process_time()
    work()
    return process_time() - started


def report(lines: Iterable[Line]) -> int:
    """Print lines as they come and return 1 where one misses its target."""
    missed = 0
    for line in lines:
        missed += line.kept is False
        if "--json" in sys.argv:
            print(json.dumps(asdict(line)), flush=True)
            continue
        word = {True: "ok  ", False: "MISS", None: "    "}[line.kept]
        print(f"{word} {line.work}: {line.measured}{f' (target {line.target})' if line.target else ''}", flush=True)
    return 1 if missed else 0


def numbers_asked(default: int) -> int:
    """Return the first number on the command line, or the default."""
    return next((int(word) for word in sys.argv[1:] if word.isdigit()), default)


def _figure(value: float, unit: str, digits: int, note: str) -> str:
    return f"{value:.{digits}f} {unit}{f' ({note})' if note else ''}"
