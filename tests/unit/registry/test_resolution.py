"""Every form of a model URI resolves once, to the same model; what does not resolve says which store was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import LoggedModel
from mlflow_home import MlflowHome
from registry_seed import seed_version

from mlflow_privacy_gate.errors import CouldNotLook, PrivacyGateError, UsageError
from mlflow_privacy_gate.evidence.model_digest import model_digest
from mlflow_privacy_gate.registry import MlflowRegistry

pytestmark = pytest.mark.filterwarnings("ignore:.*transition_model_version_stage.*:FutureWarning")


@pytest.fixture
def client(mlflow_home: MlflowHome) -> MlflowClient:
    return MlflowClient(mlflow_home.uri, mlflow_home.uri)


@pytest.fixture
def registry(mlflow_home: MlflowHome) -> MlflowRegistry:
    return MlflowRegistry(mlflow_home.uri, mlflow_home.uri)


def logged_model(client: MlflowClient, home: MlflowHome, name: str = "model") -> LoggedModel:
    run = client.create_run(home.experiment_id)
    model = client.create_logged_model(home.experiment_id, name=name, source_run_id=run.info.run_id)
    folder = Path(model.artifact_location.removeprefix("file://"))
    folder.mkdir(parents=True)
    (folder / "MLmodel").write_text("flavors: {}\n")
    return client.finalize_logged_model(model.model_id, "READY")


def test_all_forms_of_a_uri_resolve_to_the_same_logged_model(
    client: MlflowClient,
    registry: MlflowRegistry,
    mlflow_home: MlflowHome,
) -> None:
    logged = logged_model(client, mlflow_home)
    client.create_registered_model("forms")
    created = client.create_model_version("forms", f"models:/{logged.model_id}", run_id=logged.source_run_id)
    client.set_registered_model_alias("forms", "best", created.version)
    client.transition_model_version_stage("forms", created.version, "Staging")
    registered = [
        registry.resolve(uri)
        for uri in ("models:/forms/1", "models:/forms@best", "models:/forms/staging", "models:/forms/latest")
    ]
    unregistered = [
        registry.resolve(uri) for uri in (f"models:/{logged.model_id}", f"runs:/{logged.source_run_id}/model")
    ]
    assert {(model.name, model.version) for model in registered} == {("forms", "1")}
    assert {(model.name, model.version) for model in unregistered} == {(None, None)}
    everything = registered + unregistered
    assert {model.model_id for model in everything} == {logged.model_id}
    assert {model.run_id for model in everything} == {logged.source_run_id}
    assert {model.artifact_uri for model in everything} == {logged.artifact_location}
    assert registered[0].aliases == ("best",)
    assert registered[0].stage == "Staging"


def test_a_chain_of_copies_is_followed_to_the_logged_model_and_its_run(
    client: MlflowClient,
    registry: MlflowRegistry,
    mlflow_home: MlflowHome,
) -> None:
    logged = logged_model(client, mlflow_home)
    client.create_registered_model("copies-0")
    client.create_model_version("copies-0", f"models:/{logged.model_id}")
    for number in (1, 2, 3):
        client.copy_model_version(f"models:/copies-{number - 1}/1", f"copies-{number}")
    copy = registry.resolve("models:/copies-3/1")
    assert (copy.model_id, copy.run_id) == (logged.model_id, logged.source_run_id)
    assert copy.artifact_uri == logged.artifact_location
    assert copy.source == "models:/copies-2/1"


def test_a_version_whose_run_was_deleted_resolves_without_lineage_and_says_why(
    client: MlflowClient, registry: MlflowRegistry
) -> None:
    seeded = seed_version(client, "orphan")
    client.delete_run(seeded.run_id)
    model = registry.resolve("models:/orphan/1")
    assert model.run_id is None
    assert model.lineage_note == f"its run {seeded.run_id} was deleted"
    with registry.open_model(model) as folder:
        assert model_digest(folder) == seeded.digest


def test_a_version_that_never_had_a_run_says_so(client: MlflowClient, registry: MlflowRegistry, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    client.create_registered_model("runless")
    client.create_model_version("runless", str(tmp_path / "folder"))
    model = registry.resolve("models:/runless/1")
    assert model.run_id is None
    assert model.lineage_note == "no run is recorded for this model"


def test_a_model_among_a_runs_own_artifacts_resolves(client: MlflowClient, registry: MlflowRegistry) -> None:
    seeded = seed_version(client, "in-run")
    model = registry.resolve(f"runs:/{seeded.run_id}/model")
    assert (model.run_id, model.artifact_uri, model.versioned) == (seeded.run_id, seeded.source, False)


def test_an_empty_store_says_that_it_holds_no_registered_model_and_which_store_it_is(tmp_path: Path) -> None:
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    with pytest.raises(CouldNotLook) as caught:
        MlflowRegistry(empty, empty).resolve("models:/bc@champion")
    assert caught.value.exit_code == 4
    assert "holds no registered model at all" in caught.value.message
    assert empty in caught.value.message


@pytest.mark.parametrize(
    ("uri", "error", "words"),
    [
        ("models:/nowhere/1", UsageError, "it holds other registered models"),
        ("models:/there/99", UsageError, "no version 99"),
        ("models:/there@nobody", UsageError, "no alias 'nobody'"),
        ("models:/there/Production", UsageError, "no version in stage 'Production'"),
        ("models:/there/Live", UsageError, "Invalid Model Version stage: Live"),
        ("models:/m-0123456789abcdef0123456789abcdef", UsageError, "no logged model"),
        ("runs:/0123456789abcdef0123456789abcdef/model", UsageError, "no run"),
        ("models:/a/b/c", UsageError, "expected models:/NAME/VERSION"),
        ("models:/", UsageError, "expected models:/NAME/VERSION"),
        ("runs:/x", UsageError, "expected models:/NAME/VERSION"),
        ("s3://bucket/model", UsageError, "expected models:/NAME/VERSION"),
        ("credit", UsageError, "expected models:/NAME/VERSION"),
    ],
)
def test_what_does_not_resolve_says_why(
    client: MlflowClient, registry: MlflowRegistry, uri: str, error: type[PrivacyGateError], words: str
) -> None:
    if not client.search_registered_models("name='there'"):
        seed_version(client, "there")
    with pytest.raises(error) as caught:
        registry.resolve(uri)
    assert words in caught.value.message


def test_a_run_without_that_model_is_a_wrong_name(client: MlflowClient, registry: MlflowRegistry) -> None:
    seeded = seed_version(client, "other-name")
    with pytest.raises(UsageError, match="no model named 'nothing'"):
        registry.resolve(f"runs:/{seeded.run_id}/nothing")


def test_a_prompt_is_no_model(client: MlflowClient, registry: MlflowRegistry) -> None:
    client.register_prompt(name="a-prompt", template="Hello")
    with pytest.raises(PrivacyGateError):
        registry.resolve("models:/a-prompt/1")


def test_whoever_registers_a_version_cannot_give_its_model_another_run(
    client: MlflowClient, registry: MlflowRegistry, mlflow_home: MlflowHome
) -> None:
    logged = logged_model(client, mlflow_home)
    other = client.create_run(mlflow_home.experiment_id)
    client.create_registered_model("borrowed")
    client.create_model_version("borrowed", f"models:/{logged.model_id}", run_id=other.info.run_id)
    assert registry.resolve("models:/borrowed/1").run_id == logged.source_run_id
