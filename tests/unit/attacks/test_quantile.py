"""The quantile attack compares a row with rows like it that the model was not trained on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mlflow_privacy_gate.attacks import quantile
from mlflow_privacy_gate.attacks.labelled_rows import labelled_rows
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import clipped_loss
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import attack_auc


def hard_and_easy(n: int, gain: float, seed: int = 0) -> tuple[Observations, pd.DataFrame, NDArray[np.bool_]]:
    """A model whose loss score depends mostly on how hard a row is, and a little on whether it was trained on it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"hardness": rng.normal(0, 3, n), "ward": rng.choice(["north", "south"], n)})
    is_member = rng.permutation(np.arange(n) < n // 2)
    loss = frame["hardness"] + 2 * (frame["ward"] == "north") + rng.normal(0, 0.5, n) + gain * is_member
    probability = 1 / (1 + np.exp(-loss.to_numpy()))
    observed = Observations.from_probabilities(
        np.stack((1 - probability, probability), axis=1), np.ones(n, int), [0, 1]
    )
    return observed, frame, is_member


def auc_of(score: NDArray[np.float64], is_member: NDArray[np.bool_]) -> float:
    return attack_auc(score[is_member], score[~is_member])


def test_it_sees_a_leak_that_hardness_hides() -> None:
    observed, frame, is_member = hard_and_easy(2000, gain=0.5)
    plain = observed.probabilities
    assert plain is not None
    assert auc_of(plain[:, 1].astype(np.float64), is_member) < 0.57
    score = quantile.scores(observed, features=frame, is_member=is_member, rng=np.random.default_rng(1))
    assert auc_of(score, is_member) > 0.65


@pytest.mark.parametrize("level", [None, 0.5, 0.9])
def test_on_a_model_that_leaks_nothing_it_says_nothing(level: float | None) -> None:
    aucs = []
    for seed in range(8):
        observed, frame, is_member = hard_and_easy(300, gain=0.0, seed=seed)
        assert observed.true_column is not None
        rows = labelled_rows(frame, observed.true_column)
        loss = clipped_loss(observed)
        score = quantile.residuals(loss, rows, is_member, rng=np.random.default_rng(seed), quantile=level)
        aucs.append(auc_of(score, is_member))
    # One AUC has a standard error of 0.033; three of the mean of eight are 0.035.
    assert np.mean(aucs) == pytest.approx(0.5, abs=0.035)


def test_rows_that_stand_twice_teach_nothing_about_themselves() -> None:
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({"x": rng.normal(size=n)})
    is_member = np.arange(n) < n // 2
    frame.iloc[n // 2 :: 2] = frame.iloc[n // 2 + 1 :: 2].to_numpy()  # every non-member stands twice
    loss = rng.normal(size=n)
    loss[n // 2 :: 2] = loss[n // 2 + 1 :: 2]
    rows = labelled_rows(frame, np.zeros(n, dtype=np.intp))
    score = quantile.residuals(loss, rows, is_member, rng=np.random.default_rng(1))
    assert score[~is_member].std() > 0.8 * score[is_member].std()


def test_the_order_of_rows_changes_no_bit() -> None:
    observed, frame, is_member = hard_and_easy(400, gain=0.5)
    order = np.random.default_rng(5).permutation(400)
    assert observed.probabilities is not None
    shuffled = Observations.from_probabilities(observed.probabilities[order], np.ones(400, dtype=int), [0, 1])
    straight = quantile.scores(observed, features=frame, is_member=is_member, rng=np.random.default_rng(2))
    again = quantile.scores(
        shuffled, features=frame.iloc[order], is_member=is_member[order], rng=np.random.default_rng(2)
    )
    np.testing.assert_array_equal(again, straight[order])


def test_too_few_non_members_or_other_rows_are_errors() -> None:
    observed, frame, is_member = hard_and_easy(400, gain=0.5)
    with pytest.raises(ObservationError, match="needs 50 non-members or more, got 0"):
        quantile.scores(observed, features=frame, is_member=np.ones(400, np.bool_), rng=np.random.default_rng(0))
    with pytest.raises(ObservationError, match="399 rows for 400 labels"):
        quantile.scores(observed, features=frame.iloc[:-1], is_member=is_member, rng=np.random.default_rng(0))
