"""The process that opens a model: ``python -m mlflow_privacy_gate.models.child``, started by :mod:`.isolated` and by nothing else.

It imports no library before it is shut in: what has started threads can no longer leave its namespaces.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from mlflow_privacy_gate.models.isolation.confinement import Start, confine
from mlflow_privacy_gate.models.isolation.frames import read_frame, write_frame


def main() -> None:
    """Read how to start, be shut in, open the model, and answer until the gate closes its pipe."""
    requests, answers = _taken_pipes()
    begin = read_frame(requests, largest_body=0)
    if begin is None:
        return
    start = Start.of(begin.header, request_pipe=requests.fileno(), answer_pipe=answers.fileno())
    confined = confine(start)
    write_frame(answers, {"confined": confined.way, "why_not": confined.why_not})
    from mlflow_privacy_gate.models.isolation.serving import serve

    serve(requests, answers, confined.folder)
    answers.flush()
    os._exit(0)  # the model's own exit hooks are not wanted


def _taken_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take standard input and output for the protocol: what the model prints goes to standard error from here on."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


if __name__ == "__main__":
    main()
