"""Model folders whose unpickling, or whose answering, runs whatever code a test wants."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # publishes no types
import mlflow
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from mlflow_privacy_gate.errors import ModelUnusable
from mlflow_privacy_gate.models.isolated import isolated

CANCER = load_breast_cancer(as_frame=True)
X: pd.DataFrame = CANCER.data.iloc[:240, :6]
Y: pd.Series[Any] = CANCER.target.iloc[:240]
FOREST = RandomForestClassifier(n_estimators=5, random_state=0).fit(X[:120], Y[:120])

# Runs at the model's first answer instead of when it is opened.
WHEN_ASKED = """
import sklearn.ensemble._forest as forest
def predict_proba(self, rows):
{}
forest.RandomForestClassifier.predict_proba = predict_proba
"""

# Raises with the names of all the places in which a secret was found by a process that looks everywhere it can think of. The mark stands
# in it backwards, so that the model's own file is no find.
SEARCH = """
import os, pathlib
found = []
def look(place, read):
    try:
        content = read()
    except OSError:
        return
    if {mark!r}[::-1] in content:
        found.append(place)
def text(path):
    return lambda: pathlib.Path(path).read_bytes().decode("latin-1")
look("environ", lambda: repr(os.environ))
for process in ["self", str(os.getppid()), *[name for name in os.listdir("/proc") if name.isdigit()]]:
    for file in ("environ", "cmdline"):
        look(f"{{file}} of a process", text(f"/proc/{{process}}/{{file}}"))
for number in range(256):
    def through():
        if not os.path.isfile(f"/proc/self/fd/{{number}}"):
            return ""
        os.lseek(number, 0, os.SEEK_SET)
        return os.read(number, 1 << 16).decode("latin-1")
    look("open file", through)
for process in [name for name in os.listdir("/proc") if name.isdigit()]:
    try:
        numbers = os.listdir(f"/proc/{{process}}/fd")
    except OSError:
        continue
    for number in numbers:
        if os.path.isfile(f"/proc/{{process}}/fd/{{number}}"):
            look("open file of a process", text(f"/proc/{{process}}/fd/{{number}}"))
for path in {paths!r}:
    look("file by its path", text(path))
    look("file through another's root", text(f"/proc/{{os.getppid()}}/root{{path}}"))
raise RuntimeError("FOUND " + repr(sorted(set(found))))
"""


def save_hostile(folder: Path, code: str, estimator: Any = FOREST) -> Path:
    """Save a model folder whose unpickling runs ``code`` and gives ``estimator``; MLflow's own files around it are real."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mlflow.sklearn.save_model(
            estimator, str(folder), serialization_format="cloudpickle", pip_requirements=["scikit-learn"]
        )
    make_hostile(folder, code, estimator)
    return folder


def make_hostile(folder: Path, code: str, estimator: Any = FOREST) -> None:
    """Put code into the pickle of a model folder that is there."""
    (folder / "model.pkl").write_bytes(cloudpickle.dumps(_Runs(code, estimator)))


def can_shut_in(folder: Path) -> bool:
    """Whether this machine lets a model be shut in: in namespaces or as another user."""
    try:
        with isolated(save_hostile(folder, ""), seconds=60, memory_gb=4, ways=("room", "user")):
            return True
    except ModelUnusable:
        return False


def processes_that_know(mark: str) -> list[int]:
    """List the processes of this machine that were started with ``mark`` in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if mark.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
    return found


class _Runs:
    def __init__(self, code: str, estimator: Any) -> None:
        self._code, self._estimator = code, estimator

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("exec(code, {}) or estimator", {"code": self._code, "estimator": self._estimator})
