"""The shadow attack learns from shadow models alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from mlflow_privacy_gate.attacks import shadow
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.attacks.refitting import fit_references
from mlflow_privacy_gate.errors import ObservationError, UsageError
from mlflow_privacy_gate.stats import attack_auc

ROWS = 600
FEATURES, LABELS = make_classification(ROWS, 10, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)


@pytest.fixture(scope="module")
def memorised() -> tuple[Observations, References]:
    forest = RandomForestClassifier(20, random_state=0)
    references = fit_references(forest, FEATURES, LABELS, [0, 1, 2], count=6, seed=1, keep_posteriors=True)
    forest.fit(FEATURES[: ROWS // 2], LABELS[: ROWS // 2])
    return Observations.from_probabilities(forest.predict_proba(FEATURES), LABELS, forest.classes_), references


def auc(score: NDArray[np.float64]) -> float:
    return attack_auc(score[: ROWS // 2], score[ROWS // 2 :])


@pytest.mark.parametrize("classifier", ["logistic", "gradient_boosting", "forest"])
def test_a_model_that_knows_its_rows_by_heart_is_caught(
    memorised: tuple[Observations, References], classifier: str
) -> None:
    assert auc(shadow.learned(*memorised, classifier=classifier)) > 0.8


def test_one_classifier_for_all_classes_can_be_asked_for(memorised: tuple[Observations, References]) -> None:
    overall = shadow.learned(*memorised, per_class=False)
    assert auc(overall) > 0.8
    assert (overall != shadow.scores(*memorised)).any()


def test_a_class_with_few_answers_is_scored_by_the_classifier_of_all(
    memorised: tuple[Observations, References], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow, "FEWEST_ANSWERS", 10_000)
    np.testing.assert_array_equal(shadow.scores(*memorised), shadow.learned(*memorised, per_class=False))


@pytest.mark.parametrize("classifier", ["logistic", "forest"])
def test_the_order_of_rows_changes_no_bit(memorised: tuple[Observations, References], classifier: str) -> None:
    observed, references = memorised
    order = np.random.default_rng(0).permutation(ROWS)
    assert observed.probabilities is not None
    shuffled = Observations.from_probabilities(observed.probabilities[order], LABELS[order], [0, 1, 2])
    expected = shadow.learned(observed, references, classifier=classifier)[order]
    np.testing.assert_array_equal(shadow.learned(shuffled, references.take(order), classifier=classifier), expected)


def test_only_as_many_answers_as_fit_are_learned_from(
    memorised: tuple[Observations, References], monkeypatch: pytest.MonkeyPatch
) -> None:
    observed, references = memorised
    whole = shadow.scores(observed, references)
    monkeypatch.setattr(shadow, "MOST_ANSWERS", 2 * ROWS + 5)
    assert references.posteriors is not None
    two = replace(
        references,
        scores=references.scores[:2],
        in_mask=references.in_mask[:2],
        posteriors=replace(
            references.posteriors, top=references.posteriors.top[:2], correct=references.posteriors.correct[:2]
        ),
    )
    np.testing.assert_array_equal(shadow.scores(observed, references), shadow.scores(observed, two))
    assert (shadow.scores(observed, two) != whole).any()


def test_references_without_posteriors_or_without_both_sides_are_refused(
    memorised: tuple[Observations, References],
) -> None:
    observed, references = memorised
    with pytest.raises(ObservationError, match="keep_posteriors=True"):
        shadow.scores(observed, replace(references, posteriors=None))
    with pytest.raises(ObservationError, match="all of the rows or on none"):
        shadow.scores(observed, replace(references, in_mask=np.zeros_like(references.in_mask)))
    with pytest.raises(UsageError, match="logistic, gradient_boosting, forest"):
        shadow.learned(observed, references, classifier="oracle")
