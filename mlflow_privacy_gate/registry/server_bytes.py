"""A model's folder with its exact bytes, inside the tracking server: what clients will load, read without going through a client.

The server cannot download ``mlflow-artifacts:/…`` from itself, so such a location is mapped to where this server keeps it. Local
repositories are read in place, without a copy; remote ones are downloaded to a temporary folder that is deleted. A location that might show
clients other bytes than it shows the server is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mlflow_privacy_gate.errors import CouldNotLook, PrivacyGateError
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.locations import follow

if TYPE_CHECKING:
    from mlflow.store.artifact.artifact_repo import ArtifactRepository

_PROXIED_SCHEMES = frozenset({"mlflow-artifacts", "http", "https"})


@contextmanager
def served_folder(location: str, version_location: Callable[[str, str], str]) -> Iterator[Path]:
    """Give the folder at a version's location, read-only.

    ``version_location(name, version)`` answers where a registered version lies, for locations of the form ``models:/name/version``.
    CouldNotLook, naming the location, whenever its bytes cannot be had for certain.
    """
    try:
        place = _place(location, version_location)
        repository, path = _repository(place)
    except PrivacyGateError:
        raise
    except Exception as exc:
        raise CouldNotLook(f"the model's bytes at {location} cannot be read: {exc}") from exc
    root = getattr(repository, "artifact_dir", None)
    if root is not None:
        yield _inside(Path(root), path, location)
        return
    with tempfile.TemporaryDirectory(prefix="privacy-gate-") as temporary:
        try:
            folder = Path(repository.download_artifacts(path, temporary))  # type: ignore[no-untyped-call]
        except Exception as exc:
            raise CouldNotLook(f"the model's bytes at {location} cannot be downloaded: {exc}") from exc
        yield _existing(folder, location)


def _place(location: str, version_location: Callable[[str, str], str]) -> str:
    """Follow ``models:/…`` and ``runs:/…`` to a location that names a place."""
    store = mlflow_private.server_tracking_store()
    followed = follow(
        location,
        version_location=version_location,
        logged_model_location=lambda model_id: store.get_logged_model(model_id).artifact_location,
    )
    return _place_of_run(followed) if urlsplit(followed).scheme.lower() == "runs" else followed


def _place_of_run(location: str) -> str:
    """Map ``runs:/RUN/PATH`` to a place; refused where a run's artifacts and a logged model would be laid over each other."""
    run_id, _, path = urlsplit(location).path.lstrip("/").partition("/")
    store = mlflow_private.server_tracking_store()
    run = store.get_run(run_id)  # type: ignore[no-untyped-call]
    name, _, rest = path.partition("/")
    logged = store.search_logged_models(
        experiment_ids=[run.info.experiment_id], filter_string=f"name = '{name}' AND source_run_id = '{run_id}'"
    )
    places = [_joined(model.artifact_location, rest) for model in logged]
    own = _joined(run.info.artifact_uri, path)
    repository, within = _repository(own)
    if repository.list_artifacts(within):
        places.append(own)
    if len(places) != 1:
        raise CouldNotLook(
            f"{location} names {len(places)} places, which clients lay over one another; register the logged model (models:/m-…) instead"
        )
    return places[0]


def _joined(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if path else root


def _repository(place: str) -> tuple[ArtifactRepository, str]:
    """Return the repository that holds a place, and the path in it."""
    if urlsplit(place).scheme.lower() not in _PROXIED_SCHEMES:
        return mlflow_private.repository_of(place), ""
    if not mlflow_private.is_proxied(place) or not mlflow_private.names_this_server(place):
        raise CouldNotLook(
            f"{place} is not an artifact location of this server, so what clients would load from it cannot be known here; "
            "log the model to an experiment whose artifacts this server keeps"
        )
    return mlflow_private.destination_repository(), mlflow_private.destination_path(place)


def _inside(root: Path, path: str, location: str) -> Path:
    """Return the folder at a path under a local repository's root; CouldNotLook when it leads out."""
    folder = (root / path).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise CouldNotLook(f"{location} leads out of the server's artifact folder")
    return _existing(folder, location)


def _existing(folder: Path, location: str) -> Path:
    if not folder.is_dir():
        raise CouldNotLook(f"there is no model folder at {location}")
    return folder
