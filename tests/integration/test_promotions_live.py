"""Every way to production, through a real ``mlflow server`` with two workers: Python client, REST, the UI's API and GraphQL."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence, write_policy
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from mlflow.entities.model_registry import Prompt
from mlflow.exceptions import MlflowException
from registry_seed import SeededVersion, exists, log_folder, seed_version, versions

from mlflow_privacy_gate.evidence.facts import NotRun
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG

pytestmark = [
    pytest.mark.server,
    pytest.mark.filterwarnings("ignore:.*transition_model_version_stage.*:FutureWarning"),
]

SIGNER = fresh_signer()
GUARD = "guard: {stages: [Production], aliases: [production, prod, champion], registered_models: ['live-*']}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    with live_server(folder, policy=write_policy(folder / "privacy-gate.yaml", SIGNER, GUARD), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: LiveServer) -> MlflowClient:
    return MlflowClient(tracking_uri=server.url, registry_uri=server.url)


def with_evidence(client: MlflowClient, name: str, content: bytes, **changes: Any) -> SeededVersion:
    seeded = seed_version(client, name, content)
    tag = attestation(passing_evidence(seeded.digest, **changes), SIGNER)
    client.set_model_version_tag(name, seeded.version, ATTESTATION_TAG, tag)
    return seeded


def refusal(action: Callable[[], object]) -> MlflowException:
    started = time.monotonic()
    with pytest.raises(MlflowException) as caught:
        action()
    assert time.monotonic() - started < 2.0
    assert caught.value.error_code == "PERMISSION_DENIED"
    return caught.value


def post(server: LiveServer, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        f"{server.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_an_unchecked_version_gets_no_guarded_alias_and_the_reason_is_said(client: MlflowClient) -> None:
    seeded = seed_version(client, "unchecked-alias")
    answer = refusal(lambda: client.set_registered_model_alias(seeded.name, "champion", seeded.version))
    assert "PG001" in answer.message
    assert "mlflow-privacy-gate check" in answer.message
    assert client.get_registered_model(seeded.name).aliases == {}


@pytest.mark.parametrize("stage", ["Production", "production", "PRODUCTION"])
def test_an_unchecked_version_goes_to_no_guarded_stage_in_any_letter_case(client: MlflowClient, stage: str) -> None:
    seeded = seed_version(client, f"unchecked-{stage}")
    refusal(lambda: client.transition_model_version_stage(seeded.name, seeded.version, stage))
    assert client.get_model_version(seeded.name, seeded.version).current_stage == "None"


def test_a_refused_transition_archives_nothing(client: MlflowClient) -> None:
    first = with_evidence(client, "archiving", b"one")
    second = seed_version(client, "archiving", b"two")
    client.transition_model_version_stage("archiving", first.version, "Production")
    refusal(lambda: client.transition_model_version_stage("archiving", second.version, "Production", True))
    assert client.get_model_version("archiving", first.version).current_stage == "Production"


@pytest.mark.parametrize(
    "alias",
    [
        "Champion",
        "CHAMPION",
        "\uff43\uff48\uff41\uff4d\uff50\uff49\uff4f\uff4e",
        "\u0441hampion",
        "ch\u0430mpi\u043en",
        "\U0001d41c\U0001d421\U0001d41a\U0001d426\U0001d429\U0001d422\U0001d428\U0001d427",
        "prod",
        "Pr\u00f3d",
    ],
    ids=["title", "upper", "full-width", "cyrillic-c", "cyrillic-a-o", "mathematical", "prod", "accent"],
)
def test_an_alias_that_looks_like_a_guarded_one_is_guarded(client: MlflowClient, alias: str) -> None:
    seeded = seed_version(client, "look-alikes")
    refusal(lambda: client.set_registered_model_alias("look-alikes", alias, seeded.version))


@pytest.mark.parametrize("prefix", ["/api/2.0/mlflow", "/ajax-api/2.0/mlflow"])
def test_raw_requests_are_refused_with_403_and_the_reason(
    server: LiveServer, client: MlflowClient, prefix: str
) -> None:
    seeded = seed_version(client, f"raw{prefix.count('ajax')}")
    alias = {"name": seeded.name, "alias": "champion", "version": seeded.version}
    stage = {"name": seeded.name, "version": seeded.version, "stage": "Production", "archive_existing_versions": False}
    for path, body in (("registered-models/alias", alias), ("model-versions/transition-stage", stage)):
        status, answer = post(server, f"{prefix}/{path}", body)
        assert status == 403
        assert answer["error_code"] == "PERMISSION_DENIED"
        assert "PG001" in answer["message"]


@pytest.mark.parametrize("errored", ["confidence", "loss", "entropy", "modified_entropy"])
def test_evidence_of_which_one_gating_attack_errored_could_not_be_judged_and_names_it(
    client: MlflowClient, errored: str
) -> None:
    whole = passing_evidence("0" * 64)
    seeded = with_evidence(
        client,
        "one-errored",
        errored.encode(),
        attacks=tuple(attack for attack in whole.attacks if attack.id != errored),
        not_run=(*whole.not_run, NotRun(errored, "it raised ObservationError: NaN in 3 rows")),
    )
    text = " ".join(
        refusal(lambda: client.set_registered_model_alias(seeded.name, "champion", seeded.version)).message.split()
    )
    assert f"PG006: The attack {errored} was not run: it raised ObservationError: NaN in 3 rows." in text
    assert "PG2" not in text  # could not be judged, which is no fail


@pytest.mark.parametrize(
    ("version", "status", "code"),
    [
        ("99999999999999999999", 404, "RESOURCE_DOES_NOT_EXIST"),
        (str(2**31), 404, "RESOURCE_DOES_NOT_EXIST"),
        ("-1", 404, "RESOURCE_DOES_NOT_EXIST"),
        ("one", 400, "INVALID_PARAMETER_VALUE"),
        ("1.5", 400, "INVALID_PARAMETER_VALUE"),
    ],
)
def test_a_version_that_cannot_be_is_answered_as_mlflow_answers(
    server: LiveServer, client: MlflowClient, version: str, status: int, code: str
) -> None:
    seeded = seed_version(client, "no-such-version")
    stage = {"name": seeded.name, "version": version, "stage": "Production", "archive_existing_versions": False}
    alias = {"name": seeded.name, "alias": "champion", "version": version}
    for path, body in (("registered-models/alias", alias), ("model-versions/transition-stage", stage)):
        answered, answer = post(server, f"/api/2.0/mlflow/{path}", body)
        assert (answered, answer["error_code"]) == (status, code)
        assert "Traceback" not in answer["message"]


def test_graphql_can_change_nothing(server: LiveServer) -> None:
    query = "{__schema {mutationType {fields {name}}}}"
    status, answer = post(server, "/graphql", {"query": query})
    assert status == 200
    fields = {field["name"] for field in answer["data"]["__schema"]["mutationType"]["fields"]}
    # Searches and an echo. A mutation that MLflow adds must be looked at before it may stand here.
    assert fields <= {"mlflowSearchDatasets", "mlflowSearchRuns", "testMutation"}


def test_a_version_with_passing_evidence_is_promoted_by_stage_and_alias(client: MlflowClient) -> None:
    seeded = with_evidence(client, "passing", b"good")
    client.set_registered_model_alias("passing", "champion", seeded.version)
    client.transition_model_version_stage("passing", seeded.version, "production")
    assert client.get_model_version_by_alias("passing", "champion").version == seeded.version
    assert client.get_model_version("passing", seeded.version).current_stage == "Production"


def test_a_failed_version_is_refused_with_its_numbers(client: MlflowClient) -> None:
    seeded = with_evidence(client, "failed", b"bad", aucs=FAILING_AUCS)
    answer = refusal(lambda: client.set_registered_model_alias("failed", "champion", seeded.version))
    assert "PG201" in answer.message
    assert "0.55" in answer.message
    assert "0.734" in answer.message


def test_rolling_back_to_an_older_valid_version_is_allowed_at_once(client: MlflowClient) -> None:
    old, new = with_evidence(client, "rollback", b"old"), with_evidence(client, "rollback", b"new")
    for seeded in (old, new, old):
        client.set_registered_model_alias("rollback", "champion", seeded.version)
        assert client.get_model_version_by_alias("rollback", "champion").version == seeded.version


def test_staging_archiving_other_aliases_and_deleting_are_untouched(client: MlflowClient) -> None:
    seeded = seed_version(client, "untouched")
    for stage in ("Staging", "Archived", "None"):
        assert client.transition_model_version_stage("untouched", seeded.version, stage).current_stage == stage
    client.set_registered_model_alias("untouched", "candidate", seeded.version)
    client.delete_registered_model_alias("untouched", "candidate")
    client.update_model_version("untouched", seeded.version, "words")
    client.delete_model_version("untouched", seeded.version)
    client.delete_registered_model("untouched")
    assert not exists(client, "untouched")


def test_a_missing_version_is_mlflows_own_answer(client: MlflowClient) -> None:
    seed_version(client, "missing")
    with pytest.raises(MlflowException) as caught:
        client.set_registered_model_alias("missing", "champion", "99")
    assert caught.value.error_code == "RESOURCE_DOES_NOT_EXIST"


def test_a_prompts_alias_is_not_a_promotion(client: MlflowClient) -> None:
    client.register_prompt(name="greeting", template="Hello {{name}}")
    client.set_prompt_alias("greeting", "production", 1)
    prompt = client.get_prompt_version_by_alias("greeting", "production")
    assert prompt is not None
    assert prompt.version == 1
    assert isinstance(client.get_prompt("greeting"), Prompt)


def test_a_model_dressed_up_as_a_prompt_stays_guarded(server: LiveServer, client: MlflowClient) -> None:
    seeded = seed_version(client, "dressed")
    client.set_model_version_tag("dressed", seeded.version, "mlflow.prompt.is_prompt", "true")
    client.set_model_version_tag("dressed", seeded.version, "mlflow.prompt.text", "hello")
    client.set_registered_model_tag("dressed", "mlflow.prompt.is_prompt", "true")
    refusal(lambda: client.set_prompt_alias("dressed", "production", int(seeded.version)))
    # MLflow's client would stop here of itself; an attacker does not use it.
    body = {"name": "dressed", "alias": "production", "version": seeded.version}
    status, answer = post(server, "/api/2.0/mlflow/registered-models/alias", body)
    assert (status, answer["error_code"]) == (403, "PERMISSION_DENIED")


def test_a_version_created_as_a_prompt_may_not_bring_a_models_bytes(server: LiveServer, client: MlflowClient) -> None:
    run_id, source, _ = log_folder(client, b"smuggled")
    tags = [{"key": "mlflow.prompt.is_prompt", "value": "true"}, {"key": "mlflow.prompt.text", "value": "hello"}]
    status, _ = post(server, "/api/2.0/mlflow/registered-models/create", {"name": "live-smuggled", "tags": tags})
    assert status == 200
    body = {"name": "live-smuggled", "source": source, "run_id": run_id, "tags": tags}
    status, _ = post(server, "/api/2.0/mlflow/model-versions/create", body)
    assert status in {400, 403}


@pytest.mark.parametrize("name", ["live-credit", "LIVE-credit", "\uff4c\uff49\uff56\uff45-credit", "l\u0456ve-credit"])
def test_creating_into_a_guarded_name_without_evidence_leaves_no_version(client: MlflowClient, name: str) -> None:
    refusal(lambda: seed_version(client, name))
    assert versions(client, name) == []


def test_creating_into_a_guarded_name_with_the_evidence_in_its_tags_succeeds(client: MlflowClient) -> None:
    run_id, source, digest = log_folder(client, b"live")
    client.create_registered_model("live-created")
    tags = {ATTESTATION_TAG: attestation(passing_evidence(digest), SIGNER)}
    assert client.create_model_version("live-created", source, run_id=run_id, tags=tags).version == "1"
    other_run, other_source, _ = log_folder(client, b"other bytes")
    answer = refusal(lambda: client.create_model_version("live-created", other_source, run_id=other_run, tags=tags))
    assert "PG004" in answer.message
    assert versions(client, "live-created") == ["1"]


def test_copying_an_unchecked_version_into_a_guarded_name_is_refused(client: MlflowClient) -> None:
    seed_version(client, "copied-unchecked")
    with pytest.raises(MlflowException, match="PG001"):  # MLflow's client wraps the server's refusal
        client.copy_model_version("models:/copied-unchecked/1", "live-copied-unchecked")
    assert versions(client, "live-copied-unchecked") == []


def test_copying_a_passing_version_into_a_guarded_name_is_allowed(client: MlflowClient) -> None:
    with_evidence(client, "copied", b"copied")
    copy = client.copy_model_version("models:/copied/1", "live-copied")
    assert (copy.name, copy.version) == ("live-copied", "1")
    client.set_registered_model_alias("live-copied", "champion", "1")


def test_renaming_to_a_guarded_name_is_refused_for_any_version_that_would_be(client: MlflowClient) -> None:
    with_evidence(client, "renamed", b"checked")
    seed_version(client, "renamed", b"unchecked")
    refusal(lambda: client.rename_registered_model("renamed", "live-renamed"))
    assert exists(client, "renamed")


def test_a_prompt_tag_does_not_hide_a_version_from_the_rename(client: MlflowClient) -> None:
    seeded = seed_version(client, "hidden")
    with_evidence(client, "hidden", b"checked")
    client.set_model_version_tag("hidden", seeded.version, "mlflow.prompt.is_prompt", "true")
    refusal(lambda: client.rename_registered_model("hidden", "live-hidden"))


def test_renaming_a_model_whose_versions_all_pass_is_allowed(client: MlflowClient) -> None:
    gone = seed_version(client, "renamed-well", b"to be deleted")
    with_evidence(client, "renamed-well", b"checked")
    client.delete_model_version("renamed-well", gone.version)
    client.rename_registered_model("renamed-well", "live-renamed-well")
    assert versions(client, "live-renamed-well") == ["2"]


def test_a_broken_policy_file_refuses_every_promotion_while_it_is_broken(
    server: LiveServer, client: MlflowClient
) -> None:
    seeded = with_evidence(client, "broken-policy", b"good")
    assert server.policy is not None
    text = server.policy.read_text(encoding="utf-8")
    try:
        server.policy.write_text(f"{text}\nno_such_key: 1\n", encoding="utf-8")
        for alias in ("champion", "anything"):
            answer = refusal(partial(client.set_registered_model_alias, "broken-policy", alias, "1"))
            assert "PG901" in answer.message
        client.transition_model_version_stage("broken-policy", seeded.version, "Archived")
        client.register_prompt(name="during", template="Hello")
        client.set_prompt_alias("during", "production", 1)
    finally:
        server.policy.write_text(text, encoding="utf-8")
    client.set_registered_model_alias("broken-policy", "champion", seeded.version)


def test_the_verdict_tag_decides_nothing(client: MlflowClient) -> None:
    seeded = seed_version(client, "verdict-tag", tags={VERDICT_TAG: "pass"})
    refusal(lambda: client.set_registered_model_alias("verdict-tag", "champion", seeded.version))


def test_the_servers_log_says_at_start_what_stands_guard(server: LiveServer) -> None:
    at_start = server.log.read_text(errors="replace").split("Application startup complete")[0]
    assert f"privacy gate: promotions in {server.registry_database} are guarded by {server.policy}" in at_start


def test_the_server_answers_on_its_pages(server: LiveServer) -> None:
    for path in ("/health", "/", "/version"):
        with urllib.request.urlopen(f"{server.url}{path}", timeout=10) as answer:
            assert answer.status == 200


def test_nothing_is_written_outside_the_servers_folder(server: LiveServer) -> None:
    assert Path(server.folder, "mlflow.db").is_file()
    assert not Path(server.folder, "mlruns").exists()
