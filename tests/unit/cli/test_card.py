"""``card`` and ``report`` on a real registry: what is recorded and believed is shown, everything else is called untested."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from evidence_builder import FAILING_AUCS, attestation, passing_evidence, write_policy
from mlflow import MlflowClient
from mlflow_home import MlflowHome
from officer_builder import policy_text, sign_off, signed, waiver
from registry_seed import SeededVersion, seed_version

from mlflow_privacy_gate.cards.curves import RocCurve, ScoreHistogram
from mlflow_privacy_gate.cards.particulars import AttackCurves
from mlflow_privacy_gate.checks.stored_curves import CURVES_ARTIFACT, curves_json
from mlflow_privacy_gate.cli.program import program
from mlflow_privacy_gate.errors import PrivacyGateError
from mlflow_privacy_gate.evidence.envelope import open_envelope
from mlflow_privacy_gate.evidence.facts import PolicyReference
from mlflow_privacy_gate.evidence.ledger import Entry, EntryKind
from mlflow_privacy_gate.evidence.ledger import Result as Recorded
from mlflow_privacy_gate.evidence.officers import Scope, ScopeKind
from mlflow_privacy_gate.evidence.signing import Ed25519Signer, generate_key
from mlflow_privacy_gate.policy import load_policy
from mlflow_privacy_gate.registry.ledger.file_ledger import FileLedger
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, SIGN_OFF_TAG, WAIVER_TAG

pytestmark = pytest.mark.usefixtures("mlflow_home")
Run = Callable[..., Result]
AUTHORS = "---\nlicense: mit\nprivacy_gate:\n  release_context: internal\n---\n\n# Credit\n\nWords of the author.\n"


@pytest.fixture
def signer(tmp_path: Path) -> Ed25519Signer:
    return generate_key(tmp_path / "privacy-gate.key")


@pytest.fixture
def policy(tmp_path: Path, signer: Ed25519Signer) -> Path:
    return write_policy(tmp_path / "privacy-gate.yaml", signer)


@pytest.fixture
def run(policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVACY_GATE_POLICY", str(policy))
    return lambda *arguments: CliRunner().invoke(program, list(arguments))


@pytest.fixture
def seeded(mlflow_home: MlflowHome, request: pytest.FixtureRequest) -> SeededVersion:
    return seed_version(MlflowClient(), request.node.name, experiment=mlflow_home.experiment_id)


def uri(version: SeededVersion) -> str:
    return f"models:/{version.name}/{version.version}"


def attest(
    version: SeededVersion,
    signer: Ed25519Signer | None,
    policy: Path,
    *,
    aged: timedelta = timedelta(),
    **changes: Any,
) -> str:
    now = datetime.now(timezone.utc) - aged
    built = passing_evidence(
        version.digest,
        model_uri=uri(version),
        registered_model=version.name,
        version=version.version,
        policy=PolicyReference(policy.name, load_policy(policy).sha256),
        tested_at=now - timedelta(minutes=1),
        expires_at=now + timedelta(days=90),
        **changes,
    )
    tag = attestation(built, signer)
    MlflowClient().set_model_version_tag(version.name, version.version, ATTESTATION_TAG, tag)
    return open_envelope(tag).sha256


def attested(version: SeededVersion, envelope: bytes) -> Entry:
    return Entry(
        at=datetime.now(timezone.utc) - timedelta(hours=1),
        kind=EntryKind.ATTESTATION,
        actor="unauthenticated",
        workspace="default",
        name=version.name,
        result=Recorded.RECORDED,
        version=version.version,
        model_digest=version.digest,
        envelope_sha256=hashlib.sha256(envelope).hexdigest(),
    )


def card_of(version: SeededVersion) -> str:
    return Path(MlflowClient().download_artifacts(version.run_id, "README.md")).read_text(encoding="utf-8")


def log_card(version: SeededVersion, text: str, name: str = "README.md") -> None:
    MlflowClient().log_text(version.run_id, text, name)


def test_write_puts_the_recorded_test_into_card_and_description(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path
) -> None:
    log_card(seeded, AUTHORS)
    sha256 = attest(seeded, signer, policy)
    result = run("card", "write", uri(seeded))
    assert result.exit_code == 0, result.output
    assert "PASS, written to runs:/" in result.output
    card = card_of(seeded)
    assert "Words of the author." in card
    assert "**PASS**: attack AUC **0.5120**" in card
    assert f"attestation_sha256: {sha256}" in card.replace('"', "")
    assert "**PASS**" in (MlflowClient().get_model_version(seeded.name, seeded.version).description or "")
    run("card", "write", uri(seeded))
    assert card_of(seeded) == card


def test_every_view_made_from_the_record_counts_the_tests_so_far(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, tmp_path: Path
) -> None:
    policy = write_policy(tmp_path / "with-ledger.yaml", signer, "ledger: ledger.jsonl")
    earlier = base64.b64decode(attestation(passing_evidence(seeded.digest), signer))
    with FileLedger(tmp_path / "ledger.jsonl").turn() as turn:
        turn.append(attested(seeded, earlier), earlier.decode())
    attest(seeded, signer, policy)
    said = "**Tests of these bytes so far**: 2"
    assert said in run("card", "show", uri(seeded), "--policy", str(policy)).stdout
    assert said in run("report", uri(seeded), "--format", "markdown", "--policy", str(policy)).stdout
    run("card", "write", uri(seeded), "--policy", str(policy))
    assert said in card_of(seeded)


def test_without_a_ledger_to_read_the_number_of_tests_is_unknown(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path
) -> None:
    attest(seeded, signer, policy)
    shown = run("card", "show", uri(seeded)).stdout
    assert "**Tests of these bytes so far**: unknown (the ledger cannot be read from here)" in shown


def test_write_touches_no_tag(run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path) -> None:
    attest(seeded, signer, policy)
    before = MlflowClient().get_model_version(seeded.name, seeded.version).tags
    run("card", "write", uri(seeded))
    assert MlflowClient().get_model_version(seeded.name, seeded.version).tags == before


def test_the_policy_in_force_decides_what_the_card_says(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, tmp_path: Path
) -> None:
    attest(seeded, signer, policy)
    tighter = write_policy(tmp_path / "tighter.yaml", signer, "margin: {default: 0.505}")
    result = run("card", "write", uri(seeded), "--policy", str(tighter))
    assert "FAIL, written to" in result.output
    assert "PG201" in result.output
    assert "**FAIL**" in card_of(seeded)


def test_write_with_a_file_leaves_mlflow_as_it_is(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, tmp_path: Path
) -> None:
    attest(seeded, signer, policy)
    file = tmp_path / "CARD.md"
    file.write_text(AUTHORS, encoding="utf-8")
    result = run("card", "write", uri(seeded), "--card", str(file), "--output", "json")
    assert json.loads(result.output) == {"model": uri(seeded), "verdict": "pass", "written": [str(file)]}
    assert "Words of the author." in file.read_text(encoding="utf-8")
    assert "**PASS**" in file.read_text(encoding="utf-8")
    assert MlflowClient().list_artifacts(seeded.run_id) == [
        item for item in MlflowClient().list_artifacts(seeded.run_id) if item.path == "model"
    ]
    assert not MlflowClient().get_model_version(seeded.name, seeded.version).description


def test_a_version_that_was_never_tested_gets_a_card_that_says_so(run: Run, seeded: SeededVersion) -> None:
    result = run("card", "write", uri(seeded))
    assert result.exit_code == 0
    assert "UNTESTED, written to" in result.output
    assert "PG001 no evidence found" in result.output
    card = card_of(seeded)
    assert "**UNTESTED**" in card
    assert f"- **Training run**: {seeded.run_id}" in card
    assert "- **Data sets of the run**: unknown (its run logged none)" in card
    assert "verdict: untested" in card


def test_a_version_without_run_signature_or_data_is_written_with_the_reasons(
    run: Run,
    seeded: SeededVersion,
) -> None:
    client = MlflowClient()
    bare = client.create_model_version(seeded.name, seeded.source)
    result = run("card", "write", f"models:/{seeded.name}/{bare.version}")
    assert result.exit_code == 0, result.output
    assert result.output.startswith(
        f"models:/{seeded.name}/{bare.version}: UNTESTED, written to the version's description"
    )
    description = client.get_model_version(seeded.name, bare.version).description or ""
    assert "- **Training run**: unknown (no run is recorded for this model)" in description
    assert "- **Inputs (signature)**: unknown (none with named columns was logged)" in description
    assert "- **Attack AUC**: unknown (no test of it counts)" in description


@pytest.mark.parametrize("kind", ["unsigned", "foreign", "other_bytes"])
def test_evidence_that_is_not_believed_makes_no_card_but_an_untested_one(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, tmp_path: Path, kind: str
) -> None:
    used = {"unsigned": None, "foreign": generate_key(tmp_path / "foreign.key"), "other_bytes": signer}[kind]
    if kind == "other_bytes":
        attest(SeededVersion(seeded.name, seeded.version, seeded.run_id, seeded.source, "0" * 64), used, policy)
    else:
        attest(seeded, used, policy)
    result = run("card", "write", uri(seeded))
    code = {"unsigned": "PG002", "foreign": "PG003", "other_bytes": "PG004"}[kind]
    assert "UNTESTED" in result.output
    assert code in result.output
    assert "PASS" not in card_of(seeded)
    assert "0.5120" not in card_of(seeded)


def test_an_old_test_is_shown_with_its_numbers_and_no_pass(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path
) -> None:
    attest(seeded, signer, policy, aged=timedelta(days=120))
    assert "INCONCLUSIVE" in run("card", "write", uri(seeded)).output
    assert "PG005" in card_of(seeded)
    assert "attack AUC **0.5120**" in card_of(seeded)


def test_a_broken_card_is_left_alone(run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path) -> None:
    broken = "---\nprivacy_gate: [\n---\nBody.\n"
    log_card(seeded, broken)
    attest(seeded, signer, policy)
    result = run("card", "write", uri(seeded))
    assert isinstance(result.exception, PrivacyGateError)
    assert result.exception.exit_code == 3
    assert "front matter is not YAML" in result.exception.message
    assert card_of(seeded) == broken
    assert not MlflowClient().get_model_version(seeded.name, seeded.version).description


def test_show_prints_the_card_found_byte_for_byte_and_says_where(run: Run, seeded: SeededVersion) -> None:
    log_card(seeded, AUTHORS, "model_card.md")
    result = run("card", "show", uri(seeded))
    assert result.stdout == AUTHORS
    assert "Found in the artifact model_card.md." in result.stderr
    assert f"{uri(seeded)}: UNTESTED." in result.stderr


def test_a_card_is_looked_for_in_the_run_before_the_description(run: Run, seeded: SeededVersion) -> None:
    MlflowClient().update_model_version(seeded.name, seeded.version, "# In the description\n")
    assert run("card", "show", uri(seeded)).stdout == "# In the description\n"
    log_card(seeded, "# In model_card.md\n", "model_card.md")
    assert run("card", "show", uri(seeded)).stdout == "# In model_card.md\n"
    log_card(seeded, "# In README.md\n", "README.md")
    assert run("card", "show", uri(seeded)).stdout == "# In README.md\n"


def test_show_without_a_card_prints_the_one_that_write_would_write(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path
) -> None:
    attest(seeded, signer, policy)
    shown = run("card", "show", uri(seeded))
    assert "UNTESTED" not in shown.stderr
    run("card", "write", uri(seeded))
    assert shown.stdout == card_of(seeded)


def test_lint_reports_a_files_mistakes_with_their_lines(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "CARD.md"
    file.write_text("---\nprivacy_gate:\n  release_context: public\n---\nIt is anonymous.\n", encoding="utf-8")
    result = run("card", "lint", str(file))
    assert result.exit_code == 1
    assert f"{file}: line 3: privacy_gate.release_context: expected one of public-api" in result.output
    assert f"{file}: line 5: 'anonymous' is never said of a model" in result.output
    file.write_text(AUTHORS, encoding="utf-8")
    assert run("card", "lint", str(file)).exit_code == 0
    assert json.loads(run("card", "lint", str(file), "--output", "json").output) == {"card": str(file), "problems": []}


def test_lint_reads_a_models_card_too(run: Run, seeded: SeededVersion) -> None:
    log_card(seeded, "Our anonymous model.\n")
    assert run("card", "lint", uri(seeded)).exit_code == 1


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_report_is_made_from_the_record_and_says_what_it_lacks(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, tmp_path: Path, form: str
) -> None:
    attest(seeded, signer, policy, outcome="fail", reason_codes=("PG201",), aucs=FAILING_AUCS)
    result = run("report", uri(seeded), "--format", form)
    assert result.exit_code == 0, result.output
    assert "no report is stored with the model's run" in result.stderr
    assert "FAIL" in result.stdout
    assert "0.7340" in result.stdout
    assert "are left out" in result.stdout
    out = tmp_path / "report"
    run("report", uri(seeded), "--format", form, "--out", str(out))
    assert out.read_text(encoding="utf-8") == result.stdout


def test_the_stored_report_is_given_as_long_as_it_holds(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, tmp_path: Path
) -> None:
    sha256 = attest(seeded, signer, policy)
    log_card(seeded, f"stored, with plots, of {sha256}", "privacy_gate/report.html")
    given = run("report", uri(seeded))
    assert given.stdout == f"stored, with plots, of {sha256}"
    assert "no signature of its own" in given.stderr
    tighter = write_policy(tmp_path / "tighter.yaml", signer, "margin: {default: 0.505}")
    anew = run("report", uri(seeded), "--policy", str(tighter))
    assert "the stored report was made under another policy" in anew.stderr
    assert "FAIL" in anew.stdout
    attest(seeded, signer, policy)
    assert "the stored report is of another test" in run("report", uri(seeded)).stderr


CURVES = (
    AttackCurves(
        "confidence",
        RocCurve((0.0, 0.5, 1.0), (0.1, 0.7, 1.0), 0.01),
        ScoreHistogram((0.0, 0.5, 1.0), (40, 60), (60, None), 100, 100),
    ),
)


@pytest.mark.parametrize("edit", ["# a comment", "margin: {default: 0.505}"], ids=["comment", "other verdict"])
def test_a_report_made_again_under_an_edited_policy_keeps_the_plots_of_its_test(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, tmp_path: Path, edit: str
) -> None:
    sha256 = attest(seeded, signer, policy)
    log_card(seeded, curves_json(CURVES, attestation_sha256=sha256).decode(), CURVES_ARTIFACT)
    edited = write_policy(tmp_path / "edited.yaml", signer, edit)
    anew = run("report", uri(seeded), "--policy", str(edited)).stdout
    assert "Both axes are logarithmic" in anew
    assert "are left out" not in anew
    assert ("FAIL" in anew) is ("margin" in edit)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda text: text.replace('"attestation_sha256": "', '"attestation_sha256": "0'),
        lambda text: text.replace("0.7", "7"),
        lambda text: text.replace("0.7", "NaN"),
        lambda text: text.replace('[0.0, 0.5, 1.0], "members', '[0.0, 1.0], "members'),
        lambda text: text.replace('"curves"', '"curve"'),
        lambda text: text[:-9],
    ],
    ids=["of another test", "no rate", "no number", "too few edges", "another key", "cut off"],
)
def test_stored_curves_that_are_not_this_tests_or_cannot_be_drawn_are_left_out(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, policy: Path, spoilt: Callable[[str], str]
) -> None:
    whole = curves_json(CURVES, attestation_sha256=attest(seeded, signer, policy)).decode()
    assert spoilt(whole) != whole
    log_card(seeded, spoilt(whole), CURVES_ARTIFACT)
    result = run("report", uri(seeded))
    assert result.exit_code == 0, result.output
    assert "are left out" in result.stdout


@pytest.fixture
def officer_policy(tmp_path: Path, signer: Ed25519Signer) -> Path:
    path = tmp_path / "with-officer.yaml"
    path.write_text(policy_text(signer), encoding="utf-8")
    return path


def test_a_waiver_in_force_is_shown_as_waived_and_a_sign_off_in_the_report(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, officer_policy: Path
) -> None:
    sha256 = attest(seeded, signer, officer_policy, aucs=FAILING_AUCS, outcome="fail", reason_codes=("PG201",))
    scope = Scope(seeded.name, ScopeKind.ALIAS, "champion")
    for tag, statement in (
        (WAIVER_TAG, waiver(evidence_sha256=sha256, scope=scope)),
        (SIGN_OFF_TAG, sign_off(evidence_sha256=sha256, scope=scope)),
    ):
        MlflowClient().set_model_version_tag(seeded.name, seeded.version, f"{tag}.1", signed(statement))
    result = run("card", "write", uri(seeded), "--policy", str(officer_policy))
    assert "WAIVED, written to" in result.output
    card = card_of(seeded)
    assert "**WAIVED** for PG201 until" in card
    assert "**PASS**" not in card
    log_card(seeded, f"stored, of {sha256}", "privacy_gate/report.html")
    report = run("report", uri(seeded), "--policy", str(officer_policy))
    assert "Bea Officer" in report.stdout
    assert "an officer has signed since" in report.stderr or "the verdict is another one now" in report.stderr


def test_a_waiver_that_is_not_believed_changes_nothing(
    run: Run, seeded: SeededVersion, signer: Ed25519Signer, officer_policy: Path
) -> None:
    sha256 = attest(seeded, signer, officer_policy, aucs=FAILING_AUCS)
    forged = waiver(evidence_sha256=sha256, scope=Scope(seeded.name, ScopeKind.ALIAS, "champion"))
    MlflowClient().set_model_version_tag(seeded.name, seeded.version, f"{WAIVER_TAG}.1", signed(forged, signer))
    assert "FAIL, written to" in run("card", "write", uri(seeded), "--policy", str(officer_policy)).output
    assert "WAIVED" not in card_of(seeded)


def test_there_is_no_report_of_a_version_that_was_never_tested(run: Run, seeded: SeededVersion) -> None:
    error = run("report", uri(seeded)).exception
    assert isinstance(error, PrivacyGateError)
    assert (error.exit_code, str(error.code)) == (3, "PG001")
    assert "is untested" in error.message


def test_there_is_no_report_of_evidence_that_is_not_believed(run: Run, seeded: SeededVersion, policy: Path) -> None:
    attest(seeded, None, policy)
    error = run("report", uri(seeded)).exception
    assert isinstance(error, PrivacyGateError)
    assert (error.exit_code, str(error.code)) == (1, "PG002")
