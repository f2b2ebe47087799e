"""Envelopes of every released form verify for ever, and say what they always said."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.facts import Metric, RecomputedEpsilon
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keys import TrustedKey
from mlflow_privacy_gate.evidence.officer_statements import OfficerStatement, verify_statement
from mlflow_privacy_gate.evidence.officers import Exemption, Scope, ScopeKind, SignOff, Waiver
from mlflow_privacy_gate.evidence.verification import VerifiedEvidence, verify
from mlflow_privacy_gate.vocabulary import KeyRole, Membership, ReasonCode, SplitOrigin

FOLDER = Path(__file__).parents[2] / "assets" / "envelopes" / "v1"
NOW = datetime(2026, 2, 1, tzinfo=timezone.utc)
MODEL_DIGEST = "5b" * 32


def read(name: str, now: datetime = NOW, *, key_of: str | None = None) -> VerifiedEvidence:
    key = TrustedKey(name, KeyRole.TESTER, (FOLDER / f"{key_of or name}.pem").read_text())
    envelope = (FOLDER / f"{name}.dsse.json").read_bytes()
    return verify(envelope, keys=[key], allow_unsigned=False, model_digest=MODEL_DIGEST, now=now)


def test_the_first_full_envelope_verifies_and_says_what_it_said() -> None:
    verified = read("full")
    evidence = verified.evidence
    assert verified.envelope_sha256 == "ddd35ab3356a337d4bb19c0d7e0c5e4dbd49db530d7f2fedbb954c4905cac136"
    assert (evidence.outcome, evidence.reason_codes) == ("fail", ("PG201", "PG106"))
    attack = evidence.attack("confidence")
    assert attack is not None
    assert attack.metric("auc") == Metric("auc", 0.6123456789012345, 0.59, 0.634, 0.631, "delong")
    references = evidence.attack("lira_offline")
    assert references is not None
    assert (references.seed, references.references, references.references_origin) == (2**80 + 1, 16, "clone")
    assert evidence.splits.membership is Membership.REPRODUCED
    assert (evidence.splits.shared_rows, evidence.splits.shared_rows_expected) == (7, 5.25)
    assert evidence.data[0].source == "s3://data/träning.parquet"
    assert evidence.validity.positive_control_auc == 0.97
    assert evidence.card.differential_privacy is not None
    assert evidence.card.differential_privacy.delta == 1e-5
    assert evidence.tested_at == datetime(2026, 1, 15, 9, 30, 0, 250_000, tzinfo=timezone.utc)
    assert (evidence.run_id, evidence.tool.libraries) == ("0123456789abcdef0123456789abcdef", {"scikit-learn": "1.7.2"})
    assert [subgroup.auc for subgroup in evidence.subgroups] == [0.55, None]


def test_the_first_sparse_envelope_verifies_and_leaves_unknown_what_it_left_out() -> None:
    evidence = read("sparse").evidence
    assert (evidence.outcome, evidence.splits.origin, evidence.splits.as_logged) == ("pass", SplitOrigin.CALLER, None)
    assert (evidence.validity.blind_auc, evidence.card.personal_data, evidence.registered_model) == (None, None, None)


def test_the_first_envelope_with_a_measured_privacy_budget_says_what_it_said() -> None:
    evidence = read("claimed", key_of="full").evidence
    budget = evidence.privacy_budget
    assert budget is not None
    assert budget.by("rdp") == RecomputedEpsilon("rdp", 2.1013652716431934, "sampled-gaussian-rdp", "v1")
    assert budget.by("prv") == RecomputedEpsilon("prv", None, "dp-accounting", "0.6.0")
    assert (budget.epsilon_lower_bound, budget.level, budget.attack, budget.tail) == (1.25, 0.95, "confidence", "out")
    assert (budget.rows_members, budget.rows_non_members, budget.seed) == (500, 499, 0)
    assert read("full").evidence.privacy_budget is None


def test_the_first_envelope_signed_as_an_identity_verifies_and_says_what_it_said() -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    pipeline = TrustedIdentity(
        "pipeline",
        KeyRole.TESTER,
        "https://github.com/clinic/credit/.github/workflows/check.yml@refs/heads/main",
        "https://token.actions.githubusercontent.com",
        FOLDER / "keyless-root.json",
    )
    envelope = (FOLDER / "keyless.dsse.json").read_bytes()
    verified = verify(envelope, keys=[pipeline], allow_unsigned=False, model_digest=MODEL_DIGEST, now=NOW)
    assert verified.evidence == read("full").evidence


def test_the_first_unsigned_envelope_is_still_read_only_where_that_is_allowed() -> None:
    envelope = (FOLDER / "unsigned.dsse.json").read_bytes()
    verified = verify(envelope, keys=[], allow_unsigned=True, model_digest=MODEL_DIGEST, now=NOW)
    assert verified.evidence == read("full").evidence
    with pytest.raises(EvidenceRejected):
        verify(envelope, keys=[], allow_unsigned=False, model_digest=MODEL_DIGEST, now=NOW)


def test_a_released_envelope_expires_all_the_same() -> None:
    with pytest.raises(EvidenceRejected) as refused:
        read("full", now=datetime(2026, 5, 1, tzinfo=timezone.utc))
    assert refused.value.code is ReasonCode.PG005


STATED_AT = datetime(2026, 1, 16, 8, tzinfo=timezone.utc)
FULL_SHA256 = "ddd35ab3356a337d4bb19c0d7e0c5e4dbd49db530d7f2fedbb954c4905cac136"
OFFICERS: dict[str, OfficerStatement] = {
    "waiver": Waiver(
        evidence_sha256=FULL_SHA256,
        findings=(ReasonCode.PG201, ReasonCode.PG106),
        reason="rollback nach Störung",
        reference="CHG-4711",
        compensating_controls="answers are rounded",
        requested_by="Ann Author",
        approved_by="Bea Officer",
        scope=Scope("credit", ScopeKind.ALIAS, "champion"),
        effective_on=STATED_AT,
        effective_until=datetime(2026, 2, 15, 8, tzinfo=timezone.utc),
        stated_at=STATED_AT,
    ),
    "signoff": SignOff(
        FULL_SHA256, Scope("credit", ScopeKind.STAGE, "Production"), "Bea Officer", STATED_AT, "on paper"
    ),
    "exemption": Exemption(MODEL_DIGEST, "machine sensors only", "Bea Officer", STATED_AT),
}


@pytest.mark.parametrize("name", OFFICERS)
def test_the_first_officers_statements_verify_and_say_what_they_said(name: str) -> None:
    key = TrustedKey("dpo", KeyRole.PRIVACY_OFFICER, (FOLDER / "officer.pem").read_text())
    envelope = (FOLDER / f"{name}.dsse.json").read_bytes()
    assert verify_statement(type(OFFICERS[name]), envelope, keys=[key], now=NOW).statement == OFFICERS[name]
