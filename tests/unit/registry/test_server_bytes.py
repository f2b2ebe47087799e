"""Inside the server, only locations that show clients the same bytes are read, and only under the server's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow.entities import FileInfo

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
        ("mlflow-artifacts:/0/mo\tdel", "mlflow-artifacts:/", False),
        ("mlflow-artifacts:/0/model\n", "mlflow-artifacts:/", False),
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


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize("root", ["mlflow-artifacts:/", "s3://bucket/artifacts", "{}/shared"])
@pytest.mark.parametrize("location", ["{}/elsewhere/model", "file://{}/elsewhere/model", "FILE:{}/elsewhere/model"])
def test_a_path_on_a_disk_that_the_operator_did_not_name_for_clients_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, location: str
) -> None:
    (tmp_path / "elsewhere" / "model").mkdir(parents=True)
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", root.format(tmp_path))
    with (
        pytest.raises(CouldNotLook, match="--default-artifact-root"),
        served_folder(location.format(tmp_path), location_of),
    ):
        pass


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize("root", ["{}/shared", "file://{}/shared", "./shared", "shared/"])
@pytest.mark.parametrize("location", ["{}/shared/1/model", "file://{}/shared/1/model"])
def test_a_path_under_the_artifact_root_that_the_operator_named_is_read_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, location: str
) -> None:
    (tmp_path / "shared" / "1" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", root.format(tmp_path))
    with served_folder(location.format(tmp_path), location_of) as folder:
        assert folder == tmp_path / "shared" / "1" / "model"


@pytest.mark.usefixtures("serving")
def test_a_link_under_the_artifact_root_leads_to_no_other_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "model").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path / "shared"))
    with pytest.raises(CouldNotLook), served_folder(f"{tmp_path}/shared/model", location_of):
        pass


class Workspaces:
    """A tracking store that keeps the artifacts of each workspace apart."""

    def __init__(self, root: Path, active: str) -> None:
        self.root, self.active = root, active

    def _get_active_workspace(self) -> str:
        return self.active

    def _get_artifact_location(self, experiment: str) -> str:
        return f"{self.root}/workspaces/{self.active}/{experiment}"


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize(
    ("active", "path", "read"),
    [
        ("team", "workspaces/team/1/model", True),
        ("team", "workspaces/other/1/model", False),
        ("team", "1/model", False),
        ("default", "workspaces/default/1/model", True),
        ("default", "1/model", True),  # from before there were workspaces
    ],
)
def test_a_workspace_has_the_artifact_root_that_mlflow_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, active: str, path: str, read: bool
) -> None:
    from mlflow.server import handlers

    (tmp_path / path).mkdir(parents=True)
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(tmp_path))
    monkeypatch.setattr(handlers, "_tracking_store", Workspaces(tmp_path, active))
    if read:
        with served_folder(f"{tmp_path}/{path}", location_of) as folder:
            assert folder == tmp_path / path
    else:
        with pytest.raises(CouldNotLook), served_folder(f"{tmp_path}/{path}", location_of):
            pass


class Bucket:
    """An artifact store elsewhere with one file; ``listed`` is the size it lists, ``held`` what arrives."""

    def __init__(self, listed: int | None, held: int) -> None:
        self.listed, self.held, self.fetched = listed, held, 0

    def list_artifacts(self, path: str | None = None) -> list[FileInfo]:
        if path == "model/data":
            return [FileInfo("model/data/weights.bin", False, self.listed)]
        return [FileInfo("model/data", True, None)]

    def download_artifacts(self, path: str, target: str) -> str:
        self.fetched += 1
        folder = Path(target) / path
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "weights.bin").write_bytes(bytes(self.held))
        return str(folder)


@pytest.mark.usefixtures("serving")
@pytest.mark.parametrize(("listed", "held", "fetched"), [(1000, 1000, 1), (1001, 1001, 0), (None, 1001, 1)])
def test_bytes_that_must_be_fetched_are_looked_at_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch, listed: int | None, held: int, fetched: int
) -> None:
    from mlflow.server import handlers

    bucket = Bucket(listed, held)
    monkeypatch.setattr(handlers, "_artifact_repo", bucket)
    monkeypatch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", "mlflow-artifacts:/")
    if held <= 1000:
        with served_folder("mlflow-artifacts:/model", location_of, 1000) as folder:
            assert (folder / "data" / "weights.bin").stat().st_size == held
        assert not folder.exists()
    else:
        with (
            pytest.raises(CouldNotLook, match=r"limits\.memory_gb"),
            served_folder("mlflow-artifacts:/model", location_of, 1000),
        ):
            pass
    assert bucket.fetched == fetched


@pytest.mark.usefixtures("serving")
def test_what_fails_on_the_server_is_told_without_its_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from mlflow.server import handlers

    class Locked(Bucket):
        def download_artifacts(self, path: str, target: str) -> str:
            raise OSError("/srv/secrets/key of the bucket is wrong: hunter2")

    monkeypatch.setattr(handlers, "_artifact_repo", Locked(1, 1))
    with pytest.raises(CouldNotLook) as caught, served_folder("mlflow-artifacts:/model", location_of):
        pass
    assert "hunter2" not in str(caught.value)
    assert "OSError" in str(caught.value)
    assert "hunter2" in caplog.text


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
