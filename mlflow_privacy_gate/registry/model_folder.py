"""A model's folder with its exact bytes, for a client: in place where it lies on this machine, downloaded and deleted otherwise.

The place itself is opened (``mlflow-artifacts:/…``, ``s3://…``, a path), never ``models:/…``: asked for that, MLflow writes a file of
its own into the folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mlflow.utils.file_utils import local_file_uri_to_path
from mlflow.utils.uri import is_local_uri

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.registry.locations import follow
from mlflow_privacy_gate.registry.stores import said_without_credentials
from mlflow_privacy_gate.registry.translation import asking


def local_folder(location: str) -> Path | None:
    """Return the path of a location on this machine's own disk, or None for any other location."""
    if not is_local_uri(location):  # type: ignore[no-untyped-call]
        return None
    return Path(local_file_uri_to_path(location))  # type: ignore[no-untyped-call]


@contextmanager
def opened(location: str, *, tracking_uri: str, where: str) -> Iterator[Path]:
    """Give the folder at a location, read-only; CouldNotLook where there is none or it cannot be fetched."""
    local = local_folder(location)
    if local is not None:
        if not local.is_dir():
            raise CouldNotLook(f"the model's folder is not on this machine: {local} (recorded in {where})")
        yield local
        return
    with downloaded(location, tracking_uri=tracking_uri, where=where) as folder:
        if not folder.is_dir():
            raise CouldNotLook(f"{location} is not a folder, so it is no model (recorded in {where})")
        yield folder


@contextmanager
def version_folder(location: str, version_location: Callable[[str, str], str], *, tracking_uri: str) -> Iterator[Path]:
    """Give the folder at a registered version's location as a client with that tracking URI would load it."""
    from mlflow import MlflowClient

    where = f"MLflow at {said_without_credentials(tracking_uri)}"
    client = MlflowClient(tracking_uri=tracking_uri)
    place = follow(
        location,
        version_location=version_location,
        logged_model_location=lambda model_id: (
            asking(where, lambda: client.get_logged_model(model_id)).artifact_location
        ),
    )
    with opened(place, tracking_uri=tracking_uri, where=where) as folder:
        yield folder


@contextmanager
def downloaded(location: str, *, tracking_uri: str, where: str) -> Iterator[Path]:
    """Give a copy of what lies at a location (a folder or a single file), deleted afterwards."""
    from mlflow.artifacts import download_artifacts

    with tempfile.TemporaryDirectory(prefix="privacy-gate-") as temporary:
        target = Path(temporary) / "artifacts"
        path = asking(
            where,
            lambda: download_artifacts(artifact_uri=location, dst_path=str(target), tracking_uri=tracking_uri),
            missing=lambda message: CouldNotLook(f"{location} cannot be fetched from {where}: {message}"),
        )
        yield Path(path)
