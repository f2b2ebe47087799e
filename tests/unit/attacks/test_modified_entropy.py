"""Modified entropy: its definition, its digits, and a label that matters."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mlflow_privacy_gate.attacks import Observations, scores


def exact(row: list[float], own: int) -> float:
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        for place in range(len(row)):
            p = Decimal(row[place])
            rest = sum((Decimal(other) for j, other in enumerate(row) if j != place), Decimal(0))
            total += rest * p.ln() if place == own else p * rest.ln()
        return float(total)


@pytest.mark.parametrize(
    "row",
    [[0.7, 0.2, 0.1], [0.5, 0.25, 0.25], [1 - 1e-10, 5e-11, 5e-11], [1.0, 1e-20, 1e-20], [2**-30, 1 - 2**-29, 2**-30]],
)
@pytest.mark.parametrize("own", [0, 1, 2])
def test_modified_entropy_is_exact_to_the_last_digits(row: list[float], own: int) -> None:
    observed = Observations.from_probabilities([row], [own], [0, 1, 2])
    assert scores("modified_entropy", observed)[0] == pytest.approx(exact(row, own), rel=1e-13)


def test_sure_and_right_is_zero_and_sure_and_wrong_is_minus_inf() -> None:
    observed = Observations.from_probabilities([[1.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    assert scores("modified_entropy", observed).tolist() == [0.0, -np.inf]


def test_the_label_is_seen_where_plain_entropy_is_blind_to_it() -> None:
    observed = Observations.from_probabilities([[0.9, 0.1], [0.9, 0.1]], [0, 1], [0, 1])
    assert scores("entropy", observed)[0] == scores("entropy", observed)[1]
    assert scores("modified_entropy", observed)[0] > scores("modified_entropy", observed)[1]
