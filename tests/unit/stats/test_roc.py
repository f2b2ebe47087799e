from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlflow_privacy_gate.stats import attack_auc, balanced_accuracy, roc_points

Scores = NDArray[np.float64]


@pytest.mark.parametrize("name", ["adult_rf_default", "german_lr_700_40", "tie_half", "perfect", "tie_all_equal"])
def test_the_auc_of_the_points_is_the_reported_one_to_the_bit(
    name: str, confidence_vector: Callable[[str], Any]
) -> None:
    vector = confidence_vector(name)
    points = roc_points(vector["member_scores"], vector["holdout_scores"])
    assert points.auc == attack_auc(vector["member_scores"], vector["holdout_scores"])
    areas = np.diff(points.fpr) * (points.tpr[1:] + points.tpr[:-1]) / 2
    assert float(areas.sum()) == pytest.approx(points.auc, abs=1e-12)


def test_points_run_from_nothing_to_everything_and_never_fall() -> None:
    points = roc_points([3.0, 1.0, np.inf], [2.0, 1.0, -np.inf, 0.5])
    assert list(points.true_positives) == [0, 1, 2, 2, 3, 3, 3]
    assert list(points.false_positives) == [0, 0, 0, 1, 2, 3, 4]
    assert (points.fpr[0], points.tpr[0], points.fpr[-1], points.tpr[-1]) == (0.0, 0.0, 1.0, 1.0)


def test_the_curve_of_noise_is_no_hull() -> None:
    # A convex hull of the same points reports more area than there is.
    rng = np.random.default_rng(0)
    members, non_members = rng.normal(size=(2, 500))
    points = roc_points(members, non_members)
    assert points.auc == attack_auc(members, non_members)
    assert len(points.fpr) == 1001


def test_constant_scores_are_one_step() -> None:
    points = roc_points([0.5, 0.5], [0.5])
    assert list(points.tpr) == list(points.fpr) == [0.0, 1.0]


def test_balanced_accuracy_is_that_of_the_best_threshold() -> None:
    rng = np.random.default_rng(3)
    for levels in (2, 8, 1000):
        members, non_members = (rng.integers(0, levels, size).astype(float) for size in (40, 55))
        thresholds = np.concatenate((members, non_members, [np.inf]))
        best = max(((members >= t).mean() + (non_members < t).mean()) / 2 for t in thresholds)
        assert balanced_accuracy(members, non_members).value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("attack", ["loss", "cal"])
def test_the_labs_balanced_accuracy_is_reproduced(
    attack: str, lab_scores: Callable[[str, str], tuple[Scores, Scores]], lab_expected: Any
) -> None:
    expected = lab_expected["adam"][attack]["balanced_acc"]
    assert balanced_accuracy(*lab_scores("adam", attack)).value == pytest.approx(expected, abs=1e-12)


def test_balanced_accuracy_is_never_below_one_half() -> None:
    assert balanced_accuracy([0.0, 0.0], [1.0, 1.0]).value == 0.5


@pytest.mark.parametrize("rows", [(100, 100), (300, 80), (2000, 2000)])
def test_the_null_value_is_what_noise_reaches_on_average(rows: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    drawn = [balanced_accuracy(rng.random(rows[0]), rng.random(rows[1])) for _ in range(1000)]
    mean = float(np.mean([result.value for result in drawn]))
    assert drawn[0].null_value == pytest.approx(mean, abs=0.004)
    assert drawn[0].null_value >= mean - 0.001


def test_the_null_value_never_exceeds_one() -> None:
    assert balanced_accuracy([1.0], [0.0]).null_value <= 1.0
