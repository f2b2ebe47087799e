"""The identity of a model: one sha256 over the names and bytes of every file in its folder.

The manifest holds one line ``<sha256 hex>  <path>\\n`` for every regular file, the POSIX path relative to the folder, sorted
by the bytes of the path; the digest is the sha256 of those lines. An auditor gets the same from coreutils alone::

    cd MODEL && find . -type f ! -path ./registered_model_meta -printf '%P\\0' | LC_ALL=C sort -z \\
        | xargs -0 -r sha256sum -- | sha256sum

One file is left out: ``registered_model_meta`` at the root, which MLflow writes into a local artifact store when a version is first
downloaded (name and version, two lines). It must stay as small as MLflow writes it, so that no weights hide there.

Whatever would make two auditors see different folders is refused: symbolic links, sockets, pipes and devices, names that
coreutils would escape, and a folder without any file. Those raise :class:`~mlflow_privacy_gate.errors.ModelUnusable` with code PG004,
because a folder that has no digest cannot be the folder that was tested. A file that cannot be read raises
:class:`~mlflow_privacy_gate.errors.CouldNotLook`. Messages name files as the model does, never where they lie on a disk: a server hands
them to its clients.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mlflow_privacy_gate.errors import CouldNotLook, ModelUnusable
from mlflow_privacy_gate.vocabulary import ReasonCode

LEFT_OUT = "registered_model_meta"
# A registered model's name has at most 256 characters; the two YAML lines stay well below this.
LEFT_OUT_LIMIT_BYTES = 4096
# MLflow's two lines of YAML, which folds a long name; nothing that a model could be loaded from has this form.
_MLFLOWS_OWN = re.compile(rb"(?:model_(?:name|version): [^\x00-\x1f\x7f]*\n(?:  [^\x00-\x1f\x7f]*\n)*){1,2}")
_BLOCK_BYTES = 1 << 20
_REFUSED_IN_NAMES = "\n\r\\\0"
# Absent on Windows, where the check on the opened file stands alone.
_OPEN_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)  # O_NONBLOCK: a file swapped for a pipe must not hang the caller


@dataclass(frozen=True)
class _File:
    path: bytes
    location: str
    status: os.stat_result


def model_digest(folder: Path) -> str:
    """Return the sha256 (64 hex digits) that identifies the model in ``folder``: every file's name and bytes, nothing else.

    Files are streamed and hashed in parallel threads; permissions, times and empty folders do not matter. ModelUnusable (PG004) for
    links, special files, unusable names or an empty folder; CouldNotLook where a file cannot be read.
    """
    files = _files(folder)
    # Largest first, so that no thread is left alone with the big one at the end.
    by_size = sorted(files, key=lambda file: file.status.st_size, reverse=True)
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1), thread_name_prefix="model-digest") as pool:
        digests = dict(zip((file.path for file in by_size), pool.map(_file_digest, by_size), strict=True))
    manifest = hashlib.sha256()
    for file in files:
        manifest.update(digests[file.path].encode("ascii") + b"  " + file.path + b"\n")
    return manifest.hexdigest()


def fingerprint(folder: Path) -> str:
    """Return a cheap sha256 over inode, size, mtime and ctime of the same files: while it stands, so does the digest, barring root.

    Nothing is read but names and file status. It is for comparing one folder with itself moments later, never for identity. Raises
    as :func:`model_digest` does.
    """
    lines = hashlib.sha256()
    for file in _files(folder):
        status = file.status
        numbers = f"{status.st_ino},{status.st_size},{status.st_mtime_ns},{status.st_ctime_ns}"
        lines.update(numbers.encode("ascii") + b"  " + file.path + b"\n")
    return lines.hexdigest()


def _files(folder: Path) -> list[_File]:
    try:
        files = sorted(_walk(str(folder), b""), key=lambda file: file.path)
    except NotADirectoryError as exc:
        raise _refused("expected the folder of a model, got a file") from exc
    except OSError as exc:
        raise CouldNotLook(f"the model's files cannot be listed: {exc.strerror or type(exc).__name__}") from exc
    if not files:
        raise _refused("expected a model, got a folder without files")
    return files


def _walk(folder: str, prefix: bytes) -> Iterator[_File]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = prefix + os.fsencode(entry.name)
            status = entry.stat(follow_symlinks=False)
            _check_name(entry, path)
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(entry.path, path + b"/")
            elif not stat.S_ISREG(status.st_mode):
                kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "a special file"
                raise _refused(f"{_said(path)}: {kind} has no place in a model; store a regular file instead")
            elif path == LEFT_OUT.encode():
                _check_left_out(entry.path, status)
            else:
                yield _File(path, entry.path, status)


def _check_name(entry: os.DirEntry[str], path: bytes) -> None:
    # A root file called "-" would make sha256sum read its standard input.
    if any(character in entry.name for character in _REFUSED_IN_NAMES) or path == b"-":
        raise _refused(
            f"{_said(path)}: a name in a model may hold no line break, backslash or NUL, nor be '-'; rename the file"
        )


def _check_left_out(location: str, status: os.stat_result) -> None:
    if status.st_size > LEFT_OUT_LIMIT_BYTES:
        raise _refused(
            f"{LEFT_OUT}: {status.st_size} bytes where MLflow writes a name and a version (at most {LEFT_OUT_LIMIT_BYTES}); "
            "this file is not part of the model's identity, so nothing else may stand in it"
        )
    try:
        content = Path(location).read_bytes()
    except OSError as exc:
        raise CouldNotLook(f"the model's file {LEFT_OUT} cannot be read: {exc.strerror or type(exc).__name__}") from exc
    if content and not _MLFLOWS_OWN.fullmatch(content):
        raise _refused(
            f"{LEFT_OUT}: holds something else than the name and version that MLflow writes there; remove it"
        )


def _file_digest(file: _File) -> str:
    digest = hashlib.sha256()
    buffer = bytearray(_BLOCK_BYTES)
    view = memoryview(buffer)
    try:
        with os.fdopen(os.open(file.location, _OPEN_FLAGS), "rb", buffering=0) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _refused(f"{_said(file.path)}: was a regular file a moment ago and is none now")
            while count := stream.readinto(buffer):
                digest.update(view[:count])
    except OSError as exc:
        raise CouldNotLook(
            f"the model's file {_said(file.path)} cannot be read: {exc.strerror or type(exc).__name__}"
        ) from exc
    return digest.hexdigest()


def _said(path: bytes) -> str:
    """Name a file of the model for a message, on one line whatever the name holds."""
    return repr(os.fsdecode(path))


def _refused(message: str) -> ModelUnusable:
    return ModelUnusable(message, code=ReasonCode.PG004)
