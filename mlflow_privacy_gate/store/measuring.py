"""Looking at the bytes of versions: hashed before a turn, since that takes time, and compared by fingerprint within it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mlflow.exceptions import MlflowException

from mlflow_privacy_gate.errors import CouldNotLook
from mlflow_privacy_gate.evidence.model_digest import fingerprint, model_digest

_logger = logging.getLogger(__name__)

VersionLocation = Callable[[str, str], str]
FolderAt = Callable[[str, VersionLocation, float], AbstractContextManager[Path]]


@dataclass(frozen=True)
class Measured:
    """The bytes at one location as they were a moment ago.

    ``digest`` None: they could not be had, and ``problem`` says why. ``folder`` is where they still lie, None where they were a copy.
    ``hops`` are the versions through which the location led: name, version, and where that was.
    """

    digest: str | None
    problem: str | None = None
    fingerprint: str = ""
    folder: Path | None = None
    hops: tuple[tuple[str, str, str], ...] = ()

    def unchanged(self, version_location: VersionLocation) -> bool:
        """Whether the location still leads to those bytes, by names, sizes, inodes and times of the files."""
        if any(version_location(name, version) != place for name, version, place in self.hops):
            return False
        return self.folder is None or fingerprint(self.folder) == self.fingerprint


class Unmeasured(Exception):
    """A version turned out to lie where nobody has looked yet; ``location`` says where."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


class Looks:
    """What one request has seen of the bytes: each location is hashed once, outside any turn.

    ``most_bytes`` is how much ``folder_at`` may fetch for that from elsewhere.
    """

    def __init__(self, folder_at: FolderAt, version_location: VersionLocation, most_bytes: float) -> None:
        self._folder_at = folder_at
        self._most_bytes = most_bytes
        self._version_location = version_location
        self._seen: dict[str, Measured] = {}

    def at(self, location: str) -> Measured:
        """Return what was seen there; Unmeasured where nobody has looked."""
        if location not in self._seen:
            raise Unmeasured(location)
        return self._seen[location]

    def look(self, location: str) -> None:
        """Hash the bytes at a location, unless that was done; ModelUnusable (PG004) where they are no model."""
        if location not in self._seen:
            try:
                self._seen[location] = self._measure(location)
            except CouldNotLook as exc:
                self._seen[location] = Measured(None, exc.message)

    def unchanged(self) -> bool:
        """Whether everything seen is still as it was."""
        return all(measured.unchanged(self._version_location) for measured in self._seen.values())

    def _measure(self, location: str) -> Measured:
        hops: list[tuple[str, str, str]] = []

        def recorded(name: str, version: str) -> str:
            hops.append((name, version, self._version_location(name, version)))
            return hops[-1][2]

        try:
            with self._folder_at(location, recorded, self._most_bytes) as folder:
                print_before = fingerprint(folder)
                measured = Measured(model_digest(folder), None, print_before, folder, tuple(hops))
        except MlflowException as exc:
            _logger.exception("privacy gate: the model's bytes at %s cannot be read", location)
            raise CouldNotLook(f"MLflow cannot say where the bytes at {location} lie ({exc.error_code})") from exc
        return measured if folder.exists() else Measured(measured.digest, hops=measured.hops)
