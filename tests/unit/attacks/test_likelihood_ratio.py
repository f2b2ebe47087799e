"""The likelihood ratio agrees with reference vectors and never turns two infinities into a score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mlflow_privacy_gate.attacks import Observations, scores
from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats import attack_auc

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "likelihood_ratio"


@pytest.mark.parametrize(
    ("model", "data"),
    [
        ("breast_cancer_1full", "breast_cancer"),
        ("breast_cancer_8full", "breast_cancer"),
        ("digits_pca16_8diag", "digits_pca16"),
    ],
)
def test_reference_vectors_give_their_aucs(model: str, data: str) -> None:
    expected = json.loads((VECTORS / "expected.json").read_text("utf-8"))[model]
    with np.load(VECTORS / "gmm_scores.npz") as stored:
        target, reference, member = (
            stored[f"{model}_log_p_target"],
            stored[f"{model}_log_p_ref"],
            stored[f"{data}_member"],
        )
    observed = Observations.from_log_likelihood(target, reference)
    for name, key in (("likelihood", "auc_log_p"), ("likelihood_ratio", "auc_ratio")):
        score = scores(name, observed)
        assert attack_auc(score[member], score[~member]) == pytest.approx(expected[key], abs=1e-12)


def test_several_references_are_averaged_and_their_spread_gives_the_z_score() -> None:
    observed = Observations.from_log_likelihood([3.0, 3.0], [[1.0, 2.0], [3.0, 2.0]])
    assert scores("likelihood_ratio", observed).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(scores("likelihood_ratio_z", observed), [1 / np.sqrt(2), 1 / 1e-3])


def test_one_reference_has_no_spread() -> None:
    with pytest.raises(ObservationError, match="two references or more"):
        scores("likelihood_ratio_z", Observations.from_log_likelihood([3.0], [1.0]))


def test_infinite_alike_is_an_error_that_names_its_rows_and_never_a_nan() -> None:
    with pytest.raises(ObservationError, match=r"1 of 3 rows are infinite .* \(rows 2"):
        scores("likelihood_ratio", Observations.from_log_likelihood([0.0, 1.0, -np.inf], [0.0, -np.inf, -np.inf]))


def test_impossible_under_one_model_alone_ranks_at_an_end() -> None:
    observed = Observations.from_log_likelihood([-np.inf, 1.0], [0.0, -np.inf])
    assert scores("likelihood_ratio", observed).tolist() == [-np.inf, np.inf]


def test_a_reference_has_no_say_of_a_row_it_was_trained_on() -> None:
    target, reference = [1.0, 1.0, 1.0, 1.0], [[0.0, 9.0, np.inf, 9.0], [2.0, -1.0, 0.0, 9.0], [-2.0, -3.0, 4.0, 0.5]]
    in_mask = np.array([[False, True, True, True], [False, False, False, True], [False, False, False, False]])
    observed = Observations.from_log_likelihood(target, reference, in_mask=in_mask)
    assert scores("likelihood_ratio", observed).tolist() == [1.0, 3.0, -1.0, 0.5]
    expected = [1 / 2, 3 / np.sqrt(2), -1 / np.sqrt(8), np.nan]
    np.testing.assert_allclose(scores("likelihood_ratio_z", observed), expected)


def test_a_row_that_every_reference_was_trained_on_is_left_out_not_guessed() -> None:
    observed = Observations.from_log_likelihood([1.0, 1.0], [[0.0, 0.0]], in_mask=np.array([[True, False]]))
    np.testing.assert_array_equal(scores("likelihood_ratio", observed), [np.nan, 1.0])


@pytest.mark.parametrize("mask", [[[True]], [[0, 1]], [[True, False], [True, False]]])
def test_a_mask_of_another_shape_or_type_is_refused(mask: list[list[int]]) -> None:
    with pytest.raises(ObservationError, match="expected in_mask"):
        Observations.from_log_likelihood([1.0, 1.0], [[0.0, 0.0]], in_mask=np.array(mask))
