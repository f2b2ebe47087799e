"""What a simple test misses: a forest with 10-row leaves leaks, a regularised regression does not, and only references can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mlflow_privacy_gate import attacks
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.refitting import fit_references
from mlflow_privacy_gate.stats import attack_auc


def aucs_over_four_seeds(model: Any, *names: str) -> dict[str, float]:
    features, labels = load_breast_cancer(return_X_y=True)
    found: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(4):
        members, non_members = train_test_split(
            np.arange(labels.size), test_size=0.5, stratify=labels, random_state=seed
        )
        rows = np.concatenate((members, non_members))
        seeds = {name: seed for name in model.get_params() if name.endswith("random_state")}
        model.set_params(**seeds).fit(features[members], labels[members])
        observed = Observations.from_probabilities(model.predict_proba(features[rows]), labels[rows], model.classes_)
        references = fit_references(model, features[rows], labels[rows], model.classes_, count=16, seed=seed)
        for name in names:
            score = attacks.scores(name, observed, references)
            judged, is_member = ~np.isnan(score), np.arange(rows.size) < members.size
            found[name].append(attack_auc(score[judged & is_member], score[judged & ~is_member]))
    return {name: float(np.mean(values)) for name, values in found.items()}


@pytest.mark.slow
def test_a_forest_that_looks_harmless_is_caught_with_references() -> None:
    found = aucs_over_four_seeds(RandomForestClassifier(min_samples_leaf=10), "confidence", "calibrated", "rmia")
    assert 0.50 < found["confidence"] < 0.545
    assert 0.59 < found["calibrated"] < 0.65
    assert found["rmia"] > 0.59


@pytest.mark.slow
def test_a_strongly_regularised_regression_stays_harmless() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.001))
    found = aucs_over_four_seeds(model, "confidence", "calibrated", "lira_offline")
    assert all(0.48 < auc < 0.55 for auc in found.values()), found
