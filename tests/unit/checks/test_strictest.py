"""Promises on which of two cards' claims count: never less than either declares."""

from __future__ import annotations

import pytest

from mlflow_privacy_gate.checks.strictest import strictest
from mlflow_privacy_gate.evidence.facts import CardClaims, DifferentialPrivacyClaim

TIGHT, WIDE = DifferentialPrivacyClaim(1.0, 1e-6), DifferentialPrivacyClaim(8.0, 1e-5)
EMPTIED = DifferentialPrivacyClaim(0.9, 0.5)  # a smaller epsilon, and a delta that takes it back


@pytest.mark.parametrize(
    ("given", "recorded", "counts", "kept"),
    [
        (CardClaims(), CardClaims(), CardClaims(), 0),
        (CardClaims(data_categories=("Health",)), CardClaims(data_categories=("health",)), ("Health",), 0),
        (CardClaims(), CardClaims(data_categories=("health",)), ("health",), 1),
        (CardClaims(max_attack_auc=0.54), CardClaims(max_attack_auc=0.52), 0.52, 1),
        (CardClaims(max_attack_auc=0.52), CardClaims(max_attack_auc=0.54), 0.52, 0),
        (CardClaims(), CardClaims(max_attack_auc=0.54), 0.54, 1),
        (CardClaims(personal_data=False), CardClaims(personal_data=True), True, 1),
        (CardClaims(), CardClaims(personal_data=True), True, 1),
        (CardClaims(personal_data=False), CardClaims(), False, 0),
        (CardClaims(), CardClaims(differential_privacy=TIGHT), TIGHT, 1),
        (CardClaims(differential_privacy=WIDE), CardClaims(differential_privacy=TIGHT), TIGHT, 1),
        (CardClaims(differential_privacy=TIGHT), CardClaims(differential_privacy=WIDE), TIGHT, 0),
        (CardClaims(differential_privacy=TIGHT), CardClaims(differential_privacy=TIGHT), TIGHT, 0),
        (CardClaims(differential_privacy=EMPTIED), CardClaims(differential_privacy=TIGHT), TIGHT, 1),
    ],
)
def test_the_stricter_of_two_claims_counts_and_what_was_kept_is_said(
    given: CardClaims, recorded: CardClaims, counts: object, kept: int
) -> None:
    claims, words = strictest(given, recorded)
    stated = (claims, claims.data_categories, claims.max_attack_auc, claims.personal_data, claims.differential_privacy)
    assert counts in stated
    assert len(words) == kept
