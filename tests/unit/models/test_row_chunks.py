"""Promises on asking about many rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from mlflow_privacy_gate.models.row_chunks import LEAST_ROWS, in_chunks

ROWS = LEAST_ROWS + 1000


def test_answers_are_the_same_bits_for_any_number_of_threads_and_as_on_one_core() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, 4)), columns=list("abcd"))
    y = rng.integers(0, 3, ROWS)
    forest = RandomForestClassifier(5, max_depth=6, random_state=0, n_jobs=2).fit(X[:3000], y[:3000])
    alone = RandomForestClassifier.predict_proba(forest.set_params(n_jobs=1), X)
    forest.set_params(n_jobs=2)
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(in_chunks(forest.predict_proba, X, threads=threads), alone)
    assert forest.n_jobs == 2


def test_rows_keep_their_order_across_chunks_in_frames_and_arrays() -> None:
    numbers = np.arange(5 * LEAST_ROWS + 1).reshape(-1, 1)
    assert np.array_equal(in_chunks(lambda rows: rows, numbers), numbers)
    assert np.array_equal(in_chunks(lambda rows: rows["n"], pd.DataFrame(numbers, columns=["n"])), numbers[:, 0])
