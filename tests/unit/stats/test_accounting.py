from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from dp_extra import needs_dp_accounting

from mlflow_privacy_gate.stats.accounting import account_prv, account_rdp, why_no_prv

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors" / "dp" / "epsilon.json").read_text(encoding="utf-8")
)
# Opacus reports the upper end of its estimate, which it asks to be within 0.01.
OPACUS_ERROR = 0.01

WITHOUT_THE_EXTRA = """
import importlib.metadata as metadata
real = metadata.version
def version(name):
    if name == "dp-accounting":
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats.accounting import account_prv, account_rdp
print(account_rdp(0.05, 1.0, 300, 1e-5).epsilon)
try:
    account_prv(0.05, 1.0, 300, 1e-5)
except UsageError as exc:
    print(exc)
"""


@needs_dp_accounting
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_tight_epsilon_agrees_with_opacus_to_one_in_a_hundred(case: dict[str, Any]) -> None:
    found = account_prv(case["q"], case["sigma"], case["steps"], case["delta"])
    assert found.epsilon == pytest.approx(case["opacus_prv_epsilon"], rel=1e-2)
    assert found.epsilon == pytest.approx(case["opacus_prv_epsilon"] - OPACUS_ERROR, abs=2e-3)


@needs_dp_accounting
def test_the_accountant_says_which_one_it_is() -> None:
    found = account_prv(0.05, 1.0, 300, 1e-5)
    assert (found.method, found.accountant, found.version) == ("prv", "dp-accounting", version("dp-accounting"))
    assert why_no_prv() is None
    ours = account_rdp(0.05, 1.0, 300, 1e-5)
    assert (ours.method, ours.accountant, ours.version) == ("rdp", "sampled-gaussian-rdp", "v1")


@needs_dp_accounting
@pytest.mark.parametrize("training", [(1.0, 0.01, 1, 1e-5), (0.5, 0.3, 1000, 1e-5)])
def test_a_training_without_any_privacy_to_speak_of_takes_no_more_memory_than_others(
    training: tuple[float, float, int, float],
) -> None:
    assert 1000 < account_prv(*training).epsilon <= account_rdp(*training).epsilon


@needs_dp_accounting
@pytest.mark.parametrize("rate", [1e-12, 1.0])
def test_an_epsilon_beyond_every_exponential_is_infinite_and_no_fault_of_ours(rate: float) -> None:
    assert account_prv(rate, 1e-6, 10**6, 1e-5).epsilon == math.inf
    assert 1e7 < account_rdp(rate, 1e-6, 10**6, 1e-5).epsilon < math.inf


def test_without_the_extra_the_upper_bound_is_still_there_and_the_message_says_what_to_install() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert float(said[0]) == pytest.approx(6.4597, abs=1e-4)
    assert "pip install 'mlflow-privacy-gate[dp]'" in said[1]
