"""What a scikit-learn estimator can be asked, strongest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.vocabulary import StrEnum


class Answer(StrEnum):
    """How a model answers; the value is the method that is asked."""

    PROBABILITIES = "predict_proba"
    MARGINS = "decision_function"
    LABELS = "predict"
    PREDICTIONS = "predict (regression)"
    LOG_LIKELIHOOD = "score_samples"

    @property
    def method(self) -> str:
        """The estimator's method."""
        return self.value.partition(" ")[0]


_NOTES = {
    Answer.MARGINS: "the model gives decision margins, no probabilities: they are read as logits, so scores keep their order only",
    Answer.LABELS: "the model shows labels only: the label-only attack is weaker than what probabilities would allow",
}


def strongest_answer(estimator: object) -> tuple[Answer, tuple[str, ...]]:
    """Return the most telling answer that an estimator gives, and notes for the card; ModelUnusable where it gives none."""
    answer = _answer(estimator)
    notes = (_NOTES[answer],) if answer in _NOTES else ()
    if answer is Answer.LOG_LIKELIHOOD and _is(is_outlier_detector, estimator):
        notes = ("an outlier detector's score is taken for a log-likelihood, of which it keeps the order only",)
    return answer, notes


def _answer(estimator: object) -> Answer:
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, list):
        raise ModelUnusable(
            f"{_name(estimator)} answers for {len(classes)} labels at once; one label a model can be tested here"
        )
    if classes is not None:
        if hasattr(estimator, "predict_proba"):
            return Answer.PROBABILITIES
        if hasattr(estimator, "decision_function") and not _one_against_one(estimator, len(classes)):
            return Answer.MARGINS
    if classes is not None or _is(is_classifier, estimator):
        return Answer.LABELS
    if _is(is_regressor, estimator):
        return Answer.PREDICTIONS
    if hasattr(estimator, "score_samples"):
        return Answer.LOG_LIKELIHOOD
    raise ModelUnusable(
        f"{_name(estimator)} is no classifier, regressor or density that scikit-learn knows as such: it has neither classes_ nor "
        "score_samples, so nothing tells what its answers mean"
    )


def final_step(estimator: object) -> object:
    """Return the estimator that gives the answer: the last step of a pipeline, the best of a search."""
    while True:
        steps, best = getattr(estimator, "steps", None), getattr(estimator, "best_estimator_", None)
        inner = steps[-1][1] if steps else best
        if inner is None:
            return estimator
        estimator = inner


def _one_against_one(estimator: object, classes: int) -> bool:
    """Margins between pairs of classes are not margins of classes."""
    return classes > 2 and getattr(final_step(estimator), "decision_function_shape", None) == "ovo"


def _is(test: Callable[[Any], bool], estimator: object) -> bool:
    try:
        return bool(test(estimator))
    except (AttributeError, TypeError):  # not scikit-learn's own and without its tags
        return False


def _name(estimator: object) -> str:
    return type(final_step(estimator)).__name__
