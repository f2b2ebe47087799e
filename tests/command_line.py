"""The command line in this process: what it printed, where, and the exit code it ended with."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from mlflow_privacy_gate.cli.program import main


@dataclass(frozen=True)
class Ran:
    """One run of ``mlflow-privacy-gate``."""

    exit_code: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Ran:
    """Run the program as a shell would, and leave environment and arguments as they were."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ),
        mock.patch.object(sys, "argv", ["mlflow-privacy-gate", *arguments]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    ran = Ran(code, out.getvalue(), err.getvalue())
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran
