"""What a claim of (epsilon, delta)-differential privacy would allow any attack to reach, and the claim's band.

The ceilings hold for every attack on every (epsilon, delta) mechanism (Kairouz, Oh and Viswanath 2015); an attack above one contradicts
the claim.
"""

from __future__ import annotations

import math


def tpr_ceiling(epsilon: float, delta: float, fpr: float) -> float:
    """Give the largest TPR at ``fpr`` that the claim allows: min(e^eps * fpr + delta, 1 - e^-eps * (1 - delta - fpr)), a fraction."""
    rising = math.exp(min(epsilon, 700.0)) * fpr + delta
    falling = 1.0 - math.exp(-epsilon) * (1.0 - delta - fpr)
    return min(1.0, rising, falling)


def auc_ceiling(epsilon: float, delta: float) -> float:
    """Give the largest attack AUC that the claim allows: 1 - (1 - delta)^2 / (1 + e^eps), a fraction."""
    return 1.0 - (1.0 - delta) ** 2 / (1.0 + math.exp(min(epsilon, 700.0)))


def band(epsilon: float) -> str:
    """Name the claim's band: strong up to 1, moderate up to 10, weak beyond."""
    if epsilon <= 1:
        return "strong (epsilon at most 1): evaluation recommended"
    if epsilon <= 10:
        return "moderate (epsilon above 1, at most 10): evaluation required"
    return "weak (epsilon above 10): full evaluation, as without a claim"
