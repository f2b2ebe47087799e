"""Confidence agrees with reference vectors, whatever the labels are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlflow_privacy_gate.attacks import Observations, scores
from mlflow_privacy_gate.stats import attack_auc

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "confidence"
NAMES = ["adult_rf_default", "adult_rf_labels_pm1", "bc_lr_regularised", "german_rf_500_500", "one_ulp", "tie_half"]


def observe(confidences: list[float], classes: list[Any], seed: int) -> Observations:
    """Hide each confidence in the column of a random label of two."""
    own = np.asarray(confidences)
    column = np.random.default_rng(seed).integers(0, 2, own.size)
    table = np.empty((own.size, 2))
    table[np.arange(own.size), column] = own
    table[np.arange(own.size), 1 - column] = 1 - own
    return Observations.from_probabilities(table, [classes[place] for place in column], classes)


@pytest.mark.parametrize("classes", [[0, 1], [-1, 1], [1, 2], [False, True], ["<=50K", ">50K"], [3, 40]], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_auc_of_a_reference_vector_is_found_under_every_way_of_writing_labels(
    name: str, classes: list[Any]
) -> None:
    vector = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    members = scores("confidence", observe(vector["member_scores"], classes, 1))
    non_members = scores("confidence", observe(vector["holdout_scores"], classes, 2))
    assert members.tolist() == vector["member_scores"]
    assert attack_auc(members, non_members) == vector["auc_numerator"] / vector["auc_denominator"]


def test_confidence_from_logits_is_the_softmax_and_survives_large_ones() -> None:
    observed = Observations.from_logits([[1000.0, 0.0], [-1000.0, 0.0], [np.log(3), 0.0]], [0, 0, 0], [0, 1])
    np.testing.assert_allclose(scores("confidence", observed), [1.0, 0.0, 0.75], rtol=1e-15)
