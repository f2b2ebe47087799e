"""EMA against its reference table, its edge cases and an independent reproduction on MNIST."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from mlflow_privacy_gate.attacks import ema
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError, UsageError

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "ema"
FIXTURE = json.loads((VECTORS / "rho_fixture.json").read_text())
MNIST = json.loads((VECTORS / "results.json").read_text())
FOLDS = ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "FMNIST")

scores = st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=25)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray[Any, Any]]:
    with np.load(VECTORS / "ema_mnist.npz", allow_pickle=False) as found:
        return dict(found)


def memberships(arrays: dict[str, np.ndarray[Any, Any]], fold: str, k: int) -> np.ndarray[Any, Any]:
    thresholds = {
        name: ema.threshold(arrays[f"cal{k}_train_{name}"], arrays[f"cal{k}_test_{name}"]) for name in ema.METRICS
    }
    return ema.membership({name: arrays[f"query_{fold}_{name}"] for name in ema.METRICS}, thresholds)


@pytest.mark.parametrize("row", FIXTURE["rho_table"], ids=lambda row: f"{row['zeros']} of {row['n']}")
def test_rho_is_the_tables(row: dict[str, Any]) -> None:
    flags = np.arange(row["n"]) >= row["zeros"]
    assert ema.rho_ema(flags) == pytest.approx(row["rho_ema"], rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("case", FIXTURE["thresholds"], ids=lambda case: case["name"])
def test_thresholds_are_the_references(case: dict[str, Any]) -> None:
    found = ema.threshold(case["train"], case["test"])
    assert found.value == case["tau_largest_tie"]
    assert found.balanced_accuracy == pytest.approx(case["balanced_accuracy"], abs=1e-15)
    assert found.usable == (case["balanced_accuracy"] > 0.5)


@pytest.mark.parametrize(("alpha", "key"), [(0.1, "fewest_zeros_rejecting_0.1"), (0.05, "fewest_zeros_rejecting_0.05")])
def test_the_fewest_zeros_that_reject_are_the_tables(alpha: float, key: str) -> None:
    assert {rows: ema.fewest_zeros(int(rows), alpha) for rows in FIXTURE[key]} == FIXTURE[key]


def test_mnist_training_folds_give_one_and_one_zero_gives_a_third(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    found = {fold: ema.rho_ema(memberships(arrays, fold, 0)) for fold in FOLDS}
    assert [found[fold] for fold in ("M1", "M2", "M3", "M5")] == [1.0] * 4
    assert found["M4"] == pytest.approx(0.3174, abs=5e-5)
    assert found["M6"] == pytest.approx(5.5e-19, rel=2e-3)
    assert found["FMNIST"] == 0.0


@pytest.mark.parametrize("k", [0, 50])
@pytest.mark.parametrize("fold", FOLDS)
def test_mnist_folds_have_the_zeros_and_rho_of_the_reproduction(
    arrays: dict[str, np.ndarray[Any, Any]], fold: str, k: int
) -> None:
    flags, expected = memberships(arrays, fold, k), MNIST["by_k"][str(k)]["spec"][fold]
    assert int((~flags).sum()) == expected["zeros"]
    assert ema.rho_ema(flags) == pytest.approx(expected["rho"], rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("k", [0, 50])
@pytest.mark.parametrize("metric", ema.METRICS)
def test_mnist_thresholds_are_the_reproductions(arrays: dict[str, np.ndarray[Any, Any]], metric: str, k: int) -> None:
    found = ema.threshold(arrays[f"cal{k}_train_{metric}"], arrays[f"cal{k}_test_{metric}"])
    expected = MNIST["by_k"][str(k)]
    assert found.value == np.float32(expected["threshold"][metric])  # the calibration arrays are stored as singles
    assert found.balanced_accuracy == pytest.approx(expected["balanced_accuracy"][metric], abs=1e-15)


@given(scores, scores)
def test_no_other_threshold_is_better_and_no_larger_one_is_as_good(train: list[float], test: list[float]) -> None:
    found = ema.threshold(train, test)

    def parted(tau: float) -> int:
        return sum(x >= tau for x in train) * len(test) + sum(x < tau for x in test) * len(train)

    best = parted(found.value)
    assert found.value in train + test
    assert all(parted(tau) <= best for tau in train + test)
    assert all(parted(tau) < best for tau in train + test if tau > found.value)
    assert found.balanced_accuracy == best / (2 * len(train) * len(test))
    assert found.usable == (best > len(train) * len(test))


@given(st.integers(2, 60), st.data())
def test_rho_is_the_pooled_t_test_against_ones(rows: int, data: st.DataObject) -> None:
    zeros = data.draw(st.integers(1, rows - 1))
    flags = (np.arange(rows) >= zeros).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy's, that the ones are nearly identical
        expected = float(ttest_ind(flags, np.ones(rows)).pvalue)
    assert ema.rho_ema(flags) == pytest.approx(expected, rel=1e-9)


@given(st.integers(2, 500), st.data())
def test_more_zeros_never_raise_rho(rows: int, data: st.DataObject) -> None:
    zeros = data.draw(st.integers(0, rows - 1))
    assert ema.rho(rows, zeros + 1) <= ema.rho(rows, zeros)


@given(scores, scores, st.randoms())
def test_the_order_of_rows_changes_nothing(train: list[float], test: list[float], random: Any) -> None:
    before = ema.threshold(train, test)
    random.shuffle(train)
    random.shuffle(test)
    assert ema.threshold(train, test) == before


def test_a_row_at_the_threshold_reaches_it() -> None:
    at = {"confidence": ema.Threshold(0.7, 0.9, usable=True)}
    assert ema.membership({"confidence": [0.7, 0.6999999]}, at).tolist() == [True, False]


def test_any_metric_is_enough_and_one_that_parts_nothing_is_not_asked() -> None:
    thresholds = {
        "correctness": ema.Threshold(1.0, 0.6, usable=True),
        "confidence": ema.Threshold(0.9, 0.7, usable=True),
        "neg_entropy": ema.Threshold(-9.0, 0.5, usable=False),
    }
    query: dict[str, list[float]] = {
        "correctness": [1, 0, 0],
        "confidence": [0.1, 0.95, 0.1],
        "neg_entropy": [0.0, 0.0, 0.0],
    }
    assert ema.membership(query, thresholds).tolist() == [True, True, False]


def test_without_a_metric_that_parts_anything_there_is_no_answer() -> None:
    with pytest.raises(ObservationError, match="no metric parts"):
        ema.membership({"confidence": [0.5]}, {"confidence": ema.Threshold(0.5, 0.5, usable=False)})


@pytest.mark.parametrize("flags", [[], [1], [0.5, 1], [float("nan"), 1], [[1, 0]]])
def test_memberships_that_are_none_are_refused(flags: list[Any]) -> None:
    with pytest.raises(ObservationError):
        ema.rho_ema(flags)


def test_impossible_counts_and_missing_metrics_are_refused() -> None:
    with pytest.raises(UsageError):
        ema.rho(5, 6)
    usable = {"confidence": ema.Threshold(0.5, 0.9, usable=True), "correctness": ema.Threshold(1, 0.9, usable=True)}
    with pytest.raises(ObservationError, match="lacks the metric correctness"):
        ema.membership({"confidence": [0.5]}, usable)
    with pytest.raises(ObservationError, match="different lengths"):
        ema.membership({"confidence": [0.5], "correctness": [1, 1]}, usable)


@pytest.mark.parametrize(("train", "test"), [([], [1.0]), ([1.0], []), ([float("nan")], [1.0]), ([[1.0]], [1.0])])
def test_a_threshold_of_nothing_is_refused(train: list[Any], test: list[Any]) -> None:
    with pytest.raises(ObservationError):
        ema.threshold(train, test)


def test_the_metrics_are_those_of_the_paper() -> None:
    said = Observations.from_probabilities([[0.9, 0.1], [0.5, 0.5]], [1, 0], [0, 1])
    found = ema.metrics(said)
    assert found["correctness"].tolist() == [0.0, 1.0]
    assert found["confidence"].tolist() == [0.1, 0.5]
    assert found["neg_entropy"] == pytest.approx([0.9 * np.log(0.9) + 0.1 * np.log(0.1), np.log(0.5)])
