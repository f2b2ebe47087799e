"""Correctness is the predicted label against the true one, from labels or from probabilities."""

from __future__ import annotations

from mlflow_privacy_gate.attacks import Observations, scores


def test_a_classifier_is_correct_where_its_likeliest_class_is_the_label() -> None:
    table = [[0.6, 0.4], [0.6, 0.4], [0.5, 0.5], [0.5, 0.5]]
    assert scores("correctness", Observations.from_probabilities(table, [-1, 1, -1, 1], [-1, 1])).tolist() == [
        1,
        0,
        1,
        0,
    ]
    assert scores("correctness", Observations.from_logits(table, [-1, 1, -1, 1], [-1, 1])).tolist() == [1, 0, 1, 0]


def test_a_label_only_model_gets_the_same_scores_from_its_labels() -> None:
    observed = Observations.from_predicted_labels([-1, -1, -1, -1], [-1, 1, -1, 1], [-1, 1])
    assert scores("correctness", observed).tolist() == [1, 0, 1, 0]
