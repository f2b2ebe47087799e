"""rho_KS against its edge cases, scipy's statistic and an independent reproduction on MNIST."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from mlflow_privacy_gate.attacks.ks import rho_ks
from mlflow_privacy_gate.errors import ObservationError

VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "ema"
CASES = json.loads((VECTORS / "rho_fixture.json").read_text())["rho_ks"]
MNIST = json.loads((VECTORS / "results.json").read_text())["by_k"]

outputs = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=20)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_edge_cases_are_the_references(case: dict[str, Any]) -> None:
    found = rho_ks(case["target"], case["query_model"], case["calibration_model"])
    assert found.target_to_query == case["ks_target_query"]
    assert found.calibration_to_query == case["ks_cal_query"]
    expected = {"0/0 undefined": None, "inf": math.inf, "finite": case["rho_ks"]}[case["state"]]
    assert found.value == expected
    assert found.forgotten == (None if expected is None else expected >= 1)


@pytest.mark.parametrize("k", [0, 50])
@pytest.mark.parametrize("fold", ["M1", "M4", "M6", "FMNIST"])
def test_mnist_folds_have_the_ratios_of_the_reproduction(fold: str, k: int) -> None:
    with np.load(VECTORS / "ema_mnist.npz", allow_pickle=False) as arrays:
        found = rho_ks(
            arrays[f"query_{fold}_confidence"], arrays[f"ks_{fold}_query_model"], arrays[f"ks_{fold}_cal{k}"]
        )
    expected = MNIST[str(k)]["ks"][fold]
    assert found.value == pytest.approx(expected["rho"], rel=1e-10)
    assert found.target_to_query == pytest.approx(expected["num"], rel=1e-10)
    assert found.calibration_to_query == pytest.approx(expected["den"], rel=1e-10)


@given(outputs, outputs, outputs)
def test_the_distances_are_scipys(target: list[float], query: list[float], calibration: list[float]) -> None:
    found = rho_ks(target, query, calibration)
    assert found.target_to_query == pytest.approx(ks_2samp(target, query, method="asymp").statistic, abs=1e-12)
    assert found.calibration_to_query == pytest.approx(
        ks_2samp(calibration, query, method="asymp").statistic, abs=1e-12
    )


def test_distances_of_several_classes_are_averaged() -> None:
    target, query = [[0.1, 0.5], [0.2, 0.5]], [[0.8, 0.5], [0.9, 0.5]]
    assert rho_ks(target, query, [[0.1, 0.4], [0.2, 0.4]]).target_to_query == 0.5
    assert rho_ks(target, query, [[0.1, 0.4], [0.2, 0.4]]).value == 0.5


@pytest.mark.parametrize(
    ("target", "query"), [([], [0.5]), ([math.nan], [0.5]), ([[0.5, 0.5]], [0.5]), ([[0.1, 0.9]], [[0.1, 0.2, 0.7]])]
)
def test_outputs_that_cannot_be_compared_are_refused(target: list[Any], query: list[Any]) -> None:
    with pytest.raises(ObservationError):
        rho_ks(target, query, query)
