"""The loss keeps its digits where a probability is near 1, and its order where one is 1."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mlflow_privacy_gate.attacks import Observations, scores


def exact_loss(row: list[float], own: int) -> float:
    with localcontext() as context:
        context.prec = 60
        others = sum((Decimal(p) for place, p in enumerate(row) if place != own), Decimal(0))
        return float(Decimal(row[own]).ln() - others.ln())


@pytest.mark.parametrize("tiny", [1e-3, 1e-9, 1e-17, 1e-40, 1e-300])
@pytest.mark.parametrize("own", [0, 1])
def test_loss_is_exact_however_near_to_one_a_probability_is(tiny: float, own: int) -> None:
    row = [1 - 2 * tiny, tiny, tiny]
    observed = Observations.from_probabilities([row], [own], [0, 1, 2])
    assert scores("loss", observed)[0] == pytest.approx(exact_loss(row, own), rel=1e-14)


def test_rows_that_a_float32_softmax_would_tie_stay_apart_by_their_logits() -> None:
    logits = np.array([[30.0, 0.0, 1.0], [40.0, 0.0, 1.0], [-60.0, 0.0, 1.0], [-70.0, 0.0, 1.0]], dtype=np.float32)
    softmax = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    assert softmax[0, 0] == softmax[1, 0] == 1.0
    loss = scores("loss", Observations.from_logits(logits, [0] * 4, [0, 1, 2]))
    np.testing.assert_allclose(loss, logits[:, 0] - np.log(1 + np.e), rtol=1e-14)
    assert loss[1] > loss[0] > loss[2] > loss[3]


def test_sure_and_right_is_inf_and_sure_and_wrong_is_minus_inf() -> None:
    observed = Observations.from_probabilities([[1.0, 0.0], [0.0, 1.0]], [0, 0], [0, 1])
    assert scores("loss", observed).tolist() == [np.inf, -np.inf]
    logs = Observations.from_logits([[0.0, -np.inf], [-np.inf, 0.0]], [0, 0], [0, 1])
    assert scores("loss", logs).tolist() == [np.inf, -np.inf]


def test_log_probabilities_score_as_their_probabilities_do() -> None:
    table = np.random.default_rng(5).dirichlet(np.ones(4), 500)
    labels = np.random.default_rng(6).integers(0, 4, 500)
    by_probability = scores("loss", Observations.from_probabilities(table, labels, range(4)))
    by_log = scores("loss", Observations.from_logits(np.log(table), labels, range(4)))
    np.testing.assert_allclose(by_log, by_probability, rtol=1e-12, atol=1e-12)
