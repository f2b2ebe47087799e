"""Epsilon worked out again from the training that a card states: sampling rate, noise and steps of DP-SGD.

``rdp`` is this project's own sum (:mod:`mlflow_privacy_gate.stats.renyi`) and needs nothing else. ``prv`` is the numerically tight
composition of privacy loss distributions by Google's ``dp-accounting`` (extra ``dp``), by the connect-the-dots method of Doroshenko et al.
2022. Both assume that each step samples every row independently (Poisson) and that neighbours differ by one row added or removed, which
gives the smallest epsilon of the usual definitions: a claim below it holds under none of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.stats.renyi import renyi_epsilon, require_training

RDP = "rdp"
PRV = "prv"
RDP_FORMULA = "sampled-gaussian-rdp/v1"
_PACKAGE = "dp-accounting"
_FINEST_STEP = 1e-4
# A grid of a hundred thousand steps per epsilon: memory stays small however absurd the training.
_STEP_PER_EPSILON = 1e-5


@dataclass(frozen=True)
class AccountedEpsilon:
    """One accountant's epsilon: ``method`` is ``rdp`` (an upper bound) or ``prv`` (tight), with the accountant's name and version."""

    method: str
    epsilon: float
    accountant: str
    version: str


def account_rdp(sampling_rate: float, noise_multiplier: float, steps: int, delta: float) -> AccountedEpsilon:
    """Work out an upper bound on epsilon by Rényi accounting. Parameters as in :func:`.renyi.renyi_epsilon`."""
    formula, _, number = RDP_FORMULA.partition("/")
    return AccountedEpsilon(RDP, renyi_epsilon(sampling_rate, noise_multiplier, steps, delta), formula, number)


def account_prv(sampling_rate: float, noise_multiplier: float, steps: int, delta: float) -> AccountedEpsilon:
    """Work out epsilon tightly, by ``dp-accounting``. Parameters as in :func:`.renyi.renyi_epsilon`.

    Infinite where it is so large that e to the power of epsilon is none. UsageError, which says what to install, where the package is
    missing, and where the steps are too many for this machine's memory.
    """
    require_training(sampling_rate, noise_multiplier, steps, delta)
    found = _privacy_loss_distribution()
    bound = renyi_epsilon(sampling_rate, noise_multiplier, steps, delta)
    step = max(_FINEST_STEP, _STEP_PER_EPSILON * bound)
    try:
        once = found.from_gaussian_mechanism(
            noise_multiplier, value_discretization_interval=step, sampling_prob=sampling_rate
        )
        epsilon = float(once.self_compose(steps).get_epsilon_for_delta(delta))
    except OverflowError:
        epsilon = math.inf
    except MemoryError as exc:
        raise UsageError(f"{steps:,} steps at this noise take more memory than there is") from exc
    return AccountedEpsilon(PRV, epsilon, _PACKAGE, version(_PACKAGE))


def why_no_prv() -> str | None:
    """Say why the tight accountant cannot be used here, or None where it can."""
    try:
        version(_PACKAGE)
    except PackageNotFoundError:
        return f"{_PACKAGE} is not installed (pip install 'mlflow-privacy-gate[dp]')"
    return None


def _privacy_loss_distribution() -> Any:
    reason = why_no_prv()
    if reason is not None:
        raise UsageError(f"epsilon cannot be recomputed tightly: {reason}")
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution
