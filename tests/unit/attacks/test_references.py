"""References hold what K models say of n rows, and say which rows cannot be judged by them."""

from __future__ import annotations

import numpy as np
import pytest

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import (
    LOSS_LIMIT,
    PROBABILITY_FLOOR,
    Posteriors,
    References,
    clipped_loss,
    target_loss,
)
from mlflow_privacy_gate.errors import ObservationError


def of_three_rows() -> References:
    scores = np.arange(12.0).reshape(4, 3)
    in_mask = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=np.bool_)
    return References(scores, in_mask, "clone", 1)


def test_rows_with_fewer_than_two_models_are_named() -> None:
    references = of_three_rows()
    assert references.enough_out.tolist() == [False, True, True]
    assert references.enough_in.tolist() == [True, True, False]
    assert (references.count, references.n) == (4, 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_is_an_error_that_names_reference_and_row(bad: float) -> None:
    scores = np.zeros((3, 5))
    scores[2, 4] = bad
    with pytest.raises(ObservationError, match=r"1 scores are NaN or infinite, in references 2 and rows 4"):
        References(scores, np.zeros((3, 5), dtype=np.bool_), "clone")


def test_masks_of_another_shape_or_type_and_unknown_origins_are_errors() -> None:
    with pytest.raises(ObservationError, match="one shape"):
        References(np.zeros((3, 5)), np.zeros((3, 4), dtype=np.bool_), "clone")
    with pytest.raises(ObservationError, match="dtype bool"):
        References(np.zeros((3, 5)), np.zeros((3, 5)), "clone")  # type: ignore[arg-type]
    with pytest.raises(ObservationError, match="origin"):
        References(np.zeros((3, 5)), np.zeros((3, 5), dtype=np.bool_), "hearsay")


def test_losses_are_clipped_to_those_of_the_floor() -> None:
    observed = Observations.from_probabilities([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]], [0, 0, 0], [0, 1])
    loss = clipped_loss(observed)
    assert loss[0] == LOSS_LIMIT == pytest.approx(np.log((1 - 1e-6) / 1e-6), abs=1e-12)
    assert loss[1] == pytest.approx(np.log(1 / 3), abs=1e-12)
    assert loss[2] == -LOSS_LIMIT


def test_the_probability_of_the_label_comes_back_from_the_score() -> None:
    probability = np.array([[1e-6, 0.2, 0.5, 0.9, 1 - 1e-6]])
    scores = np.log(probability) - np.log1p(-probability)
    references = References(scores, np.zeros(scores.shape, dtype=np.bool_), "logged_models")
    np.testing.assert_allclose(references.probability_of_label, probability, rtol=1e-9)
    assert references.probability_of_label.min() >= PROBABILITY_FLOOR


def test_references_of_other_rows_are_refused() -> None:
    observed = Observations.from_probabilities([[1.0, 0.0], [0.25, 0.75]], [0, 0], [0, 1])
    with pytest.raises(ObservationError, match="they score 3 rows, the target 2"):
        target_loss(observed, of_three_rows())


def test_taking_rows_takes_everything_about_them() -> None:
    whole = of_three_rows()
    posteriors = Posteriors(np.arange(36, dtype=np.float32).reshape(4, 3, 3), whole.in_mask)
    taken = References(whole.scores, whole.in_mask, "clone", 1, posteriors).take(np.array([2, 0]))
    np.testing.assert_array_equal(taken.scores, whole.scores[:, [2, 0]])
    np.testing.assert_array_equal(taken.in_mask, whole.in_mask[:, [2, 0]])
    assert taken.posteriors is not None
    np.testing.assert_array_equal(taken.posteriors.top, posteriors.top[:, [2, 0]])


def test_posteriors_are_the_three_largest_probabilities_and_whether_the_label_is_right() -> None:
    observed = Observations.from_probabilities([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.15, 0.05]], ["d", "b"], list("abcd"))
    found = Posteriors.of(observed)
    np.testing.assert_allclose(found.top, [[0.4, 0.3, 0.2], [0.7, 0.15, 0.1]], rtol=1e-6)
    assert found.correct.tolist() == [True, False]
    assert Posteriors.of(Observations.from_probabilities([[0.1, 0.9]], [1], [0, 1])).top[0, 2] == 0


def test_models_that_are_there_already_serve_as_references() -> None:
    answers = [Observations.from_probabilities([[0.9, 0.1], [p, 1 - p]], ["x", "y"], ["x", "y"]) for p in (0.2, 0.4)]
    references = References.from_observations(answers, np.array([[True, False], [False, False]]))
    np.testing.assert_allclose(references.scores, [[np.log(9), np.log(4)], [np.log(9), np.log(1.5)]], atol=1e-12)
    assert references.origin == "logged_models"
    assert "clipped" in references.notes[0]


def test_a_foreign_model_that_does_not_know_a_label_is_an_error() -> None:
    stranger = Observations.from_probabilities([[0.9, 0.1], [0.5, 0.5]], ["x", "z"], ["x", "y"])
    with pytest.raises(ObservationError, match="reference 1 does not know the labels of 1 of 2 rows"):
        References.from_observations([stranger], np.zeros((1, 2), dtype=np.bool_))
