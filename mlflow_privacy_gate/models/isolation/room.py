"""A room for a model's process: a root of its own that holds Python, its libraries and the model, read-only, and nothing else.

Built inside a new user and mount namespace, so it takes no privileges and nobody else sees it. What may be seen is listed, not what may
not: a key, a home, a database or a socket is not there to be found.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from mlflow_privacy_gate.models.isolation import syscalls

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_SETTINGS = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/timezone", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/mime.types"),
)
_DEVICES = ("null", "zero", "full", "random", "urandom")
_SEALED = syscalls.READ_ONLY | syscalls.NO_SETUID | syscalls.NO_DEVICES


def build_and_enter(folder: Path, work: Path, hidden: Iterable[Path], *, disk_bytes: int) -> None:
    """Make the room on top of ``work`` and move into it, in process 1 of new namespaces; OSError where this machine does not let us.

    The model's ``folder`` is there read-only; ``work``, empty and in memory (up to ``disk_bytes``), is the only place that can be written.
    Files in ``hidden`` read as empty, should they lie in a folder that is shown.
    """
    syscalls.unshare(syscalls.NEW_MOUNTS)
    syscalls.mount("none", Path("/"), flags=syscalls.RECURSIVE | syscalls.PRIVATE)
    harmless = syscalls.NO_SETUID | syscalls.NO_DEVICES
    syscalls.mount("tmpfs", work, kind="tmpfs", flags=harmless, options="mode=0755")
    room = _Room(work)
    room.folder_at(work)
    for place in (*_SYSTEM, *_SETTINGS, *python_places(work), str(folder)):
        room.show(Path(place))
    for secret in hidden:
        room.hide(secret)
    room.devices(shared_memory=work)
    _own_processes(room)
    syscalls.mount("tmpfs", room.inside(work), kind="tmpfs", flags=harmless, options=f"mode=0700,size={disk_bytes}")
    syscalls.restrict_mount(work, _SEALED, whole=False)
    syscalls.change_root(work)
    os.chdir(work)


def python_places(work: Path) -> list[str]:
    """List the folders that this Python imports from, and those the dynamic linker was told to look in."""
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
    package = Path(__file__).parents[2]
    linker = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = [Path(place) for place in (*named, str(package), *linker) if place]
    return [str(place) for place in found if place.is_absolute() and place.exists() and place not in (work, Path("/"))]


class _Room:
    """The room while it is being built: a tmpfs at ``root``, into which folders are bound at their own paths."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._shown: set[Path] = set()

    def inside(self, place: Path) -> Path:
        """Return where ``place`` lies while the room is built."""
        return self._root / place.relative_to("/")

    def folder_at(self, place: Path) -> None:
        """Make an empty folder."""
        self.inside(place).mkdir(parents=True, exist_ok=True)

    def show(self, place: Path) -> None:
        """Bind a folder or file read-only at its real path, and lead to it from the path it is known by."""
        real = Path(os.path.realpath(place))
        if not real.exists():
            return
        if not self._covers(real):
            target = self.inside(real)
            if real.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch()
            syscalls.mount(real, target, flags=syscalls.BIND | syscalls.RECURSIVE)
            syscalls.restrict_mount(target, _SEALED)
            self._shown.add(real)
        if place != real and not self._covers(place) and not self.inside(place).is_symlink():
            self.inside(place).parent.mkdir(parents=True, exist_ok=True)
            self.inside(place).symlink_to(real)
            self._shown.add(place)

    def hide(self, secret: Path) -> None:
        """Lay an empty file over a secret, where the room shows it at all."""
        real = Path(os.path.realpath(secret))
        if self._covers(real) and self.inside(real).exists():
            syscalls.mount("/dev/null", self.inside(real), flags=syscalls.BIND)

    def devices(self, *, shared_memory: Path) -> None:
        """Give the devices that give nothing away."""
        self.folder_at(Path("/dev"))
        for name in _DEVICES:
            target = self.inside(Path("/dev") / name)
            target.touch()
            syscalls.mount(Path("/dev") / name, target, flags=syscalls.BIND)
        self.inside(Path("/dev/shm")).symlink_to(shared_memory)  # noqa: S108

    def _covers(self, place: Path) -> bool:
        return any(place == shown or shown in place.parents for shown in self._shown)


def _own_processes(room: _Room) -> None:
    """Mount a /proc that knows this room's processes only, read-only; where that is not allowed, there is none."""
    proc = Path("/proc")
    room.folder_at(proc)
    target = room.inside(proc)
    try:
        syscalls.mount("proc", target, kind="proc", flags=syscalls.NO_SETUID | syscalls.NO_DEVICES | syscalls.NO_EXEC)
    except OSError:
        return  # a container that hides parts of its own /proc
    # No room within the room: nothing in here needs one, and new namespaces are where kernels have been attacked.
    (target / "sys/user/max_user_namespaces").write_text("0")
    syscalls.restrict_mount(target, syscalls.READ_ONLY)
