"""The positive control: a model that has learned its rows by heart must be caught, or the test could not have seen a leak.

A forest of full-grown trees, each on every member, stands in for the model under test. The attack is run on what it says of the same
rows, with the same reference models. Where the attack does not tell its members from the others, the test is broken (PG109), whatever it
said of the model itself.
"""

from __future__ import annotations

import numpy as np

from mlflow_privacy_gate.attacks._interface import BoolArray
from mlflow_privacy_gate.attacks.labelled_rows import labelled_rows
from mlflow_privacy_gate.attacks.labels import columns_of, label_values
from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.errors import ObservationError

TREES = 50


def overfitted(features: object, labels: object, is_member: BoolArray, *, seed: int) -> Observations:
    """Observe a model that is overfitted to the members, on all n rows: give this to an attack in place of the target's observations.

    ``features`` (n, d), ``labels`` (n,) as for reference models, ``is_member`` (n,) bool. A label that no member has is given
    probability 0. ObservationError where there is no member.
    """
    from sklearn.ensemble import RandomForestClassifier

    classes = label_values(labels).unique()
    columns = columns_of(labels, classes)
    rows = labelled_rows(features, columns)
    if is_member.shape != columns.shape or not is_member.any():
        raise ObservationError(
            f"positive control: expected members among {columns.size} rows, got {int(is_member.sum())} of {is_member.size}"
        )
    learn = rows.order()
    learn = learn[is_member[learn]]
    forest = RandomForestClassifier(TREES, bootstrap=False, random_state=seed)
    forest.fit(rows.table[learn, :-1], columns[learn])
    probabilities = np.zeros((columns.size, len(classes)))
    probabilities[:, forest.classes_] = forest.predict_proba(rows.table[:, :-1])
    return Observations.from_probabilities(probabilities, columns, np.arange(len(classes)))
