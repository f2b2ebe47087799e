"""How long the command line takes to answer: CPU time, with the wall clock of a shared machine beside it; the median of several starts.

Run it with ``python tests/benchmarks/start_benchmark.py``.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from lines import Line, at_most, report

STARTS = 9


def measure() -> Iterator[Line]:
    for words in ((), ("check",)):
        command = [sys.executable, "-m", "mlflow_privacy_gate", *words, "--help"]
        wall, cpu = [], []
        for _ in range(STARTS):
            started, used = time.perf_counter(), children_seconds()
            subprocess.run(command, check=True, capture_output=True)
            wall.append(time.perf_counter() - started)
            cpu.append(children_seconds() - used)
        what = f"`mlflow-privacy-gate {' '.join((*words, '--help'))}`"
        yield at_most(what, statistics.median(cpu), 0.5, "s CPU", note=f"{statistics.median(wall):.2f} s by the clock")


def children_seconds() -> float:
    """Return the CPU time of this process's children that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    raise SystemExit(report(measure()))
