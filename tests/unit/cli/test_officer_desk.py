"""An officer's statement reaches the version's tag, run, card and description, or nothing is written at all."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, PASSING_AUCS, attestation, fresh_signer, passing_evidence
from fakes import FakeRegistry
from officer_builder import OFFICER, exemption, policy_text, sha256_of, sign_off, waiver

from mlflow_privacy_gate.cli.officer_desk import Desk, attach
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.facts import CardClaims, DataFacts
from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind
from mlflow_privacy_gate.evidence.signing import Ed25519Signer
from mlflow_privacy_gate.gate import Route
from mlflow_privacy_gate.gate.attaching import decision_to_sign, earlier_test, scope_of
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG, ReasonCode

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
TESTER = fresh_signer()
POLICY = parse_policy(policy_text(TESTER))
AUTHORS_CARD = b"---\nlicense: mit\n---\n# Credit\n\nThe author's own words.\n"


@pytest.fixture
def registry(tmp_path: Path) -> FakeRegistry:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "MLmodel").write_text("flavors: {}\n")
    return FakeRegistry(folder, tags={VERDICT_TAG: "fail"}, artifacts={"README.md": AUTHORS_CARD})


def checked(registry: FakeRegistry, **changes: Any) -> str:
    times = {"tested_at": NOW - timedelta(days=1), "expires_at": NOW + timedelta(days=89)}
    made = passing_evidence(model_digest(registry.folder), **{"aucs": FAILING_AUCS, **times, **changes})
    tag = attestation(made, TESTER)
    registry.tags[ATTESTATION_TAG] = tag
    return sha256_of(tag)


def desk(
    registry: FakeRegistry, signer: Ed25519Signer = OFFICER, route: Route = Route.ALIAS, value: str = "champion"
) -> Desk:
    model = registry.resolve("models:/credit/1")
    before = decision_to_sign(registry, model, POLICY, route=route, value=value, now=NOW)
    return Desk(registry, model, POLICY, signer, before, NOW)


def test_a_waiver_is_written_as_artifact_card_description_and_tag_with_the_verdict_last(registry: FakeRegistry) -> None:
    statement = waiver(now=NOW, evidence_sha256=checked(registry))
    said = attach(desk(registry), statement, "text")
    tag, artifact = (next(w for w in registry.writes if word in w) for word in ("privacy_gate.waiver.", "waiver-"))
    assert registry.writes == [artifact, "README.md", "metrics", "description", tag, VERDICT_TAG]
    assert registry.tags[VERDICT_TAG] == "waived"
    assert registry.artifacts[artifact].startswith(b'{"payload":')
    assert "WAIVED, not passed: alias champion for credit version 1 is allowed." in said
    assert tag in said


def test_a_waived_card_says_waived_and_leaves_the_authors_words_alone(registry: FakeRegistry) -> None:
    statement = waiver(now=NOW, evidence_sha256=checked(registry))
    attach(desk(registry), statement, "text")
    card = registry.artifacts["README.md"].decode()
    assert "The author's own words." in card
    assert "**WAIVED**" in card
    assert "verdict: waived" in card
    assert "CHG-4711" in card
    assert registry.description is not None
    assert "**WAIVED**" in registry.description
    assert "PASS" not in card


def test_the_card_still_counts_the_tests_of_these_bytes(registry: FakeRegistry) -> None:
    before = NOW - timedelta(days=2)
    earlier = attestation(passing_evidence(model_digest(registry.folder), tested_at=before), TESTER)
    registry.known = KnownTests((base64.b64decode(earlier),))
    statement = waiver(now=NOW, evidence_sha256=checked(registry))
    attach(desk(registry), statement, "text")
    assert "- **Tests of these bytes so far**: 2" in registry.artifacts["README.md"].decode()


def test_the_gate_hears_what_was_attached(registry: FakeRegistry) -> None:
    statement = waiver(now=NOW, evidence_sha256=checked(registry))
    attach(desk(registry), statement, "text")
    assert desk(registry).before.allowed
    assert not desk(registry, value="prod").before.allowed


def after_a_fail(registry: FakeRegistry, *, reachable: bool) -> str:
    """A pass on other splits stands with the version, and the ledger holds an earlier fail; give that fail's sha256."""
    failed = checked(registry, tested_at=NOW - timedelta(days=3))
    earlier = registry.tags[ATTESTATION_TAG]
    other = tuple(DataFacts(role, 2000, 2000, f"rowset-sha256/v1:{digit * 64}") for role, digit in SIDES)
    checked(registry, aucs=PASSING_AUCS, data=other)
    tests = tuple(base64.b64decode(tag) for tag in (earlier, registry.tags[ATTESTATION_TAG]))
    registry.known = KnownTests(tests) if reachable else None
    return failed


SIDES = (("members", "a"), ("non_members", "e"))


@pytest.mark.parametrize("reachable", [True, False], ids=["ledger reached", "ledger out of reach"])
def test_a_waiver_that_names_an_earlier_fail_is_shown_as_waived(registry: FakeRegistry, reachable: bool) -> None:
    failed = after_a_fail(registry, reachable=reachable)
    at = desk(registry)
    named = earlier_test(at.before, failed[:12] if reachable else failed, at.known)
    assert named == failed
    said = attach(at, waiver(now=NOW, evidence_sha256=named, findings=(ReasonCode.PG108,)), "text")
    assert "WAIVED, not passed" in said
    assert registry.tags[VERDICT_TAG] == "waived"
    assert "**WAIVED**" in registry.artifacts["README.md"].decode()


@pytest.mark.parametrize("named", ["", "f" * 64, "not hex", "present"])
def test_a_test_that_the_ledger_does_not_know_as_an_earlier_one_is_refused(registry: FakeRegistry, named: str) -> None:
    failed = after_a_fail(registry, reachable=True)
    at = desk(registry)
    present = at.before.envelope_sha256 or ""
    with pytest.raises(UsageError, match=failed[:16]):
        earlier_test(at.before, present if named == "present" else named, at.known)


@pytest.mark.parametrize("named", ["", "abc", "f" * 63, "g" * 64])
def test_without_the_ledger_an_earlier_test_must_be_named_whole(registry: FakeRegistry, named: str) -> None:
    after_a_fail(registry, reachable=False)
    with pytest.raises(UsageError, match="all 64 digits"):
        earlier_test(desk(registry).before, named, None)


def test_a_sign_off_leaves_the_verdict_what_it_is(registry: FakeRegistry) -> None:
    sha256 = checked(registry)
    attach(desk(registry), sign_off(now=NOW, evidence_sha256=sha256), "text")
    assert registry.tags[VERDICT_TAG] == "fail"
    assert any(tag.startswith("privacy_gate.signoff.") for tag in registry.tags)
    assert [verified.statement.signed_by for verified in desk(registry).before.sign_offs] == ["Bea Officer"]


def test_an_exemption_turns_an_undecided_version_into_what_its_numbers_say(registry: FakeRegistry) -> None:
    checked(
        registry,
        aucs={"confidence": 0.51, "loss": 0.51, "entropy": 0.51, "modified_entropy": 0.51},
        card=CardClaims(personal_data=False),
    )
    undecided = desk(registry)
    assert undecided.before.reason_codes == ("PG401",)
    attach(undecided, exemption(model_digest(registry.folder), now=NOW), "text")
    assert registry.tags[VERDICT_TAG] == "pass"
    assert "verdict: pass" in registry.artifacts["README.md"].decode()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"approved_by": "ann author"}, ReasonCode.PG303),
        ({"effective_until": NOW + timedelta(days=31)}, ReasonCode.PG302),
        ({"findings": (ReasonCode.PG402,)}, ReasonCode.PG302),
    ],
)
def test_what_the_gate_would_never_hear_is_not_written(
    registry: FakeRegistry, changes: dict[str, Any], code: ReasonCode
) -> None:
    statement = waiver(now=NOW, evidence_sha256=checked(registry), **changes)
    with pytest.raises(UsageError) as refused:
        attach(desk(registry), statement, "text")
    assert refused.value.code is code
    assert registry.writes == []


@pytest.mark.parametrize("signer", [TESTER, fresh_signer()], ids=["tester", "foreign"])
def test_a_key_that_is_no_officers_writes_nothing(registry: FakeRegistry, signer: Ed25519Signer) -> None:
    sha256 = checked(registry)
    with pytest.raises(UsageError, match="would not believe it") as refused:
        attach(desk(registry, signer), sign_off(now=NOW, evidence_sha256=sha256), "text")
    assert refused.value.code is ReasonCode.PG003
    assert registry.writes == []


def test_without_believed_evidence_there_is_nothing_to_sign_about(registry: FakeRegistry) -> None:
    with pytest.raises(UsageError, match="no test that a statement could be about"):
        desk(registry)
    registry.tags[ATTESTATION_TAG] = attestation(passing_evidence("f" * 64), TESTER)
    with pytest.raises(UsageError, match="PG004"):
        desk(registry)


def test_a_broken_card_does_not_keep_a_statement_out(registry: FakeRegistry) -> None:
    registry.artifacts["README.md"] = b"[//]: # (privacy-gate:begin v1)\nno end\n"
    statement = waiver(now=NOW, evidence_sha256=checked(registry))
    said = attach(desk(registry), statement, "json")
    fields = json.loads(said)
    assert "the card could not be changed" in fields["note"]
    assert fields["decision"]["verdict"] == "waived"
    assert fields["decision"]["waivers"][0]["reference"] == "CHG-4711"
    assert fields["tag"] in registry.tags
    assert registry.artifacts["README.md"].endswith(b"no end\n")


def test_the_scope_is_the_promotion_that_was_named(registry: FakeRegistry) -> None:
    checked(registry)
    assert scope_of(desk(registry).before.target) == Scope("credit", ScopeKind.ALIAS, "champion")
    stage = desk(registry, route=Route.STAGE, value="Production")
    assert scope_of(stage.before.target) == Scope("credit", ScopeKind.STAGE, "Production")
    registry.workspace = "team"
    assert scope_of(desk(registry).before.target) == Scope("credit", ScopeKind.ALIAS, "champion", "team")
    registry.workspace = "default"
    into = desk(registry, route=Route.COPY, value="live")
    assert scope_of(into.before.target) == Scope("live", ScopeKind.NAME, "live")


def test_a_waiver_into_a_guarded_name_is_heard_there(registry: FakeRegistry) -> None:
    sha256, into = checked(registry), desk(registry, route=Route.COPY, value="live")
    attach(into, waiver(now=NOW, evidence_sha256=sha256, scope=scope_of(into.before.target)), "text")
    assert desk(registry, route=Route.COPY, value="live").before.allowed


def test_a_statement_stopped_on_the_way_leaves_no_waived_verdict(registry: FakeRegistry) -> None:
    statement = waiver(now=NOW, evidence_sha256=checked(registry))
    for number in range(1, 7):
        registry.stop_before = number
        registry.writes = []
        with pytest.raises(BaseException, match="before write"):
            attach(desk(registry), statement, "text")
        assert registry.tags[VERDICT_TAG] == "fail"
