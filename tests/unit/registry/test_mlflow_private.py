"""What is read of MLflow past its public methods is what its public methods say."""

from __future__ import annotations

from typing import Any

import pytest
from mlflow.entities.model_registry import ModelVersionTag
from mlflow.exceptions import MlflowException
from mlflow.store.model_registry.sqlalchemy_store import SqlAlchemyStore

from mlflow_privacy_gate.registry.mlflow_private import version_and_location


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    database = tmp_path_factory.mktemp("registry") / "mlflow.db"
    made: Any = SqlAlchemyStore(f"sqlite:///{database}")  # type: ignore[no-untyped-call]
    tag = ModelVersionTag("a", "1")  # type: ignore[no-untyped-call]
    made.create_registered_model("credit")
    made.create_model_version("credit", "s3://bucket/model", run_id="r1", tags=[tag])
    made.copy_model_version(made.get_model_version("credit", "1"), "copied")
    return made


@pytest.mark.parametrize("name", ["credit", "copied"])
def test_a_version_read_at_once_is_what_mlflows_two_methods_answer(store: Any, name: str) -> None:
    found, location = version_and_location(store, name, "1")
    said = store.get_model_version(name, "1")
    assert {**vars(found), "_aliases": []} == {**vars(said), "_aliases": []}
    assert found.tags == {"a": "1"}
    assert location == store.get_model_version_download_uri(name, "1") == "s3://bucket/model"


@pytest.mark.parametrize(("name", "version"), [("credit", "2"), ("nobody", "1"), ("credit", "one"), ("", "1")])
def test_a_version_that_is_not_there_is_mlflows_own_error(store: Any, name: str, version: str) -> None:
    with pytest.raises(MlflowException) as said:
        store.get_model_version(name, version)
    with pytest.raises(MlflowException) as caught:
        version_and_location(store, name, version)
    assert (caught.value.message, caught.value.error_code) == (said.value.message, said.value.error_code)


def test_a_deleted_version_is_not_read(store: Any) -> None:
    number = store.create_model_version("credit", "s3://bucket/other").version
    store.delete_model_version("credit", number)
    with pytest.raises(MlflowException, match="not found"):
        version_and_location(store, "credit", str(number))


def test_a_store_that_is_no_database_is_asked_by_its_public_methods(store: Any) -> None:
    class Elsewhere:
        get_model_version = staticmethod(store.get_model_version)
        get_model_version_download_uri = staticmethod(store.get_model_version_download_uri)

    found, location = version_and_location(Elsewhere(), "copied", "1")
    assert (found.source, location) == ("models:/credit/1", "s3://bucket/model")


def test_a_database_store_with_a_location_of_its_own_is_asked_for_it(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(SqlAlchemyStore):
        def get_model_version_download_uri(self, name: str, version: str) -> str:
            return f"s3://mirror/{name}/{version}"

    monkeypatch.setattr(store, "__class__", Elsewhere)
    assert version_and_location(store, "credit", "1")[1] == "s3://mirror/credit/1"


def test_a_version_is_read_in_one_session(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, plain = [], store.ManagedSessionMaker

    def counted(*args: Any, **options: Any) -> Any:
        opened.append(1)
        return plain(*args, **options)

    monkeypatch.setattr(store, "ManagedSessionMaker", counted)
    version_and_location(store, "credit", "1")
    assert len(opened) == 1
