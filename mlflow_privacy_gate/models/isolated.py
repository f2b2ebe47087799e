"""A model in a process of its own: the gate, which may hold a signing key, never runs the model's code nor unpickles what it sends.

Whoever opens a model runs its author's code. The child process is started with an environment made from nothing, is shut in as far as
the machine allows (:mod:`.isolation.confinement`), gets rows as Arrow and answers in JSON and plain arrays, which are checked here as
if an enemy had sent them. Its wall clock and memory are limited. What this cannot give is truth: a model's code answers for itself, in
a child process as in-process, so it can hide what it remembers, or claim that references and refits came out as it likes.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlflow_privacy_gate.attacks.recipe_changes import NO_CHANGES, Changes, Parameter
from mlflow_privacy_gate.errors import ModelUnusable, ObservationError, UsageError
from mlflow_privacy_gate.models._interface import ModelNotes
from mlflow_privacy_gate.models.isolation.frames import Buffer, Frame, NoFrame, packed
from mlflow_privacy_gate.models.isolation.words import one_line

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.attacks.references import References
    from mlflow_privacy_gate.models.isolation.conversation import Conversation

GIGABYTE = 10**9
WAYS = ("room", "user", "none")

_PASSED_ON = frozenset(
    {
        *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LOKY_MAX_CPU_COUNT", "MLFLOW_ALLOW_PICKLE_DESERIALIZATION"),
    }
)
_PASSED_ON_BEGINNINGS = ("OPENBLAS_", "OMP_", "MKL_", "NUMEXPR_", "BLIS_", "VECLIB_", "GOTO_")
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_LONGEST_TEXT, _MOST_TEXTS, _MOST_COLUMNS = 2000, 200, 100_000

_LESS_SHUT_IN = {
    "user": (
        "The model's code ran in a child process under a user id of its own, without namespaces ({why}): files that every user may "
        "read and the network were in its reach."
    ),
    "none": (
        "The model's code ran in a child process as the user who ran the check ({why}): whatever that user may read, a signing key's file "
        "too, and the network were in its reach."
    ),
}


@contextmanager
def isolated(
    folder: Path,
    *,
    seconds: float,
    memory_gb: float,
    hidden: Sequence[Path] = (),
    ways: Sequence[str] = WAYS,
) -> Iterator[IsolatedModel]:
    """Open the model in an MLflow model ``folder`` in a child process, which ends, with all it left behind, when this does.

    ``seconds``: how long the gate waits for it in all, opening included. ``memory_gb``: what it and its own children may hold, in 10^9
    bytes. ``hidden``: files, such as keys, that it must not find. ``ways``: confinements to try, best first. ModelUnusable where the model
    cannot be opened within that; UsageError where there are no child processes of this kind.
    """
    if os.name != "posix":
        raise UsageError("a model can be opened in a child process on Linux and macOS only; here, use `--in-process`")
    from mlflow_privacy_gate.models.isolation.conversation import Conversation

    memory_bytes = int(memory_gb * GIGABYTE)
    start = {
        "folder": str(folder.absolute()),
        "hidden": [str(one.absolute()) for one in hidden],
        "memory_bytes": memory_bytes,
        "ways": list(ways),
    }
    with _work_folder() as work:
        process = _started(work)
        conversation = Conversation(process, seconds=seconds, memory_bytes=memory_bytes)
        try:
            yield _opened(conversation, {**start, "work": str(work)})
        finally:
            conversation.end()


class IsolatedModel:
    """The model of a child process, asked over its pipes; the same answers as in-process, to the bit."""

    def __init__(self, conversation: Conversation, opened: Frame, said: tuple[str, ...]) -> None:
        self._conversation = conversation
        self._said = said
        self.input_columns = _columns(opened.header.get("input_columns"))
        self.parameters = _parameters(opened.header.get("parameters"))
        self.notes = _notes(opened.header.get("notes"), said)

    def observe(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        """Ask the model about n labelled rows; ``features`` (n, d), ``labels`` (n,).

        ModelUnusable where the model fails or breaks its limits; ObservationError where its answers cannot be used.
        """
        with self._conversation.waiting():
            return _observations(self._asked({"ask": "observe"}, features, labels), len(features))

    def references(
        self,
        features: pd.DataFrame,
        labels: pd.Series[Any],
        *,
        count: int,
        seed: int,
        keep_posteriors: bool = False,
        changes: Changes = NO_CHANGES,
        progress: Callable[[int, int], None] | None = None,
    ) -> References | None:
        """Train ``count`` models by this model's own recipe, each on a random half of the n rows; None when it cannot be trained again."""
        from mlflow_privacy_gate.models.isolation.answers import references_of
        from mlflow_privacy_gate.models.isolation.arrays import arrays_of

        how = {"count": count, "seed": seed, "keep_posteriors": keep_posteriors, "changes": dict(changes)}
        asked = {"ask": "references", **how}
        with self._conversation.waiting():
            answer = self._asked(asked, features, labels, progress)
            if not _flag(answer, "references"):
                return None
            return references_of(
                arrays_of(answer),
                count=count,
                rows=len(features),
                seed=seed,
                origin=_text(answer.header.get("origin")),
                notes=_texts(answer.header.get("notes_of_references")),
                keep_posteriors=keep_posteriors,
            )

    def refit(
        self,
        features: pd.DataFrame,
        labels: pd.Series[Any],
        *,
        train_rows: int,
        seed: int,
        changes: Changes = NO_CHANGES,
    ) -> Observations | None:
        """Train the recipe anew on the first ``train_rows`` rows and ask that model about all n; None when it cannot be trained again."""
        with self._conversation.waiting():
            asked = {"ask": "refit", "train_rows": train_rows, "seed": seed, "changes": dict(changes)}
            answer = self._asked(asked, features, labels)
            return _observations(answer, len(features)) if _flag(answer, "refit") else None

    def reproduced(self, features: pd.DataFrame, labels: pd.Series[Any], *, train_rows: int) -> bool:
        """Whether training again on the first ``train_rows`` rows, with the logged seeds, gives this model's own answers about all n."""
        with self._conversation.waiting():
            asked = {"ask": "reproduced", "train_rows": train_rows}
            return _flag(self._asked(asked, features, labels), "reproduced")

    def _asked(
        self,
        request: Mapping[str, Any],
        features: pd.DataFrame,
        labels: pd.Series[Any],
        progress: Callable[[int, int], None] | None = None,
    ) -> Frame:
        from mlflow_privacy_gate.models.isolation.rows import sent

        tables = [sent(features), sent(labels.to_frame())]
        bodies: list[Buffer] = [raw for _, raw in tables]
        lengths = [memoryview(raw).nbytes for raw in bodies]
        header = {**request, "objects": [objects for objects, _ in tables], "lengths": lengths}
        self._conversation.send(packed(header, bodies))
        while True:
            answer = _checked(self._conversation.receive())
            if "progress" not in answer.header:
                self.notes = _notes(answer.header.get("notes"), self._said)
                return answer
            done, of = _progress(answer.header["progress"])
            if progress is not None:
                progress(done, of)


def child_environment(environ: Mapping[str, str], work: Path) -> dict[str, str]:
    """Return the environment of a model's process: what Python and numerical libraries need, by name, and nothing else of the caller's."""
    passed = {
        name: value
        for name, value in environ.items()
        if (name in _PASSED_ON or name.startswith(_PASSED_ON_BEGINNINGS)) and not any(w in name for w in _SECRET_WORDS)
    }
    if "PYTHONPATH" in passed:  # the child does not start in the caller's folder
        places = [str(Path(place).absolute()) for place in passed["PYTHONPATH"].split(os.pathsep) if place]
        passed["PYTHONPATH"] = os.pathsep.join(places)
    if site.ENABLE_USER_SITE:
        passed["PYTHONUSERBASE"] = site.getuserbase()  # libraries that the caller installed for themselves
    return {
        **passed,
        **dict.fromkeys(("HOME", "TMPDIR"), str(work)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MPLCONFIGDIR": str(work),
    }


@contextmanager
def _work_folder() -> Iterator[Path]:
    """Make a folder for the model's process, for its owner alone (0700), deleted afterwards whatever the model left in it."""
    with tempfile.TemporaryDirectory(prefix="privacy-gate-model-", ignore_cleanup_errors=True) as temporary:
        yield Path(os.path.realpath(temporary))


def _started(work: Path) -> subprocess.Popen[bytes]:
    """Start the process with nothing of this one but its pipes and the environment made for it."""
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "mlflow_privacy_gate.models.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=work,
            env=child_environment(os.environ, work),
            close_fds=True,
            start_new_session=True,
        )
    except OSError as exc:
        raise ModelUnusable(f"a process for the model cannot be started: {exc}") from exc


def _opened(conversation: Conversation, start: Mapping[str, Any]) -> IsolatedModel:
    with conversation.waiting():
        conversation.send(packed(start))
        shut_in = conversation.receive().header
        way, why = shut_in.get("confined"), shut_in.get("why_not")
        words = _LESS_SHUT_IN.get(_text(way))
        said = (words.format(why="no better was asked for" if why is None else _text(why)),) if words else ()
        return IsolatedModel(conversation, _checked(conversation.receive()), said)


def _checked(answer: Frame) -> Frame:
    """Return an answer that is none of an error; raise the error otherwise, which is of two kinds whatever the other side calls it."""
    if "error" not in answer.header:
        return answer
    message = _text(answer.header.get("message"))
    if answer.header["error"] == ObservationError.__name__:
        raise ObservationError(message)
    raise ModelUnusable(message)


def _observations(answer: Frame, rows: int) -> Observations:
    from mlflow_privacy_gate.models.isolation.answers import observations_of
    from mlflow_privacy_gate.models.isolation.arrays import arrays_of

    return observations_of(answer.header.get("kind"), answer.header.get("basis"), arrays_of(answer), rows=rows)


def _notes(notes: object, said: tuple[str, ...]) -> ModelNotes:
    if not isinstance(notes, dict):
        raise NoFrame("no notes on the model")
    versions, rows, parameters = (notes.get(name) for name in ("library_versions", "holds_training_rows", "parameters"))
    if versions is not None and not (isinstance(versions, dict) and len(versions) <= _MOST_TEXTS):
        raise NoFrame("library versions that are no mapping")
    if parameters is not None and (type(parameters) is not int or parameters < 0):
        raise NoFrame("a number of parameters that is no count")
    return ModelNotes(
        flavour=_text(notes.get("flavour")),
        holds_training_rows=None if rows is None else _text(rows),
        library_versions=None if versions is None else {_text(name): _text(one) for name, one in versions.items()},
        warnings=(*_texts(notes.get("warnings")), *said),
        parameters=parameters,
    )


def _columns(columns: object) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if (
        not isinstance(columns, list)
        or len(columns) > _MOST_COLUMNS
        or not all(isinstance(one, str) for one in columns)
    ):
        raise NoFrame("input columns that are no names")
    return tuple(columns)


def _parameters(parameters: object) -> Mapping[str, Parameter]:
    if not isinstance(parameters, dict) or len(parameters) > _MOST_COLUMNS:
        raise NoFrame("recipe parameters that are no mapping")
    if any(value is not None and type(value) not in (int, float) for value in parameters.values()):
        raise NoFrame("a recipe parameter that is no number")
    return {_text(name): value for name, value in parameters.items()}


def _progress(progress: object) -> tuple[int, int]:
    if not isinstance(progress, list) or len(progress) != 2 or any(type(one) is not int for one in progress):
        raise NoFrame("progress that is no pair of counts")
    return progress[0], progress[1]


def _flag(answer: Frame, name: str) -> bool:
    flag = answer.header.get(name)
    if not isinstance(flag, bool):
        raise NoFrame(f"{name} that is neither true nor false")
    return flag


def _texts(texts: object) -> tuple[str, ...]:
    if not isinstance(texts, list) or len(texts) > _MOST_TEXTS:
        raise NoFrame("notes that are no list of texts")
    return tuple(_text(one) for one in texts)


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise NoFrame("something other than a text where a text belongs")
    return one_line(text, limit=_LONGEST_TEXT)
