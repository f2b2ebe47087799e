"""What the tests of the statistics share: the reference vectors, and an independent DeLong to compare with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata

VECTORS = Path(__file__).parents[2] / "data" / "vectors"

Scores = NDArray[np.float64]


@pytest.fixture(scope="session")
def confidence_vector() -> Callable[[str], Any]:
    """Give one file of confidence scores by its name."""
    return lambda name: json.loads((VECTORS / "confidence" / f"{name}.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def lab_expected() -> Any:
    """Give the lab's own numbers."""
    return json.loads((VECTORS / "lab8b" / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="session")
def lab_scores() -> Callable[[str, str], tuple[Scores, Scores]]:
    """Give the lab's member and non-member scores by model (``adam``, ``s10``) and attack (``loss``, ``cal``)."""

    def load(model: str, attack: str) -> tuple[Scores, Scores]:
        column = {"loss": "target_score", "cal": "calibrated_score"}[attack]
        with np.load(VECTORS / "lab8b" / f"scores_{model}.npz") as stored:
            return stored[column][stored["member"]], stored[column][~stored["member"]]

    return load


@pytest.fixture(scope="session")
def delong_by_ranks() -> Callable[[Scores, Scores], tuple[float, float]]:
    """Give AUC and DeLong standard error computed another way: from mid-ranks, in floating point."""

    def compute(members: Scores, non_members: Scores) -> tuple[float, float]:
        m, n = len(members), len(non_members)
        ranks = rankdata(np.concatenate((members, non_members)))
        won = (ranks[:m] - rankdata(members)) / n
        lost = (ranks[m:] - rankdata(non_members)) / m
        return float(won.mean()), float(np.sqrt(won.var(ddof=1) / m + lost.var(ddof=1) / n))

    return compute
