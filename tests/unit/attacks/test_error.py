"""A regressor is judged by its errors, each output on one scale for both sides."""

from __future__ import annotations

import numpy as np
import pytest

from mlflow_privacy_gate.attacks import Observations, scores
from mlflow_privacy_gate.attacks.error import with_shared_scale
from mlflow_privacy_gate.errors import ObservationError


def test_one_output_scores_its_negative_absolute_error() -> None:
    observed = Observations.from_predictions([1.0, 5.0, -2.0], [2, 5, 2])
    assert scores("error", observed).tolist() == [-1.0, 0.0, -4.0]


def test_several_outputs_without_a_shared_scale_are_refused() -> None:
    observed = Observations.from_predictions(np.zeros((3, 2)), np.ones((3, 2)))
    with pytest.raises(ObservationError, match="2 outputs need one scale"):
        scores("error", observed)


def test_the_unit_of_an_output_does_not_change_the_order_of_rows() -> None:
    rng = np.random.default_rng(3)
    errors = rng.normal(size=(2, 400, 3))
    metres = with_shared_scale(*(Observations.from_predictions(side, np.zeros((400, 3))) for side in errors))
    errors[:, :, 1] *= 1000
    millimetres = with_shared_scale(*(Observations.from_predictions(side, np.zeros((400, 3))) for side in errors))
    for one, other in zip(metres, millimetres, strict=True):
        np.testing.assert_allclose(scores("error", one), scores("error", other), rtol=1e-12)


def test_both_sides_share_the_scale_so_that_a_smaller_error_stays_smaller() -> None:
    members = Observations.from_predictions(np.full((50, 2), 0.1), np.zeros((50, 2)))
    non_members = Observations.from_predictions(np.full((50, 2), 1.0), np.zeros((50, 2)))
    members, non_members = with_shared_scale(members, non_members)
    assert scores("error", members).min() > scores("error", non_members).max()


def test_the_scale_has_the_same_bits_for_every_order_of_rows() -> None:
    rng = np.random.default_rng(1)
    errors = rng.lognormal(sigma=9, size=(5_000, 2))
    zeros = np.zeros_like(errors)
    (one,) = with_shared_scale(Observations.from_predictions(errors, zeros))
    for _ in range(10):
        order = rng.permutation(5_000)
        (other,) = with_shared_scale(Observations.from_predictions(errors[order], zeros))
        assert np.array_equal(scores("error", one)[order], scores("error", other))


def test_an_output_without_any_error_takes_no_part() -> None:
    predictions = np.array([[1.0, 7.0], [3.0, 7.0]])
    (side,) = with_shared_scale(Observations.from_predictions(predictions, [[0.0, 7.0], [0.0, 7.0]]))
    assert scores("error", side).tolist() == [-0.25, -0.75]
