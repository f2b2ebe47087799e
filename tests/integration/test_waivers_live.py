"""Officers' statements at a real gated server, signed with the command line as an officer would."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from officer_builder import OFFICER, policy_text, sha256_of, waiver
from registry_seed import SeededVersion, seed_version

from mlflow_privacy_gate.cli.program import program
from mlflow_privacy_gate.evidence.facts import CardClaims, DataFacts
from mlflow_privacy_gate.evidence.officer_statements import sign_statement
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind, Waiver
from mlflow_privacy_gate.evidence.signing import Ed25519Signer
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG

pytestmark = [
    pytest.mark.server,
    pytest.mark.filterwarnings("ignore:.*transition_model_version_stage.*:FutureWarning"),
]

TESTER = fresh_signer()
GUARD = "guard: {stages: [Production], aliases: [champion, prod], registered_models: ['live-*']}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    policy = folder / "privacy-gate.yaml"
    policy.write_text(policy_text(TESTER, more=GUARD), encoding="utf-8")
    with live_server(folder, policy=policy, workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: LiveServer) -> MlflowClient:
    return MlflowClient(tracking_uri=server.url, registry_uri=server.url)


@dataclass(frozen=True)
class OfficersDesk:
    """An officer's own machine: a key file and the server's address."""

    server: LiveServer
    keys: Path

    def run(self, *arguments: str, signer: Ed25519Signer = OFFICER) -> Any:
        path = self.keys / "officer.key"
        private = signer._private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(private)
        path.chmod(0o600)
        servers = ["--tracking-uri", self.server.url, "--registry-uri", self.server.url]
        command = [*arguments, "--key", str(path), "--policy", str(self.server.policy), *servers, "--output", "json"]
        return CliRunner().invoke(program, command)

    def waive(self, seeded: SeededVersion, *scope: str, **options: Any) -> Any:
        until = f"{datetime.now(timezone.utc) + timedelta(days=7):%Y-%m-%d}"
        return self.run(
            *("waive", f"models:/{seeded.name}/{seeded.version}", *scope, "--finding", "PG201", "--until", until),
            *("--reason", "rollback", "--reference", "CHG-1", "--controls", "rounded answers"),
            *("--requested-by", "Ann", "--approved-by", "Bea"),
            **options,
        )


@pytest.fixture
def desk(server: LiveServer, tmp_path: Path) -> OfficersDesk:
    return OfficersDesk(server, tmp_path)


def failed(client: MlflowClient, name: str, **changes: Any) -> SeededVersion:
    seeded = seed_version(client, name, name.encode())
    evidence = passing_evidence(seeded.digest, **{"aucs": FAILING_AUCS, **changes})
    client.set_model_version_tag(name, seeded.version, ATTESTATION_TAG, attestation(evidence, TESTER))
    return seeded


def attach(client: MlflowClient, seeded: SeededVersion, signer: Ed25519Signer = OFFICER, **changes: Any) -> None:
    """Write a waiver's tag as anyone who may edit the version could."""
    tags = client.get_model_version(seeded.name, seeded.version).tags
    scope = Scope(seeded.name, ScopeKind.ALIAS, "champion")
    made: Waiver = waiver(evidence_sha256=sha256_of(tags[ATTESTATION_TAG]), scope=scope)
    signed = sign_statement(replace(made, **changes), signer)
    client.set_model_version_tag(seeded.name, seeded.version, signed.tag, signed.tag_value)


def refusal(client: MlflowClient, seeded: SeededVersion, alias: str = "champion") -> str:
    started = time.monotonic()
    with pytest.raises(MlflowException) as caught:
        client.set_registered_model_alias(seeded.name, alias, seeded.version)
    assert time.monotonic() - started < 2.0
    assert caught.value.error_code == "PERMISSION_DENIED"
    assert alias not in client.get_registered_model(seeded.name).aliases
    return caught.value.message


def test_a_waiver_signed_at_the_command_line_opens_the_alias_it_names_and_no_other(
    client: MlflowClient, desk: OfficersDesk
) -> None:
    seeded = failed(client, "waived")
    assert "PG201" in refusal(client, seeded)
    result = desk.waive(seeded, "--alias", "champion")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["decision"]["verdict"] == "waived"
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)
    assert client.get_model_version_by_alias(seeded.name, "champion").version == seeded.version
    assert "PG302" in refusal(client, seeded, "prod")
    with pytest.raises(MlflowException, match="PG302"):
        client.transition_model_version_stage(seeded.name, seeded.version, "Production")
    found = client.get_model_version(seeded.name, seeded.version)
    assert found.tags[VERDICT_TAG] == "waived"
    assert said["tag"] in found.tags
    assert "**WAIVED**" in (found.description or "")
    artifacts = {item.path for item in client.list_artifacts(seeded.run_id, "privacy_gate")}
    assert said["artifact"] in artifacts


def test_a_waiver_for_the_stage_opens_the_stage(client: MlflowClient, desk: OfficersDesk) -> None:
    seeded = failed(client, "waived-stage")
    assert desk.waive(seeded, "--stage", "production").exit_code == 0
    client.transition_model_version_stage(seeded.name, seeded.version, "Production")
    refusal(client, seeded)


def test_a_waiver_into_a_guarded_name_goes_with_the_copy_and_opens_nothing_there(
    client: MlflowClient, desk: OfficersDesk
) -> None:
    seeded = failed(client, "waived-copy")
    with pytest.raises(MlflowException, match="PG201"):
        client.copy_model_version(f"models:/{seeded.name}/1", "live-copy")
    assert desk.waive(seeded, "--into", "live-copy").exit_code == 0
    copy = client.copy_model_version(f"models:/{seeded.name}/1", "live-copy")
    assert (copy.name, copy.version) == ("live-copy", "1")
    with pytest.raises(MlflowException, match="PG302"):
        client.set_registered_model_alias("live-copy", "champion", "1")
    with pytest.raises(MlflowException, match="PG302"):
        client.copy_model_version(f"models:/{seeded.name}/1", "live-other")


def test_a_waiver_opens_nothing_once_its_tag_is_gone(client: MlflowClient, desk: OfficersDesk) -> None:
    seeded = failed(client, "unwaived")
    tag = json.loads(desk.waive(seeded, "--alias", "champion").stdout)["tag"]
    client.delete_model_version_tag(seeded.name, seeded.version, tag)
    assert "PG201" in refusal(client, seeded)


@pytest.mark.parametrize(
    ("signer", "changes", "code"),
    [
        (OFFICER, {"effective_until": datetime.now(timezone.utc) - timedelta(minutes=1)}, "PG302"),
        (OFFICER, {"effective_until": datetime.now(timezone.utc) + timedelta(days=60)}, "PG302"),
        (OFFICER, {"evidence_sha256": "f" * 64}, "PG302"),
        (OFFICER, {"scope": Scope("another", ScopeKind.ALIAS, "champion")}, "PG302"),
        (OFFICER, {"approved_by": "ANN  Author"}, "PG303"),
        (TESTER, {}, "PG003"),
        (fresh_signer(), {}, "PG003"),
    ],
    ids=["expired", "too-long", "other-test", "other-name", "one-person", "tester-key", "foreign-key"],
)
def test_a_forged_or_foreign_waiver_is_refused_with_its_code(
    client: MlflowClient, signer: Ed25519Signer, changes: dict[str, Any], code: str, request: pytest.FixtureRequest
) -> None:
    seeded = failed(client, f"forged-{request.node.callspec.id}")
    attach(client, seeded, signer, **changes)
    said = refusal(client, seeded)
    assert "PG201" in said
    assert code in said


def test_a_waiver_that_names_the_earlier_fail_holds_for_every_later_test_and_says_waived(
    client: MlflowClient, desk: OfficersDesk, server: LiveServer
) -> None:
    seeded = failed(client, "failed-before")
    earlier = sha256_of(client.get_model_version(seeded.name, seeded.version).tags[ATTESTATION_TAG])
    other = tuple(
        DataFacts(role=role, rows=2000, rows_used=2000, digest=f"rowset-sha256/v1:{digit * 64}")
        for role, digit in (("members", "a"), ("non_members", "e"))
    )

    def test_anew(nonce: str) -> None:
        passed = attestation(passing_evidence(seeded.digest, data=other, nonce=nonce), TESTER)
        client.set_model_version_tag(seeded.name, seeded.version, ATTESTATION_TAG, passed)

    test_anew("0123456789abcdef")
    said = refusal(client, seeded)
    assert "PG108" in said
    assert earlier in "".join(said.split())
    options = ("--alias", "champion", "--finding", "PG108", "--test", earlier)
    result = desk.waive(seeded, *options)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["decision"]["verdict"] == "waived"
    assert client.get_model_version(seeded.name, seeded.version).tags[VERDICT_TAG] == "waived"
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)
    test_anew("fedcba9876543210")
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)
    shown = CliRunner().invoke(
        program,
        ["ledger", "show", seeded.name, "--registry-uri", server.registry_database, "--policy", str(server.policy)],
    )
    assert shown.stdout.count("waived") == 2
    assert f"envelope {earlier[:16]}" in shown.stdout


def test_a_waived_promotion_says_waived_wherever_it_shows(
    client: MlflowClient, desk: OfficersDesk, server: LiveServer
) -> None:
    seeded = failed(client, "shown-waived")
    assert desk.waive(seeded, "--alias", "champion").exit_code == 0
    client.set_model_version_tag(seeded.name, seeded.version, VERDICT_TAG, "pass")
    uri = f"models:/{seeded.name}/{seeded.version}"
    reach = ("--tracking-uri", server.url, "--registry-uri", server.url, "--policy", str(server.policy))

    def said(*command: str) -> str:
        done = CliRunner().invoke(program, [*command, *reach])
        assert done.exit_code == 0, done.output
        return done.stdout

    promoted = said("promote", uri, "--recorded", "--alias", "champion")
    assert "WAIVED, not passed" in promoted
    assert "Promoted (WAIVED)" in promoted
    assert client.get_model_version(seeded.name, seeded.version).tags[VERDICT_TAG] == "waived"
    fields = json.loads(said("promote", uri, "--recorded", "--alias", "champion", "--output", "json"))
    assert (fields["promoted"], fields["decision"]["verdict"], fields["check"]) == (True, "waived", None)
    assert "WAIVED, not passed" in said("verify", uri, "--alias", "champion")
    assert json.loads(said("verify", uri, "--alias", "champion", "--output", "json"))["verdict"] == "waived"
    assert "WAIVED" in said("status", seeded.name)
    (standing,) = json.loads(said("status", seeded.name, "--output", "json"))
    assert standing["verdict"] == "waived"
    assert "verdict: waived" in said("card", "show", uri)
    place = ("--registry-uri", server.registry_database, "--policy", str(server.policy))
    rows = CliRunner().invoke(program, ["ledger", "show", seeded.name, *place]).stdout.splitlines()
    decisions = [row for row in rows if "decision" in row]
    assert decisions
    assert all("waived" in row and "allowed" not in row for row in decisions)


def test_the_testers_key_signs_no_waiver_at_the_command_line(client: MlflowClient, desk: OfficersDesk) -> None:
    seeded = failed(client, "by-tester")
    result = desk.waive(seeded, "--alias", "champion", signer=TESTER)
    assert "does not trust this key as privacy-officer (it has the role tester there)" in str(result.exception)
    tags = client.get_model_version(seeded.name, seeded.version).tags
    assert not [tag for tag in tags if tag.startswith("privacy_gate.waiver")]


def test_an_exemption_lets_a_card_without_personal_data_pass(client: MlflowClient, desk: OfficersDesk) -> None:
    within = {"confidence": 0.51, "loss": 0.51, "entropy": 0.51, "modified_entropy": 0.51}
    seeded = failed(client, "sensors", aucs=within, card=CardClaims(personal_data=False))
    assert "PG401" in refusal(client, seeded)
    result = desk.run(
        *("sign-off", f"models:/{seeded.name}/1", "--signed-by", "Bea", "--no-personal-data", "machine sensors only")
    )
    assert result.exit_code == 0, result.output
    client.set_registered_model_alias(seeded.name, "champion", seeded.version)


def test_a_policy_that_asks_for_a_sign_off_waits_for_it(
    server: LiveServer, client: MlflowClient, desk: OfficersDesk
) -> None:
    within = {"confidence": 0.51, "loss": 0.51, "entropy": 0.51, "modified_entropy": 0.51}
    seeded = failed(client, "signed-off", aucs=within)
    assert server.policy is not None
    text = server.policy.read_text(encoding="utf-8")
    try:
        server.policy.write_text(f"{text}\nsign_off: {{required: true}}\n", encoding="utf-8")
        assert "PG301" in refusal(client, seeded)
        result = desk.run("sign-off", f"models:/{seeded.name}/1", "--alias", "champion", "--signed-by", "Bea")
        assert result.exit_code == 0, result.output
        client.set_registered_model_alias(seeded.name, "champion", seeded.version)
        assert "PG301" in refusal(client, seeded, "prod")
    finally:
        server.policy.write_text(text, encoding="utf-8")
