"""Where a version stands is said of what it holds, under the policy and the statements of this moment."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence
from fakes import FakeRegistry
from officer_builder import CHAMPION, OFFICER, policy_text, sha256_of, waiver

from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.officer_statements import sign_statement
from mlflow_privacy_gate.evidence.officers import Scope
from mlflow_privacy_gate.gate import Route
from mlflow_privacy_gate.gate.examining import Standing, examine, standings
from mlflow_privacy_gate.policy import Policy, parse_policy
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, Outcome

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
TESTER = fresh_signer()
POLICY = parse_policy(policy_text(TESTER))


@pytest.fixture
def registry(tmp_path: Path) -> FakeRegistry:
    (tmp_path / "MLmodel").write_text("flavors: {}\n")
    made = passing_evidence(
        model_digest(tmp_path),
        aucs=FAILING_AUCS,
        tested_at=NOW - timedelta(days=1),
        expires_at=NOW + timedelta(days=89),
    )
    failing = attestation(made, TESTER)
    return FakeRegistry(tmp_path, tags={ATTESTATION_TAG: failing})


def waive(registry: FakeRegistry, scope: Scope = CHAMPION) -> None:
    about = sha256_of(registry.tags[ATTESTATION_TAG])
    made = sign_statement(waiver(now=NOW, evidence_sha256=about, scope=scope), OFFICER)
    registry.tags[made.tag] = made.tag_value


def standing(registry: FakeRegistry, policy: Policy = POLICY, *, rehash: bool = False) -> Standing:
    [found] = standings(registry, policy, name=None, rehash=rehash, now=NOW)
    return found


def test_a_failed_version_in_production_would_be_refused_now(registry: FakeRegistry) -> None:
    registry.aliases = ("champion",)
    found = standing(registry)
    assert found.promoted_as == ("alias champion",)
    assert not found.decision.allowed


@pytest.mark.parametrize("rehash", [False, True])
def test_a_version_waived_for_what_it_holds_stands_as_waived(registry: FakeRegistry, rehash: bool) -> None:
    registry.aliases = ("champion",)
    waive(registry)
    found = standing(registry, rehash=rehash)
    assert found.decision.allowed
    assert found.decision.outcome is Outcome.WAIVED
    assert found.expires_soon(NOW)


def test_a_waiver_for_one_alias_does_not_cover_another_that_the_version_holds(registry: FakeRegistry) -> None:
    registry.aliases = ("champion", "prod")
    waive(registry)
    found = standing(registry)
    assert not found.decision.allowed
    assert found.decision.target.value == "prod"


def test_a_guarded_name_is_judged_as_a_creation_into_it(registry: FakeRegistry) -> None:
    policy = parse_policy(policy_text(TESTER, more="guard: {registered_models: [credit]}"))
    found = standing(registry, policy)
    assert found.promoted_as == ("name credit",)
    assert (found.decision.target.route, found.decision.target.value) == (Route.CREATE, "credit")


def test_bytes_changed_after_the_test_are_found_where_they_are_hashed(registry: FakeRegistry) -> None:
    (registry.folder / "MLmodel").write_text("other: {}\n")
    assert standing(registry).decision.reason_codes == ("PG201",)
    assert standing(registry, rehash=True).decision.reason_codes == ("PG004",)
    model = registry.resolve("models:/credit/1")
    examined = examine(registry, model, POLICY, route=Route.ALIAS, value="champion", now=NOW)
    assert examined.reason_codes == ("PG004",)
