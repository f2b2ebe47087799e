from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mlflow_privacy_gate.attacks import scores
from mlflow_privacy_gate.attacks.mitigations import label_only, noisy, rounded, tempered, top_one
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError, UsageError

PROBABILITIES = np.array([[0.6231, 0.2469, 0.13], [0.051, 0.9, 0.049], [0.34, 0.33, 0.33]])
LABELS = ["b", "b", "a"]
SAID = Observations.from_probabilities(PROBABILITIES, LABELS, ["a", "b", "c"])

EVERY_ANSWER: list[Callable[[Observations], Observations]] = [
    lambda said: rounded(said, 1),
    lambda said: rounded(said, 2),
    top_one,
    lambda said: tempered(said, 5.0),
    lambda said: noisy(said, 0.1, np.random.default_rng(0)),
]


def probabilities(observations: Observations) -> np.ndarray:
    assert observations.probabilities is not None
    return np.asarray(observations.probabilities)


@pytest.mark.parametrize("answer", EVERY_ANSWER)
def test_every_answer_is_a_distribution_over_the_same_classes_of_the_same_rows(
    answer: Callable[[Observations], Observations],
) -> None:
    changed = answer(SAID)
    assert probabilities(changed).sum(axis=1) == pytest.approx([1, 1, 1])
    assert probabilities(changed).min() >= 0
    assert changed.true_column is SAID.true_column
    assert probabilities(SAID) == pytest.approx(PROBABILITIES)
    assert scores("loss", changed).shape == (3,)


def test_rounding_keeps_the_digits_it_is_asked_for() -> None:
    assert probabilities(rounded(SAID, 2))[0] == pytest.approx([0.62, 0.25, 0.13])
    assert probabilities(rounded(SAID, 1))[1] == pytest.approx([0.1 / 1.0, 0.9, 0.0], abs=1e-12)


def test_rounding_away_every_class_leaves_equal_shares() -> None:
    even = Observations.from_probabilities(np.full((1, 40), 1 / 40), [3], np.arange(40))
    assert probabilities(rounded(even, 1)) == pytest.approx(np.full((1, 40), 1 / 40))


def test_the_predicted_class_alone_hides_how_the_rest_is_shared() -> None:
    assert probabilities(top_one(SAID))[0] == pytest.approx([0.6231, 0.18845, 0.18845])


def test_temperature_flattens_and_keeps_the_order() -> None:
    flat = probabilities(tempered(SAID, 3.0))
    assert flat[0].max() < PROBABILITIES[0].max()
    assert (np.argsort(flat, axis=1) == np.argsort(PROBABILITIES, axis=1)).all()
    with pytest.raises(UsageError, match="temperature"):
        tempered(SAID, 0.0)


def test_a_label_alone_can_be_attacked_by_correctness_and_by_nothing_else() -> None:
    changed = label_only(SAID)
    assert scores("correctness", changed).tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(ObservationError, match="needs"):
        scores("confidence", changed)


def test_noise_is_the_same_for_the_same_seed() -> None:
    first, again = (probabilities(noisy(SAID, 0.1, np.random.default_rng(4))) for _ in range(2))
    assert (first == again).all()
    assert (first != PROBABILITIES).any()


def test_logits_are_read_as_the_probabilities_they_stand_for() -> None:
    by_logits = Observations.from_logits(np.log(PROBABILITIES), LABELS, ["a", "b", "c"])
    assert probabilities(top_one(by_logits)) == pytest.approx(probabilities(top_one(SAID)))
    assert top_one(by_logits).basis == "probabilities"


def test_a_regression_has_no_probabilities_to_change() -> None:
    with pytest.raises(ObservationError, match="probabilities"):
        rounded(Observations.from_predictions([1.0, 2.0], [1.0, 3.0]), 1)
