"""Speed and memory of the statistics, as ratios measured in one run.

Run it with ``python tests/benchmarks/stats_benchmark.py``. Times are CPU times of this process, the median of a few repetitions; each
comparison is measured beside the thing it is compared with, so the machine's own speed cancels out.
"""

from __future__ import annotations

import gc
import platform
import resource
import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.metrics import auc as area
from sklearn.metrics import roc_auc_score, roc_curve

from mlflow_privacy_gate.stats import bootstrap_intervals, max_auc_interval, summarise

Scores = NDArray[np.float64]
FPRS = (0.01, 0.001)


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured, the figure, and the target it should keep."""

    work: str
    measured: str
    target: str
    kept: bool


def cpu_seconds(work: Callable[[], object], repetitions: int = 3) -> float:
    times = []
    for _ in range(repetitions):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def draw(rows: int, ties: bool) -> tuple[Scores, Scores]:
    rng = np.random.default_rng(0)
    members, non_members = rng.normal(0.2, 1.0, rows // 2), rng.normal(0.0, 1.0, rows - rows // 2)
    if ties:  # a forest of a hundred trees answers in hundredths
        members, non_members = np.round(members, 2), np.round(non_members, 2)
    return members, non_members


def ten_million(ties: bool) -> list[Line]:
    members, non_members = draw(10_000_000, ties)
    both = np.concatenate((members, non_members))
    ratio = cpu_seconds(lambda: summarise(members, non_members, fprs=FPRS)) / cpu_seconds(lambda: np.argsort(both))
    kind = "tied" if ties else "distinct"
    memory = peak_over_input(ties)
    return [
        Line(f"AUC, DeLong, TPR, ties of 10 M {kind} scores / argsort", f"{ratio:.2f} x", "<= 1 x", ratio <= 1),
        Line(f"peak memory of it, input included ({kind})", f"{memory:.2f} x input", "<= 2.5 x input", memory <= 2.5),
    ]


def peak_over_input(ties: bool) -> float:
    gc.collect()
    members, non_members = draw(10_000_000, ties)
    size = members.nbytes + non_members.nbytes
    tracemalloc.start()
    summarise(members, non_members, fprs=FPRS)
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (size + extra) / size


def sklearn_loop(members: Scores, non_members: Scores, replicates: int, auc_separately: bool) -> list[list[float]]:
    rng = np.random.default_rng(0)
    labels = np.concatenate((np.ones(len(members)), np.zeros(len(non_members))))
    found = []
    for _ in range(replicates):
        resampled = np.concatenate((rng.choice(members, len(members)), rng.choice(non_members, len(non_members))))
        fpr, tpr, _ = roc_curve(labels, resampled, drop_intermediate=False)
        auc = roc_auc_score(labels, resampled) if auc_separately else float(area(fpr, tpr))
        found.append([auc, *(float(tpr[np.searchsorted(fpr, limit, side="right") - 1]) for limit in FPRS)])
    return found


def thousand_replicates() -> list[Line]:
    members, non_members = draw(4_000, ties=False)
    ours = cpu_seconds(lambda: bootstrap_intervals(members, non_members, fprs=FPRS, rng=np.random.default_rng(0)), 7)
    lines = []
    for auc_separately, target in ((True, 50), (False, 20)):
        loop = 5 * cpu_seconds(partial(sklearn_loop, members, non_members, 200, auc_separately), 1)
        what = "roc_curve + roc_auc_score" if auc_separately else "one roc_curve"
        work = f"1,000 bootstrap replicates, 4,000 rows ({1000 * ours:.0f} ms), against a loop of {what}"
        lines.append(Line(work, f"{loop / ours:.0f} x faster", f">= {target} x", loop / ours >= target))
    return lines


def seven_attacks() -> list[Line]:
    rng = np.random.default_rng(0)
    members, non_members = draw(4_000, ties=False)
    scores = {f"attack {k}": (members + rng.normal(size=2_000), non_members + rng.normal(size=2_000)) for k in range(7)}
    seconds = cpu_seconds(lambda: max_auc_interval(scores, rng=np.random.default_rng(0)), 7)
    return [Line("max-statistic over 7 attacks, 4,000 rows", f"{seconds:.3f} s", "<= 0.5 s", seconds <= 0.5)]


def main() -> int:
    print(f"{platform.machine()}, Python {platform.python_version()}, ", end="")
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}")
    lines = [*ten_million(ties=False), *ten_million(ties=True), *thousand_replicates(), *seven_attacks()]
    for line in lines:
        print(f"{'ok  ' if line.kept else 'MISS'} {line.work}: {line.measured} (target {line.target})")
    print(f"largest resident size of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0 if all(line.kept for line in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
