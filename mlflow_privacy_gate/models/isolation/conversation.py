"""Talking to a model's process within its limits: it may be silent, talk nonsense, flood its pipes or be gone, and the gate goes on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.isolation.frames import HEAD, Buffer, Frame, NoFrame, lengths, parsed_header
from mlflow_privacy_gate.models.isolation.supervision import MOST_PROCESSES, TOO_MANY_PROCESSES, TOO_MUCH_MEMORY
from mlflow_privacy_gate.models.isolation.words import last_words

_PIPE_BYTES = 1 << 20
_LAST_WORDS = 4096
_QUOTED = 300
_SECONDS_TO_END = 5.0


class Conversation:
    """Frames to and from a process started with three pipes, ``seconds`` of waiting for it in all.

    Every failure is a ModelUnusable. ``memory_bytes`` bounds what an answer may weigh and is named where the process took more.
    """

    def __init__(self, process: subprocess.Popen[bytes], *, seconds: float, memory_bytes: int) -> None:
        self._process = process
        self._seconds = self._left = seconds
        self._memory_bytes = memory_bytes
        self._last_words = b""
        self._requests, self._answers, self._chatter = (_pipe(process, name) for name in ("stdin", "stdout", "stderr"))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of what is done inside against the seconds that are left."""
        start = time.monotonic()
        self._deadline = start + self._left
        try:
            yield
        except NoFrame as exc:
            raise ModelUnusable(f"the model's process sent what is no answer: {exc}{self._said()}") from exc
        finally:
            self._left -= time.monotonic() - start

    def send(self, pieces: list[Buffer]) -> None:
        """Write a frame's pieces."""
        for piece in pieces:
            rest = memoryview(piece).cast("B")
            while rest:
                self._ready(self._requests, selectors.EVENT_WRITE)
                try:
                    rest = rest[os.write(self._requests, rest[:_PIPE_BYTES]) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError as exc:
                    raise self._gone() from exc

    def receive(self) -> Frame:
        """Read one frame."""
        header_length, body_length = lengths(bytes(self._read(HEAD.size)), largest_body=self._memory_bytes)
        return Frame(parsed_header(self._read(header_length)), self._read(body_length))

    def end(self) -> None:
        """End the process and whatever it started: by closing its pipe, which its watcher obeys, and by force where it does not."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._ended_within(_SECONDS_TO_END)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read(self, length: int) -> bytearray:
        whole = bytearray(length)
        rest = memoryview(whole)
        while rest:
            self._ready(self._answers, selectors.EVENT_READ)
            try:
                count = os.readv(self._answers, [rest[:_PIPE_BYTES]])
            except BlockingIOError:
                continue
            if count == 0:
                raise self._gone()
            rest = rest[count:]
        return whole

    def _ready(self, pipe: int, event: int) -> None:
        """Wait until a pipe can be written or read, and read away what the process prints meanwhile."""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            selector.register(self._chatter, selectors.EVENT_READ)
            while True:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    raise ModelUnusable(
                        f"the model was stopped: it took more than {self._seconds:g} seconds (limits.seconds){self._said()}"
                    )
                ready = {key.fd for key, _ in selector.select(left)}
                if self._chatter in ready and not self._listen():
                    selector.unregister(self._chatter)
                if pipe in ready:
                    return

    def _listen(self) -> bool:
        """Keep the end of what the process prints; return False when it has ended."""
        try:
            heard = os.read(self._chatter, _PIPE_BYTES)
        except BlockingIOError:
            return True
        self._last_words = (self._last_words + heard)[-_LAST_WORDS:]
        return bool(heard)

    def _gone(self) -> ModelUnusable:
        code = self._ended_within(_SECONDS_TO_END)
        with contextlib.suppress(OSError):
            self._listen()
        if code == TOO_MUCH_MEMORY:
            allowed = f"{self._memory_bytes / 1e9:g} GB (limits.memory_gb)"
            return ModelUnusable(f"the model was stopped: it took more than {allowed}{self._said()}")
        if code == TOO_MANY_PROCESSES:
            return ModelUnusable(
                f"the model was stopped: it started more than {MOST_PROCESSES} processes{self._said()}"
            )
        return ModelUnusable(f"the model's process ended before it answered ({_how(code)}){self._said()}")

    def _ended_within(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _said(self) -> str:
        words = last_words(self._last_words, limit=_QUOTED)
        return f"; it last said: {words}" if words else ""


def _pipe(process: subprocess.Popen[bytes], name: str) -> int:
    stream = getattr(process, name)
    descriptor: int = stream.fileno()
    os.set_blocking(descriptor, False)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # more than an unprivileged user may have in all
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return descriptor


def _how(code: int | None) -> str:
    if code is None:
        return "it closed its answers and goes on"
    number = -code if code < 0 else code - 128
    if number > 0:
        with contextlib.suppress(ValueError):
            return f"by {signal.Signals(number).name}"
    return f"exit code {code}"
