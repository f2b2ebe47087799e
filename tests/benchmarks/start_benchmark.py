"""How long the command line takes to answer; wall clock, the median of several starts.

Run it with ``python tests/benchmarks/start_benchmark.py``.
"""

from __future__ import annotations

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
        seconds = []
        for _ in range(STARTS):
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
        yield at_most(f"`mlflow-privacy-gate {' '.join((*words, '--help'))}`", statistics.median(seconds), 0.5, "s")


if __name__ == "__main__":
    raise SystemExit(report(measure()))
