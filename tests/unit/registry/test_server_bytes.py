"""Inside the server, only locations that show clients the same bytes are read, and only under the server's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlflow_privacy_gate.errors import CouldNotLook, InternalError
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.locations import follow
from mlflow_privacy_gate.registry.server_bytes import served_folder

HTTP_ROOT = "http://mlflow.bank/api/2.0/mlflow-artifacts/artifacts/experiments"


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process with the environment of a server that serves artifacts from a folder."""
    from mlflow.server import handlers

    destination = tmp_path / "artifacts"
    (destination / "0" / "model").mkdir(parents=True)
    monkeypatch.setenv("_MLFLOW_SERVER_FILE_STORE", f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_DESTINATION", str(destination))
    monkeypatch.setenv("_MLFLOW_SERVER_SERVE_ARTIFACTS", "true")
    monkeypatch.setattr(handlers, "_artifact_repo", None)
    monkeypatch.setattr(handlers, "_tracking_store", object())
    return destination


def location_of(name: str, version: str) -> str:
    return f"mlflow-artifacts:/0/{name}-{version}"


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize(
    ("location", "root", "ours"),
    [
        ("mlflow-artifacts:/0/model", "mlflow-artifacts:/", True),
        ("mlflow-artifacts:///0/model", "mlflow-artifacts:/", True),
        ("mlflow-artifacts://evil.example/0/model", "mlflow-artifacts:/", False),
        ("mlflow-artifacts://mlflow.bank/0/model", "mlflow-artifacts://mlflow.bank/", True),
        ("http://evil.example/api/2.0/mlflow-artifacts/artifacts/0/model", "mlflow-artifacts:/", False),
        ("http://mlflow.bank/api/2.0/mlflow-artifacts/artifacts/0/model", HTTP_ROOT, True),
        ("https://mlflow.bank/api/2.0/mlflow-artifacts/artifacts/0/model", HTTP_ROOT, False),
        ("http://mlflow.bank/other/api/2.0/mlflow-artifacts/artifacts/0/model", HTTP_ROOT, False),
        ("mlflow-artifacts:/0/%6dodel", "mlflow-artifacts:/", False),
        ("mlflow-artifacts:/0/model?version=2", "mlflow-artifacts:/", False),
        ("mlflow-artifacts:/0/model#2", "mlflow-artifacts:/", False),
        ("mlflow-artifacts:/0/../1/model", "mlflow-artifacts:/", False),
    ],
)
def test_only_what_clients_read_from_this_server_is_ours(
    monkeypatch: pytest.MonkeyPatch, location: str, root: str, ours: bool
) -> None:
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", root)
    assert mlflow_private.names_this_server(location) is ours


def test_a_proxied_location_is_read_in_place(serving: Path) -> None:
    with served_folder("mlflow-artifacts:/0/model", location_of) as folder:
        assert folder == serving / "0" / "model"
    assert folder.is_dir()


def test_a_version_of_a_version_is_followed(serving: Path) -> None:
    (serving / "0" / "credit-1").mkdir()
    with served_folder("models:/credit/1", location_of) as folder:
        assert folder == serving / "0" / "credit-1"


def test_a_link_that_leads_out_of_the_servers_folder_is_refused(serving: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (serving / "0" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(CouldNotLook, match="leads out"), served_folder("mlflow-artifacts:/0/link", location_of):
        pass


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize(
    "location",
    [
        "mlflow-artifacts:/0/nothing",
        "mlflow-artifacts://evil.example/0/model",
        "http://evil.example/api/2.0/mlflow-artifacts/artifacts/0/model",
        "unknown-scheme://x/y",
        "models:/credit@champion",
        "/nowhere/at/all",
    ],
)
def test_a_location_whose_bytes_cannot_be_had_for_certain_could_not_be_looked_at(location: str) -> None:
    with pytest.raises(CouldNotLook), served_folder(location, location_of):
        pass


def test_locations_that_lead_in_a_circle_end() -> None:
    with pytest.raises(CouldNotLook, match="more than 32"):
        follow(
            "models:/a/1",
            version_location=lambda name, version: f"models:/{name}/{version}",
            logged_model_location=lambda model_id: f"models:/{model_id}",
        )


def test_a_private_name_that_mlflow_lacks_is_named() -> None:
    with pytest.raises(InternalError, match=r"has no mlflow\.server\.handlers\._no_such_name"):
        mlflow_private._private("mlflow.server.handlers", "_no_such_name")


def test_a_client_is_not_taken_for_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_MLFLOW_SERVER_FILE_STORE", raising=False)
    assert not mlflow_private.in_server()
