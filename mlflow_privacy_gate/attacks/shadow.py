"""The ``shadow`` attack: a classifier learns from shadow models what an answer about a trained-on row looks like.

The reference models serve as shadow models: for each of them it is known which rows it was trained on. A classifier per class is fitted
on their answers alone (the three largest probabilities, the loss, whether the label is right) and then scores each row of the
target once. Nothing of the target's own membership is ever learned from.

Shokri, Stronati, Song and Shmatikov, *Membership Inference Attacks Against Machine Learning Models*, IEEE S&P 2017; the sorted top
three probabilities after Salem et al., *ML-Leaks*, NDSS 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mlflow_privacy_gate.attacks._interface import BoolArray, FloatArray, IntArray
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import Posteriors, References, target_loss
from mlflow_privacy_gate.errors import ObservationError, UsageError

# Answers learned from, at most: whole shadow models are used until this many rows are reached, the first always.
MOST_ANSWERS = 1_000_000
# A class with fewer in- or out-answers than this is scored by the classifier that learned from all classes.
FEWEST_ANSWERS = 20


def scores(observations: Observations, references: References) -> FloatArray:
    """Score n rows by a logistic classifier per class, (n,) float64; higher = more likely a member."""
    return learned(observations, references)


def learned(
    observations: Observations,
    references: References,
    *,
    classifier: str = "logistic",
    per_class: bool = True,
    seed: int = 0,
) -> FloatArray:
    """Score n rows by a classifier fitted on the shadow models' answers, (n,) float64; higher = more likely a member.

    ``classifier``: ``logistic`` (log-odds), ``gradient_boosting`` (log-odds) or ``forest`` (a probability). ``per_class`` False: one
    classifier for all classes. ``seed`` is the classifier's. ObservationError where the references hold no posteriors, or where the
    shadow models saw all of the rows or none.
    """
    if classifier not in _CLASSIFIERS:
        raise UsageError(f"shadow: expected a classifier among {', '.join(_CLASSIFIERS)}, got {classifier!r}")
    loss = target_loss(observations, references)
    assert observations.true_column is not None  # target_loss refuses anything but a classifier's probabilities
    answers, was_in, columns = _shadow_answers(references, observations.true_column)
    target = _described(loss, Posteriors.of(observations))
    overall = _fitted(answers, was_in, classifier, seed)
    score = _asked(overall, target)
    for column in np.unique(observations.true_column) if per_class else ():
        learn, ask = columns == column, observations.true_column == column
        if min(was_in[learn].sum(), (~was_in[learn]).sum()) >= FEWEST_ANSWERS:
            score[ask] = _asked(_fitted(answers[learn], was_in[learn], classifier, seed), target[ask])
    return score


def _shadow_answers(references: References, true_column: IntArray) -> tuple[FloatArray, BoolArray, IntArray]:
    """Lay out the shadow models' answers as (rows, 5), whether each row was in, and its label's column."""
    if references.posteriors is None:
        raise ObservationError("shadow: the references hold no posteriors; fit them with `keep_posteriors=True`")
    used = max(1, min(references.count, MOST_ANSWERS // references.n))
    top, correct = references.posteriors.top[:used], references.posteriors.correct[:used]
    described = _described(references.scores[:used], Posteriors(top, correct)).reshape(used * references.n, -1)
    was_in = references.in_mask[:used].ravel()
    if was_in.all() or not was_in.any():
        raise ObservationError(
            "shadow: the shadow models were trained on all of the rows or on none; nothing can be learned"
        )
    return described, was_in, np.tile(true_column, used)


def _described(loss: FloatArray, posteriors: Posteriors) -> FloatArray:
    parts = (posteriors.top, loss[..., None], posteriors.correct[..., None])
    return np.concatenate(parts, axis=-1, dtype=np.float64)


def _fitted(answers: FloatArray, was_in: BoolArray, classifier: str, seed: int) -> Any:
    # In an order of its own, so that the order of the rows under test cannot change a bit of what is learned.
    order = np.lexsort((was_in, *answers.T))
    with threadpool_limits(limits=1):
        return _CLASSIFIERS[classifier](seed).fit(answers[order], was_in[order])


def _asked(model: Any, answers: FloatArray) -> FloatArray:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(answers), dtype=np.float64)
    return np.asarray(model.predict_proba(answers)[:, 1], dtype=np.float64)


def _logistic(_seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _gradient_boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed)


_CLASSIFIERS: Mapping[str, Callable[[int], Any]] = MappingProxyType(
    {"logistic": _logistic, "gradient_boosting": _gradient_boosting, "forest": _forest}
)
