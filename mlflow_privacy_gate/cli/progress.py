"""Progress for people: one line on stderr, and only where that is a terminal; stdout is kept for the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def shown_progress() -> Iterator[Callable[[str], None]]:
    """Give a function that shows what is being done now; it shows nothing where nobody watches.

    Whatever a model's own code prints meanwhile goes to stderr too.
    """
    if not sys.stderr.isatty():
        with redirect_stdout(sys.stderr):
            yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status, redirect_stdout(sys.stderr):
        yield lambda step: status.update(f"{step} …")
