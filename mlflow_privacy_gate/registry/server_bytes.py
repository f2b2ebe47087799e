"""A model's folder with its exact bytes, inside the tracking server: what clients will load, read without going through a client.

The server cannot download ``mlflow-artifacts:/…`` from itself, so such a location is mapped to where this server keeps it. Local
repositories are read in place, without a copy; remote ones are downloaded to a temporary folder that is deleted, up to a limit. A location
that might show clients other bytes than it shows the server is refused: above all a path on a disk, which every client reads on its own,
unless it lies under the artifact root that the server's operator named for clients to reach directly.

Who asks sees no path and no error text of the server's machine; those are for its log.
"""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate.errors import CouldNotLook, PrivacyGateError
from mlflow_privacy_gate.registry import mlflow_private
from mlflow_privacy_gate.registry.locations import follow
from mlflow_privacy_gate.registry.model_folder import local_folder
from mlflow_privacy_gate.registry.translation import is_missing

if TYPE_CHECKING:
    from mlflow.store.artifact.artifact_repo import ArtifactRepository

_PROXIED_SCHEMES = frozenset({"mlflow-artifacts", "http", "https"})
_logger = logging.getLogger(__name__)


@contextmanager
def served_folder(
    location: str, version_location: Callable[[str, str], str], most_bytes: float = math.inf
) -> Iterator[Path]:
    """Give the folder at a version's location, read-only.

    ``version_location(name, version)`` answers where a registered version lies, for locations of the form ``models:/name/version``.
    CouldNotLook, naming the location, whenever its bytes cannot be had for certain, or would have to be fetched and are more than
    ``most_bytes``.
    """
    with _said(location):
        place = _place(location, version_location)
        repository, path = _repository(place)
    root = getattr(repository, "artifact_dir", None)
    if root is not None:
        yield _inside(Path(root), path, location)
        return
    with tempfile.TemporaryDirectory(prefix="privacy-gate-") as temporary:
        with _said(location):
            _check_size(_listed_bytes(repository, path), most_bytes, location)
            folder = Path(repository.download_artifacts(path, temporary))  # type: ignore[no-untyped-call]
            _check_size(_stored_bytes(Path(temporary)), most_bytes, location)  # not every store lists sizes
        yield _existing(folder, location)


@contextmanager
def _said(location: str) -> Iterator[None]:
    """Say what fails of somebody else's as CouldNotLook, in words that tell nothing about this machine."""
    try:
        yield
    except PrivacyGateError:
        raise
    except Exception as exc:
        _logger.exception("privacy gate: the model's bytes at %s cannot be read", location)
        missing = isinstance(exc, MlflowException) and is_missing(exc)
        problem = "something that it leads to is not there" if missing else type(exc).__name__
        raise CouldNotLook(
            f"the model's bytes at {location} cannot be read ({problem}); the server's log has the details"
        ) from exc


def _check_size(size: int, most: float, location: str) -> None:
    if size > most:
        raise CouldNotLook(
            f"the model at {location} has {size / 1e9:.3g} GB, more than the {most / 1e9:.3g} GB that limits.memory_gb lets this server "
            "fetch to look at it; raise that limit, or keep the server's artifacts where it can read them in place"
        )


def _listed_bytes(repository: ArtifactRepository, path: str) -> int:
    """Add up the sizes of all files under a path, as far as the store lists them."""
    total, folders = 0, [path]
    while folders:
        for found in repository.list_artifacts(folders.pop() or None):
            if found.is_dir:
                folders.append(found.path)
            else:
                total += found.file_size or 0
    return total


def _stored_bytes(folder: Path) -> int:
    return sum(found.lstat().st_size for found in folder.rglob("*") if not found.is_dir())


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
        repository = mlflow_private.repository_of(place)
        own = getattr(repository, "artifact_dir", None)
        if own is not None and not _reached_directly(Path(own)):
            raise CouldNotLook(
                f"{place} is a path on a disk, which every client reads on its own machine, and it is not under the artifact root of this "
                "server, so what clients would load from it cannot be known here; log the model to an experiment without an artifact "
                "location of its own, or let the server's operator name a folder that holds it, and that clients share, "
                "as --default-artifact-root"
            )
        return repository, ""
    if not mlflow_private.is_proxied(place) or not mlflow_private.names_this_server(place):
        raise CouldNotLook(
            f"{place} is not an artifact location of this server, so what clients would load from it cannot be known here; "
            "log the model to an experiment whose artifacts this server keeps"
        )
    return mlflow_private.destination_repository(), mlflow_private.destination_path(place)


def _reached_directly(folder: Path) -> bool:
    """Whether a folder lies where the operator lets clients read and write on a disk that they share with the server.

    An experiment's own artifact location says nothing of the kind: whoever creates an experiment chooses it.
    """
    roots = map(local_folder, mlflow_private.artifact_roots())
    return any(root is not None and folder.resolve().is_relative_to(root.resolve()) for root in roots)


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
