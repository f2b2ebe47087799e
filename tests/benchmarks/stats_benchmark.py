"""Speed and memory of the statistics, as ratios measured in one run.

Run it with ``python tests/benchmarks/stats_benchmark.py``. Times are CPU times of this process, the median of a few repetitions; each
comparison is measured beside the thing it is compared with, so the machine's own speed cancels out.
"""

from __future__ import annotations

import gc
import statistics
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from lines import Line, at_least, at_most, cpu_seconds, report
from numpy.typing import NDArray
from sklearn.metrics import auc as area
from sklearn.metrics import roc_auc_score, roc_curve

from mlflow_privacy_gate.stats import bootstrap_intervals, max_auc_interval, summarise

Scores = NDArray[np.float64]
FPRS = (0.01, 0.001)


def median_seconds(work: Callable[[], object], repetitions: int = 3) -> float:
    times = []
    for _ in range(repetitions):
        gc.collect()
        times.append(cpu_seconds(work))
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
    ours = median_seconds(lambda: summarise(members, non_members, fprs=FPRS))
    ratio = ours / median_seconds(lambda: np.argsort(both))
    kind = "tied" if ties else "distinct"
    memory = peak_over_input(ties)
    return [
        at_most(f"AUC, DeLong, TPR at FPR of 10 M {kind} scores", ratio, 1, "x one argsort"),
        at_most(f"peak memory of that ({kind}), input included", memory, 2.5, "x the scores"),
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
    ours = median_seconds(lambda: bootstrap_intervals(members, non_members, fprs=FPRS, rng=np.random.default_rng(0)), 7)
    lines = []
    for auc_separately, target in ((True, 50), (False, 20)):
        loop = 5 * median_seconds(partial(sklearn_loop, members, non_members, 200, auc_separately), 1)
        what = "roc_curve + roc_auc_score" if auc_separately else "one roc_curve"
        work = f"1,000 bootstrap replicates of AUC and two TPRs, 4,000 rows, against a loop of {what}"
        lines.append(at_least(work, loop / ours, target, "x faster", digits=0, note=f"{1000 * ours:.0f} ms"))
    return lines


def seven_attacks() -> list[Line]:
    rng = np.random.default_rng(0)
    members, non_members = draw(4_000, ties=False)
    scores = {f"attack {k}": (members + rng.normal(size=2_000), non_members + rng.normal(size=2_000)) for k in range(7)}
    seconds = median_seconds(lambda: max_auc_interval(scores, rng=np.random.default_rng(0)), 7)
    return [at_most("max-statistic over 7 attacks, 4,000 rows", seconds, 0.5, "s", digits=3)]


def measure() -> Iterator[Line]:
    for ties in (False, True):
        yield from ten_million(ties)
    yield from thousand_replicates()
    yield from seven_attacks()


if __name__ == "__main__":
    raise SystemExit(report(measure()))
