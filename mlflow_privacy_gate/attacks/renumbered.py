"""Training XGBoost on part of the rows: it takes no labels but 0, 1, 2, … without a gap, and a half may lack a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Renumbered:
    """A model that was trained on the numbers of its classes, and answers for the classes themselves, ``classes_`` (C,)."""

    def __init__(self, model: Any, classes: npt.NDArray[Any]) -> None:
        self._model = model
        self.classes_ = classes

    def predict_proba(self, features: Any) -> Any:
        """Give (n, C) probabilities, columns in the order of ``classes_``."""
        return self._model.predict_proba(features)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet while a copy is being put together
            raise AttributeError(name)
        return getattr(self._model, name)


def fitted(estimator: Any, features: Any, labels: npt.NDArray[Any]) -> Any:
    """Fit an unfitted estimator or pipeline on labels (n,), numbered anew for the fit where its last step is XGBoost's classifier."""
    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if steps else estimator
    if type(last).__module__.partition(".")[0] != "xgboost" or not hasattr(last, "predict_proba"):
        return estimator.fit(features, labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    if classes.size <= 2 and str(last.objective).startswith("multi:"):
        last.set_params(objective="binary:logistic")  # the other was written by fitting on all the classes
    if np.array_equal(classes, np.arange(classes.size)):
        return estimator.fit(features, labels)
    return Renumbered(estimator.fit(features, numbers), classes)
