"""Shutting a model's process in, as far as this machine lets us; what was not possible is said, for the card.

==============  =================================================================================================
a room          user, mount, process, network and IPC namespaces of its own (Linux, no privileges needed): it sees
                Python, the model and a temporary folder in memory. No key, home, network, other process
another user    a user id of nobody's (root in a container that forbids namespaces): it sees what everyone may read
the same user   neither was possible: it sees whatever the caller may read, the signing key's file too
==============  =================================================================================================

None of these is a virtual machine: a fault in the kernel opens all of them.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow_privacy_gate.models.isolation import room, syscalls
from mlflow_privacy_gate.models.isolation.supervision import supervise

# User ids that no package hands out (systemd keeps them for services that need one for a while).
_FREE_USERS = range(61184, 65520)
# Address space beyond the memory that may be used: libraries, thread stacks and allocators reserve it without touching it.
ADDRESS_SPACE_BEYOND = 8 << 30
# Files in a room lie in memory, and may take this part of it beside what the process takes.
DISK_SHARE = 4
_TRIAL_FAILED = 3


@dataclass(frozen=True)
class Start:
    """What a model's process is told before it opens the model.

    ``folder``: the model's; ``work``: its empty temporary folder; ``hidden``: files to keep from it; ``memory_bytes``: what it may use.
    ``ways``: the confinements that may be tried, best first. ``request_pipe`` and ``answer_pipe``: file descriptors.
    """

    folder: Path
    work: Path
    hidden: tuple[Path, ...]
    memory_bytes: int
    ways: tuple[str, ...]
    request_pipe: int
    answer_pipe: int

    @classmethod
    def of(cls, header: Mapping[str, Any], *, request_pipe: int, answer_pipe: int) -> Start:
        """Read what the gate sent."""
        hidden = tuple(Path(one) for one in header["hidden"])
        return cls(
            folder=Path(header["folder"]),
            work=Path(header["work"]),
            hidden=hidden,
            memory_bytes=header["memory_bytes"],
            ways=tuple(header["ways"]),
            request_pipe=request_pipe,
            answer_pipe=answer_pipe,
        )


@dataclass(frozen=True)
class Confined:
    """How this process came to be shut in (``room``, ``user`` or ``none``), and where the model lies for it.

    ``why_not``: what kept it from a better way, or None.
    """

    way: str
    folder: Path
    why_not: str | None = None


ROOM, USER, NONE = "room", "user", "none"


def confine(start: Start) -> Confined:
    """Shut this process in as well as can be, and return in the one that will open the model; another watches over it and never returns.

    Every way is tried in a throw-away process first, for none can be taken back.
    """
    why_not: list[str] = []
    for way in start.ways:
        problem = _tried(way, start)
        if problem is None:
            return Confined(way, _WAYS[way](start), "; ".join(why_not) or None)
        why_not.append(problem)
    raise OSError("; ".join(why_not))


def limit(memory_bytes: int) -> None:
    """Bound this process's memory and any file it writes by the kernel, and leave no core file, which would hold rows."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _bound(resource.RLIMIT_FSIZE, memory_bytes)
    if sys.platform == "linux":
        # RLIMIT_DATA counts private memory, reserved or not; RLIMIT_AS catches what is shared, and so not counted there.
        _bound(resource.RLIMIT_DATA, memory_bytes)
        _bound(resource.RLIMIT_AS, memory_bytes + ADDRESS_SPACE_BEYOND)


def _bound(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _room(start: Start) -> Path:
    if sys.platform != "linux":
        raise OSError("namespaces are Linux's")
    user, group = os.getuid(), os.getgid()
    syscalls.unshare(
        syscalls.NEW_USER | syscalls.NEW_PIDS | syscalls.NEW_NETWORK | syscalls.NEW_IPC | syscalls.NEW_HOST_NAME
    )
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _fork_supervised(start)
    room.build_and_enter(start.folder, start.work, start.hidden, disk_bytes=start.memory_bytes // DISK_SHARE)
    syscalls.drop_capabilities()
    limit(start.memory_bytes)
    return start.folder


def _user(start: Start) -> Path:
    if os.getuid() != 0:
        raise OSError("only root can take on another user's id")
    user = random.SystemRandom().choice(_FREE_USERS)
    model = start.work / "model"
    if not model.exists():  # the trial has copied it
        shutil.copytree(start.folder, model)
    for path in (start.work, model, *model.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    _fork_supervised(start, user=user)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if sys.platform == "linux":
        syscalls.die_with_parent()  # a change of user forgets it
        syscalls.no_new_privileges()
    limit(start.memory_bytes)
    for place in (os.__file__, str(model / "MLmodel"), *room.python_places(start.work)):
        if not os.access(place, os.R_OK):
            raise OSError(f"another user cannot read {place}")
    return model


def _none(start: Start) -> Path:
    _fork_supervised(start)
    limit(start.memory_bytes)
    return start.folder


def _fork_supervised(start: Start, *, user: int | None = None) -> None:
    """Fork: return in the new process, and watch over it in the old one."""
    if sys.platform == "linux":
        syscalls.adopt_orphans()
    worker = os.fork()
    if worker:
        for answers in (1, start.answer_pipe):
            with contextlib.suppress(OSError):
                os.close(answers)  # the gate sees the end of the answers when the worker ends
        supervise(worker, memory_bytes=start.memory_bytes, request_pipe=start.request_pipe, user=user)
    if sys.platform == "linux":
        syscalls.die_with_parent()


def _tried(way: str, start: Start) -> str | None:
    """Try a way in a process of its own; return what was in its way, or None."""
    reading, writing = os.pipe()
    trial = os.fork()
    if trial == 0:
        code = _TRIAL_FAILED
        try:
            _WAYS[way](start)
            code = 0
        except OSError as exc:
            os.write(writing, str(exc).encode()[:500])
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        problem = said.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(trial, 0)[1])
    return None if code == 0 else problem or f"{way}: ended with {code}"


_WAYS: dict[str, Callable[[Start], Path]] = {ROOM: _room, USER: _user, NONE: _none}
