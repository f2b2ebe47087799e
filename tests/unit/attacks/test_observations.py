"""Observations hold what the model said, exactly, and nothing that cannot be scored."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from mlflow_privacy_gate.attacks import Observations, scores
from mlflow_privacy_gate.attacks.observations import joined
from mlflow_privacy_gate.errors import ObservationError

Floats = npt.NDArray[np.float64]
P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
Y = ["c", "b", "a", "a"]
CLASSES = ["a", "b", "c"]


def with_value(value: float, *rows: int) -> Floats:
    changed = np.tile(P, (25, 1))
    changed[list(rows), 1] = value
    return changed


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (with_value(np.nan, 7), r"1 of 100 rows hold NaN \(rows 7, counted from 0\)"),
        (with_value(np.nan, *range(30)), r"30 of 100 rows hold NaN \(rows 0, 1, 2, 3, 4, …"),
        (with_value(np.inf, 3), r"1 of 100 rows hold a value outside \[0, 1\] \(rows 3"),
        (with_value(-np.inf, 3), r"1 of 100 rows hold a value outside"),
        (with_value(-0.01, 3, 9), r"2 of 100 rows hold a value outside \[0, 1\] \(rows 3, 9"),
        (with_value(0.5, 99), r"1 of 100 rows sum to something further than 0.001 from 1 \(rows 99"),
        (np.full((100, 3), 0.33), r"100 of 100 rows sum"),
        (np.tile(P, (24, 1)), r"expected shape \(100, 3\)"),
        (np.tile(P, (25, 1))[:, :2], r"expected shape \(100, 3\)"),
        (np.tile(P, (25, 1))[None], r"expected shape \(100, 3\)"),
        (np.ones(100), "one column of 3 classes"),
        (np.full((100, 3), "0.3"), "expected numbers"),
        (np.full((100, 3), None, dtype=object), "expected numbers|NaN"),
        (np.ma.masked_less(np.tile(P, (25, 1)), 0.05), "values are masked"),
        ("probabilities", "expected numbers"),
        (None, "expected numbers|expected shape"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_probabilities_that_are_none_are_refused_with_rows_and_counts(probabilities: object, message: str) -> None:
    with pytest.raises(ObservationError, match=message):
        Observations.from_probabilities(probabilities, Y * 25, CLASSES)


def test_no_rows_is_an_error_and_never_a_pass() -> None:
    with pytest.raises(ObservationError, match="no rows"):
        Observations.from_probabilities(np.empty((0, 3)), [], CLASSES)
    with pytest.raises(ObservationError, match="no rows"):
        Observations.from_predictions([], [])
    with pytest.raises(ObservationError, match="no rows"):
        Observations.from_predicted_labels([], [])
    with pytest.raises(ObservationError, match="no rows"):
        Observations.from_log_likelihood([])


def test_rows_of_probabilities_off_by_up_to_a_thousandth_are_divided_by_their_sum() -> None:
    observed = Observations.from_probabilities(P * np.array([[1.0005], [0.9995], [1.0], [1.0]]), Y, CLASSES)
    assert observed.probabilities is not None
    np.testing.assert_allclose(observed.probabilities, P, rtol=1e-15)


def test_rounding_is_left_alone_because_dividing_would_break_ties() -> None:
    thirds = np.array([[0.1 + 0.2, 0.7], [0.1 + 0.2, 0.7 - 1e-16]])
    observed = Observations.from_probabilities(thirds, [0, 0], [0, 1])
    confidence = scores("confidence", observed)
    assert confidence[0] == confidence[1] == 0.1 + 0.2


def test_a_rounding_error_outside_zero_to_one_is_clipped() -> None:
    observed = Observations.from_probabilities([[1 + 1e-7, -1e-7], [0.5, 0.5]], [0, 1], [0, 1])
    assert scores("confidence", observed).tolist() == [1.0, 0.5]
    assert scores("entropy", observed)[0] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_models_array_is_neither_copied_nor_changed_nor_left_open_to_change(dtype: type) -> None:
    given: Any = P.astype(dtype)
    before = given.copy()
    observed = Observations.from_probabilities(given, Y, CLASSES)
    assert observed.probabilities is not None
    assert np.shares_memory(observed.probabilities, given)
    with pytest.raises(ValueError, match="read-only"):
        observed.probabilities[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        observed.kind = "regression"  # type: ignore[misc]
    for name in ("confidence", "loss", "entropy", "modified_entropy", "margin_gap", "correctness"):
        assert scores(name, observed).dtype == np.float64
    given += 0  # still the caller's own to write to
    assert np.array_equal(given, before)


def test_rows_whose_label_the_model_does_not_know_are_left_out_and_counted() -> None:
    observed = Observations.from_probabilities(P, ["c", "z", "a", "y"], CLASSES)
    assert (observed.n, observed.unknown_labels) == (2, 2)
    assert observed.kept.tolist() == [True, False, True, False]
    assert scores("confidence", observed).tolist() == [0.1, 0.25]
    by_logits = Observations.from_logits(np.log(P[:3]), ["c", "z", "a"], CLASSES)
    np.testing.assert_allclose(scores("confidence", by_logits), [0.1, 0.25], rtol=1e-15)


def test_labels_in_words_that_the_model_never_uses_are_an_error_that_shows_both() -> None:
    with pytest.raises(
        ObservationError, match=r"knows none of the 4 labels \(labels like \['1', '0'\], classes \[0, 1\]"
    ):
        Observations.from_probabilities([[0.5, 0.5]] * 4, ["1", "0", "1", "0"], [0, 1])
    with pytest.raises(ObservationError, match="knows none"):
        Observations.from_predicted_labels([0, 1, 1], ["0", "1", "1"])


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_one_column_is_the_second_of_two_classes(shape: tuple[int, ...]) -> None:
    given = np.array([0.9, 0.2, 0.5]).reshape(shape)
    observed = Observations.from_probabilities(given, ["no", "no", "yes"], ["no", "yes"])
    np.testing.assert_allclose(scores("confidence", observed), [0.1, 0.8, 0.5], rtol=1e-15)
    by_logits = Observations.from_logits(given, ["no", "no", "yes"], ["no", "yes"])
    assert scores("loss", by_logits).tolist() == [-0.9, -0.2, 0.5]


def test_a_float_label_is_never_read_as_probability_one() -> None:
    with pytest.raises(ObservationError, match="reads like labels"):
        Observations.from_probabilities([1.0, 0.0, 1.0], [1, 0, 0], [0, 1])


def test_a_model_that_knows_one_class_cannot_be_judged() -> None:
    with pytest.raises(ObservationError, match="knows 1 class"):
        Observations.from_probabilities(np.ones((4, 1)) * [[1.0]], ["a"] * 4, ["a"])


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_logits_without_meaning_are_refused(bad: list[float]) -> None:
    with pytest.raises(ObservationError, match=r"logits: 1 of 2 rows .* \(rows 1"):
        Observations.from_logits([[0.0, -np.inf], bad], [0, 1], [0, 1])


def test_decision_margins_are_read_as_logits_and_named_as_margins() -> None:
    observed = Observations.from_decision_margins([-1.5, 2.0], ["a", "a"], ["a", "b"])
    assert observed.basis == "decision margins"
    assert scores("loss", observed).tolist() == [1.5, -2.0]


def test_predicted_labels_are_compared_by_value_and_strangers_refused() -> None:
    observed = Observations.from_predicted_labels([1.0, 0.0, 1.0, 0.0], pd.Series([True, True, False, False]), [0, 1])
    assert scores("correctness", observed).tolist() == [1, 0, 0, 1]
    never_predicted = Observations.from_predicted_labels(["a", "b", "a"], ["a", "c", "b"])
    assert scores("correctness", never_predicted).tolist() == [1, 0, 0]
    unknown = Observations.from_predicted_labels(["a", "b", "a"], ["a", "c", "b"], ["a", "b"])
    assert (unknown.n, unknown.unknown_labels) == (2, 1)
    with pytest.raises(ObservationError, match="1 of 3 rows hold a label that is not among the classes"):
        Observations.from_predicted_labels(["a", "z", "a"], ["a", "b", "b"], ["a", "b"])
    with pytest.raises(ObservationError, match="got 2 for 3 labels"):
        Observations.from_predicted_labels(["a", "b"], ["a", "b", "b"])


@pytest.mark.parametrize(
    ("predictions", "targets", "message"),
    [
        ([1.0, np.nan], [1.0, 2.0], r"predictions: 1 of 2 rows hold NaN or an infinite value \(rows 1"),
        ([1.0, 2.0], [np.inf, 2.0], "targets: 1 of 2 rows"),
        ([1.0], [1.0, 2.0], "does not fit"),
        ([[1.0, 2.0]] * 3, [1.0, 2.0, 3.0], "does not fit"),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), "does not fit"),
        ([1e308, 1.0], [-1e308, 1.0], "more than a double holds"),
        (["one", "two"], [1, 2], "expected numbers"),
    ],
)
def test_predictions_that_cannot_be_compared_are_refused(predictions: Any, targets: Any, message: str) -> None:
    with pytest.raises(ObservationError, match=message):
        Observations.from_predictions(predictions, targets)


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_a_column_of_targets_is_the_same_as_a_vector(shape: tuple[int, ...]) -> None:
    observed = Observations.from_predictions(np.array([1.0, 2.0, 3.0]).reshape(shape), pd.Series([1, 4, 2]))
    assert scores("error", observed).tolist() == [0, -2, -1]


def test_a_density_models_nan_is_refused_and_its_infinities_kept() -> None:
    with pytest.raises(ObservationError, match=r"log-likelihood: 1 of 2 rows hold NaN"):
        Observations.from_log_likelihood([0.0, np.nan])
    with pytest.raises(ObservationError, match=r"reference log-likelihood: 1 of 2 rows hold NaN"):
        Observations.from_log_likelihood([0.0, 1.0], [[0.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(ObservationError, match=r"expected shape \(2,\) or \(K, 2\), got \(1, 3\)"):
        Observations.from_log_likelihood([0.0, 1.0], [0.0, 1.0, 2.0])
    assert scores("likelihood", Observations.from_log_likelihood([-np.inf, 2.0])).tolist() == [-np.inf, 2.0]


def test_joined_observations_score_as_their_parts_do() -> None:
    first = Observations.from_probabilities(P, Y, CLASSES)
    second = Observations.from_probabilities(P[::-1], ["z", "a", "a", "b"], CLASSES)
    pool = joined(first, second)
    assert (pool.n, pool.unknown_labels) == (7, 1)
    for name in ("loss", "entropy"):
        assert scores(name, pool).tolist() == [*scores(name, first), *scores(name, second)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Observations.from_predictions([1.0], [2.0]), Observations.from_predicted_labels(["a"], ["a"])),
        (Observations.from_log_likelihood([1.0], [2.0]), Observations.from_log_likelihood([1.0])),
        (
            Observations.from_predictions([1.0], [2.0], output_scale=[1.0]),
            Observations.from_predictions([1.0], [2.0], output_scale=[2.0]),
        ),
    ],
)
def test_observations_that_differ_in_kind_are_not_joined(first: Observations, second: Observations) -> None:
    with pytest.raises(ObservationError, match="cannot join"):
        joined(first, second)
