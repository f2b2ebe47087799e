from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mlflow_privacy_gate.stats as stats
from mlflow_privacy_gate.stats import attack_auc, delong_interval, summarise, tie_share, tpr_at_fpr, tpr_upper_bound


@pytest.mark.parametrize("digits", [1, 12])
def test_one_sort_gives_the_same_bits_as_each_function_alone(digits: int) -> None:
    rng = np.random.default_rng(0)
    members, non_members = np.round(rng.normal(0.3, 1, 300), digits), np.round(rng.normal(0, 1, 500), digits)
    summary = summarise(members, non_members, fprs=(0.1, 0.01), level=0.9)
    assert summary.auc == attack_auc(members, non_members)
    assert summary.interval == delong_interval(members, non_members, level=0.9)
    assert summary.tpr == {fpr: tpr_at_fpr(members, non_members, fpr) for fpr in (0.1, 0.01)}
    assert summary.tpr_upper == {fpr: tpr_upper_bound(members, non_members, fpr) for fpr in (0.1, 0.01)}
    assert summary.tie_share == tie_share(members, non_members)


def test_every_public_name_can_be_had_and_no_other() -> None:
    assert all(callable(getattr(stats, name)) for name in stats.__all__)
    with pytest.raises(AttributeError, match="no attribute 'p_hacking'"):
        _ = stats.p_hacking


def test_the_statistics_are_usable_without_mlflow_or_scikit_learn() -> None:
    code = (
        "import sys\n"
        "from mlflow_privacy_gate.stats import *\n"
        "assert attack_auc([1.0, 2.0], [0.0]) == 1.0\n"
        "print(*(name for name in ('mlflow', 'sklearn', 'pandas', 'torch') if name in sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == ""
