"""The catalogue finds every attack, says what one lacks, and passes on scores that keep their promises."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlflow_privacy_gate.attacks import Observations, applicable, scores
from mlflow_privacy_gate.attacks.catalogue import what_is_missing
from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.vocabulary import ATTACKS, KIND_ATTACKS

CLASSIFIER = Observations.from_probabilities([[0.7, 0.3], [0.4, 0.6]], [0, 0], [0, 1])
OF_KIND = {
    "classification": CLASSIFIER,
    "label_only": Observations.from_predicted_labels([0, 1], [0, 0]),
    "regression": Observations.from_predictions([0.0, 1.0], [0.0, 0.0]),
    "density": Observations.from_log_likelihood([0.0, 1.0], [[0.0, 0.5], [0.0, 1.0]]),
}
POINTWISE = KIND_ATTACKS["classification"]


def test_every_attack_of_the_vocabulary_is_in_the_catalogue_and_no_other() -> None:
    catalogue = importlib.import_module("mlflow_privacy_gate.attacks.catalogue")
    assert set(catalogue._WHERE) == set(ATTACKS)
    for name in ATTACKS:
        assert callable(catalogue._find(name))


def test_an_unknown_attack_is_a_mistake_of_the_caller_with_the_nearest_names() -> None:
    with pytest.raises(UsageError, match=r"no attack is named `entropi` \(did you mean entropy"):
        scores("entropi", CLASSIFIER)
    with pytest.raises(UsageError, match="known: confidence, loss"):
        scores("xyz", CLASSIFIER)


@pytest.mark.parametrize("kind", OF_KIND)
def test_the_attacks_listed_for_a_kind_are_those_that_its_observations_allow(kind: str) -> None:
    possible, impossible = applicable(ATTACKS, OF_KIND[kind])
    assert set(KIND_ATTACKS[kind]) <= set(possible)
    assert set(possible) - set(KIND_ATTACKS[kind]) <= {"likelihood_ratio_z"}
    assert set(possible) | set(impossible) == set(ATTACKS)
    for name in possible:
        assert scores(name, OF_KIND[kind]).shape == (2,)
    for name, reason in impossible.items():
        assert reason.startswith("needs ")
        with pytest.raises((ObservationError, UsageError), match=f"the attack `{name}` (also )?needs "):
            scores(name, OF_KIND[kind])


def test_a_regressor_is_told_what_is_missing_and_never_fails_on_classes() -> None:
    reason = what_is_missing("confidence", OF_KIND["regression"])
    assert reason == "needs probabilities; a regression model gave predictions"


@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("classes", [2, 3, 70])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("logits", [False, True])
def test_a_rows_score_has_the_same_bits_wherever_the_row_stands(
    name: str, classes: int, layout: str, logits: bool
) -> None:
    rng = np.random.default_rng(classes)
    rows = 2 * (1 << 20) // (8 * classes) + 37 if classes > 2 else 70_000  # more than one block
    table, labels = rng.dirichlet(np.full(classes, 0.3), rows), rng.integers(0, classes, rows)
    make = Observations.from_logits if logits else Observations.from_probabilities
    table = np.log(table + 1e-300) if logits else table
    expected = scores(name, make(table, labels, range(classes)))
    order = rng.permutation(rows)
    moved = scores(name, make(np.array(table[order], order=layout), labels[order], range(classes)))  # type: ignore[call-overload]
    assert np.array_equal(moved, expected[order])
    alone = [scores(name, make(table[[row]], labels[[row]], range(classes)))[0] for row in (0, rows // 2, rows - 1)]
    assert alone == [expected[0], expected[rows // 2], expected[-1]]


@given(
    table=st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any), min_size=1, max_size=30),
    seed=st.integers(0, 9),
)
def test_scores_are_never_nan_and_do_not_depend_on_how_classes_are_named_or_ordered(
    table: list[list[int]], seed: int
) -> None:
    p = np.array(table) / np.sum(table, axis=1, keepdims=True)
    labels = np.random.default_rng(seed).integers(0, 3, len(p))
    words, order = np.array(["x", "-1", "10"]), [2, 0, 1]
    for name in POINTWISE:
        plain = scores(name, Observations.from_probabilities(p, labels, [0, 1, 2]))
        named = scores(name, Observations.from_probabilities(p, words[labels], words))
        assert not np.isnan(plain).any()
        assert np.array_equal(plain, named)
        if name != "correctness":  # of tied classes the first is predicted
            moved = scores(name, Observations.from_probabilities(p[:, order], labels, order))
            np.testing.assert_allclose(moved, plain, rtol=1e-13, atol=1e-13)


def test_the_callers_random_state_is_left_alone() -> None:
    np.random.seed(7)  # noqa: NPY002 - the legacy state is what must not move
    before = np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
    for name in POINTWISE:
        scores(name, CLASSIFIER)
    after = np.random.get_state()[1]  # type: ignore[index] # noqa: NPY002
    assert np.array_equal(before, after)
