"""The positive control is caught where the test can see, and not where it cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from mlflow_privacy_gate import attacks
from mlflow_privacy_gate.attacks.positive_control import overfitted
from mlflow_privacy_gate.attacks.refitting import fit_references
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import delong_interval

FEATURES, LABELS = load_breast_cancer(return_X_y=True)
IS_MEMBER = np.random.default_rng(0).permutation(LABELS.size) < LABELS.size // 2


@pytest.mark.parametrize("attack", ["calibrated", "lira_offline", "rmia"])
def test_an_overfitted_model_is_caught_by_the_reference_attacks(attack: str) -> None:
    recipe = RandomForestClassifier(30, min_samples_leaf=10)
    references = fit_references(recipe, FEATURES, LABELS, [0, 1], count=16, seed=0)
    control = overfitted(FEATURES, LABELS, IS_MEMBER, seed=0)
    score = attacks.scores(attack, control, references)
    assert delong_interval(score[IS_MEMBER], score[~IS_MEMBER]).low > 0.55


def test_its_members_are_learned_by_heart_whatever_the_columns_hold() -> None:
    frame = pd.DataFrame({"x": FEATURES[:, 0], "text": [f"row {row}" for row in range(LABELS.size)]})
    frame.loc[::7, "x"] = np.nan
    words = np.where(LABELS == 1, "well", "ill")
    confidence = attacks.scores("confidence", overfitted(frame, words, IS_MEMBER, seed=0))
    assert (confidence[IS_MEMBER] == 1).all()
    assert confidence[~IS_MEMBER].mean() < 0.95


def test_a_label_without_members_has_probability_zero() -> None:
    labels = np.where(IS_MEMBER, LABELS, 2)
    confidence = attacks.scores("confidence", overfitted(FEATURES, labels, IS_MEMBER, seed=0))
    assert (confidence[~IS_MEMBER] == 0).all()


def test_the_order_of_rows_changes_no_bit() -> None:
    order = np.random.default_rng(1).permutation(LABELS.size)
    straight = overfitted(FEATURES, LABELS, IS_MEMBER, seed=0).probabilities
    shuffled = overfitted(FEATURES[order], LABELS[order], IS_MEMBER[order], seed=0).probabilities
    assert straight is not None
    assert shuffled is not None
    np.testing.assert_array_equal(np.sort(shuffled, axis=1), np.sort(straight[order], axis=1))


def test_no_member_is_an_error() -> None:
    with pytest.raises(ObservationError, match="0 of 569"):
        overfitted(FEATURES, LABELS, np.zeros(LABELS.size, dtype=np.bool_), seed=0)
