"""Wrong answers that other tools gave on real models, none of which may be ours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from mlflow_privacy_gate.attacks import Observations, scores
from mlflow_privacy_gate.stats import attack_auc
from mlflow_privacy_gate.vocabulary import KIND_ATTACKS

Floats = npt.NDArray[np.float64]
GATING = ("confidence", "loss", "entropy", "modified_entropy")


def aucs(members: Observations, non_members: Observations) -> dict[str, float]:
    return {name: attack_auc(scores(name, members), scores(name, non_members)) for name in GATING}


def test_tied_scores_give_one_half_in_every_order_of_rows() -> None:
    table = np.array([[0.9, 0.1], [0.5, 0.5]])
    for first in ([0, 1], [1, 0]):
        for second in ([0, 1], [1, 0]):
            sides = (Observations.from_probabilities(table[order], [0, 0], [0, 1]) for order in (first, second))
            assert set(aucs(*sides).values()) == {0.5}


def test_a_model_sure_of_everything_leaks_by_its_mistakes_which_label_blind_attacks_miss() -> None:
    sure = np.tile([0.99, 0.01], (100, 1))
    members = Observations.from_probabilities(sure, np.zeros(100), [0, 1])
    non_members = Observations.from_probabilities(sure, np.ones(100), [0, 1])
    found = aucs(members, non_members)
    assert found["entropy"] == 0.5
    assert found["confidence"] == found["loss"] == found["modified_entropy"] == 1.0


def test_labels_minus_one_and_one_do_not_hide_a_forests_leak() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    found = {}
    for classes in ((0, 1), (-1, 1), (1, 2), ("benign", "malignant")):
        labels = np.array(classes)[y]
        model = RandomForestClassifier(20, bootstrap=False, random_state=0, n_jobs=1).fit(X[::2], labels[::2])
        sides = (
            Observations.from_probabilities(model.predict_proba(X[k::2]), labels[k::2], model.classes_) for k in (0, 1)
        )
        found[str(classes)] = aucs(*sides)
    assert len({tuple(each.items()) for each in found.values()}) == 1
    assert found["(-1, 1)"]["confidence"] > 0.6


def test_a_model_that_memorised_random_labels_is_caught_and_one_that_learned_nothing_is_not() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_000, 5)), rng.integers(0, 2, 1_000)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:500], y[:500])
    answers: dict[str, Floats] = {
        "memorised": tree.predict_proba(X),
        "constant": np.full((1_000, 2), 0.5),
        "random": rng.dirichlet([1, 1], 1_000),
    }
    found = {
        name: aucs(
            *(Observations.from_probabilities(table[side], y[side], [0, 1]) for side in (slice(500), slice(500, None)))
        )
        for name, table in answers.items()
    }
    assert found["memorised"]["confidence"] > 0.7
    assert set(found["constant"].values()) == {0.5}
    assert max(found["random"].values()) < 0.55


@pytest.mark.parametrize("name", KIND_ATTACKS["classification"])
def test_every_row_is_scored_and_not_the_first_few_hundred(name: str) -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(3), 200_003)
    observed = Observations.from_probabilities(table, np.arange(200_003) % 3, [0, 1, 2])
    assert scores(name, observed).shape == (200_003,)


def test_a_reversed_attack_stays_below_one_half_and_is_never_turned_round() -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.5, 1, 400)
    members = Observations.from_probabilities(np.column_stack((p - 0.4, 1.4 - p))[:, ::-1] / 1.0, np.ones(400), [0, 1])
    non_members = Observations.from_probabilities(np.column_stack((1 - p, p)), np.ones(400), [0, 1])
    assert aucs(members, non_members)["confidence"] < 0.3
