"""The few Linux calls that Python does not offer, through the C library; each raises OSError that names the call."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

NEW_MOUNTS, NEW_HOST_NAME, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000

READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
BIND, RECURSIVE, PRIVATE = 0x1000, 0x4000, 0x40000

_DETACH = 2
_AT_RECURSIVE = 0x8000
_SYS_MOUNT_SETATTR = 442  # of one number on every architecture
_SET_PARENT_DEATH_SIGNAL, _DROP_BOUNDING, _NO_NEW_PRIVILEGES, _SUBREAPER = 1, 24, 38, 36
_CAPABILITY_VERSION_3 = 0x20080522


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    ctypes.set_errno(0)
    if getattr(_libc(), name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def unshare(namespaces: int) -> None:
    """Leave the namespaces of these kinds for new ones."""
    _call("unshare", ctypes.c_int(namespaces))


def mount(source: Path | str, target: Path, *, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    """Mount a filesystem, or bind a folder or file elsewhere."""
    _call(
        "mount",
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() if options else None,
    )


def restrict_mount(target: Path, flags: int, *, whole: bool = True) -> None:
    """Add READ_ONLY, NO_SETUID, NO_DEVICES or NO_EXEC to a mount, and to all below it where ``whole``; Linux 5.12."""
    attributes = _MountAttributes(set=flags)
    _call(
        "syscall",
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(-100),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE if whole else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def change_root(root: Path) -> None:
    """Make ``root``, a mount, the root of this mount namespace, and let go of the old one."""
    os.chdir(root)
    _call("pivot_root", b".", b".")  # the old root lies on top of the new one now
    _call("umount2", b".", ctypes.c_int(_DETACH))
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every capability, also for whatever is executed later."""
    no_new_privileges()
    for capability in range(64):
        try:
            _prctl(_DROP_BOUNDING, capability)
        except OSError:
            break  # past the last one that this kernel knows
    header, sets = _CapabilityHeader(_CAPABILITY_VERSION_3, 0), (_CapabilitySets * 2)()
    _call("capset", ctypes.byref(header), ctypes.byref(sets))


def no_new_privileges() -> None:
    """Let no setuid or file capability give anything back."""
    _prctl(_NO_NEW_PRIVILEGES, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, 9)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_SUBREAPER, 1)


def _prctl(option: int, argument: int) -> None:
    _call("prctl", ctypes.c_int(option), *(ctypes.c_ulong(value) for value in (argument, 0, 0, 0)))
