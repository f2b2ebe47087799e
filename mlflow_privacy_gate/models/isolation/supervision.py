"""Watching over a model's process from outside it: its memory, its end, and whatever it leaves running.

The watcher runs nothing of the model's. It ends the model's process when the gate's end of the pipe closes, so that none outlives a gate
that was killed, and when the process and its descendants together take more memory than they may (Linux), or are too many.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

# Exit codes of the watcher where the model took too much.
TOO_MUCH_MEMORY, TOO_MANY_PROCESSES = 99, 98
MOST_PROCESSES = 512
_LOOK_SECONDS = 0.05
_LOOKS_PER_WEIGHING = 4
_ROUNDS = 100


def supervise(worker: int, *, memory_bytes: int, request_pipe: int, user: int | None = None) -> NoReturn:
    """Wait for the process ``worker``, end it where it must end, then everything it left behind, and exit as it did.

    ``user``: the id that nobody but the worker has, whose every process is ended.
    """
    code = _watched(worker, memory_bytes, request_pipe)
    _send(worker, signal.SIGKILL)
    _end_descendants()
    if user is not None:
        _end_user(user)
    os._exit(code)


def _watched(worker: int, memory_bytes: int, request_pipe: int) -> int:
    """Return the exit code: the worker's own (128 and more for a signal), or why it must end."""
    poll = select.poll()
    poll.register(request_pipe, 0)  # reports the other end's closing alone, and reads nothing
    look = 0
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == worker:
            return _exit_code(status)
        if ended:
            continue  # an orphan that came to us
        if poll.poll(0):
            return 0
        look += 1
        if look % _LOOKS_PER_WEIGHING == 0:
            held = _descendants(os.getpid())
            if sum(held.values()) > memory_bytes:
                return TOO_MUCH_MEMORY
            if len(held) > MOST_PROCESSES:
                return TOO_MANY_PROCESSES
        time.sleep(_LOOK_SECONDS)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _send(process: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, sign)


def _end_descendants() -> None:
    """Kill until nothing is left: what a killed process had forked comes to this one."""
    for _ in range(_ROUNDS):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = _descendants(os.getpid())
        if not left:
            return
        for sign in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped first cannot fork on while others are killed
            for process in left:
                _send(process, sign)
        time.sleep(0.01)


def _end_user(user: int) -> None:
    """Kill every process of a user: only that user can name them all in one call, which misses none that is being forked."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(killer, 0)


def _descendants(ancestor: int) -> Mapping[int, int]:
    """Return the descendants of a process with the bytes each holds in memory; none where there is no /proc."""
    if sys.platform != "linux":
        return {}
    parents: dict[int, int] = {}
    memory: dict[int, int] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(process.name)
        parents[pid], memory[pid] = int(fields[1]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    found: dict[int, int] = {}
    frontier = {ancestor}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier and pid not in found}
        found.update((pid, memory[pid]) for pid in frontier)
    return found
