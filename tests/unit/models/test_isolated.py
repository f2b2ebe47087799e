"""Promises of a model in a child process, kept against models that mean harm."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hostile_models import FOREST, SEARCH, WHEN_ASKED, X, Y, processes_that_know, save_hostile
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.svm import SVC, LinearSVC

from mlflow_privacy_gate.errors import CouldNotJudge, ModelUnusable, ObservationError
from mlflow_privacy_gate.models.catalogue import load_model
from mlflow_privacy_gate.models.isolated import WAYS, child_environment, isolated

pytestmark = pytest.mark.skipif(os.name != "posix", reason="child processes of this kind need POSIX")

SECONDS, MEMORY_GB = 60.0, 4.0
ANSWERS = ("kept", "true_column", "probabilities", "logits", "correct", "residuals", "log_likelihood")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary folders of the children are made here; afterwards neither they nor any process of theirs may be left."""
    place = Path(tempfile.mkdtemp(prefix=tmp_path.name))
    place.chmod(0o755)  # pytest's own folders are closed to other users
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.glob("privacy-gate-model-*")) == []
    assert gone(str(place))
    shutil.rmtree(place)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Each way of shutting a model in that this machine offers."""
    try:
        with isolated(
            save_hostile(tmp_path_factory.mktemp("harmless") / "model", ""),
            seconds=60,
            memory_gb=4,
            ways=(request.param,),
        ):
            return str(request.param)
    except ModelUnusable as exc:
        pytest.skip(f"this machine does not offer it: {exc.message[-200:]}")


def refused(folder: Path, *, seconds: float = SECONDS, memory_gb: float = MEMORY_GB, **options: Any) -> str:
    """Open and ask a model that cannot be judged; return why."""
    with (
        pytest.raises(CouldNotJudge) as caught,
        isolated(folder, seconds=seconds, memory_gb=memory_gb, **options) as model,
    ):
        model.observe(X, Y)
    assert type(caught.value) is ModelUnusable
    assert caught.value.message.isprintable()
    return caught.value.message


@pytest.mark.parametrize(
    ("estimator", "labels"),
    [
        (FOREST, Y),
        (LogisticRegression(max_iter=5000).fit(X[:120], Y[:120].map({0: "no", 1: "yes"})), Y.map({0: "no", 1: "yes"})),
        (LinearSVC().fit(X[:120], Y[:120]), Y),
        (SVC(decision_function_shape="ovo").fit(X[:120], X.iloc[:120, 0] // 8), X.iloc[:, 0] // 8),
        (Ridge().fit(X[:120], X.iloc[:120, 0] * 1.5), X.iloc[:, 0] * 1.5),
        (GaussianMixture(2, random_state=0).fit(X[:120]), Y),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_child_gives_the_same_bits_as_this_process(tmp_path: Path, estimator: Any, labels: pd.Series[Any]) -> None:
    folder = save_hostile(tmp_path / "model", "", estimator)
    here = load_model(folder)
    with isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        assert model.input_columns == here.input_columns
        seen, expected = model.observe(X, labels), here.observe(X, labels)
        assert (seen.kind, seen.basis) == (expected.kind, expected.basis)
        for name in ANSWERS:
            theirs, ours = getattr(seen, name), getattr(expected, name)
            assert (theirs is None) == (ours is None), name
            if ours is not None:
                assert theirs.dtype == ours.dtype
                assert theirs.tobytes() == np.ascontiguousarray(ours).tobytes(), name
        assert model.notes.parameters == here.notes.parameters
        assert model.notes.library_versions == here.notes.library_versions
        assert model.notes.holds_training_rows == here.notes.holds_training_rows
        assert set(here.notes.warnings) <= set(model.notes.warnings)


def test_references_refits_and_reproduction_in_a_child_are_those_of_this_process(tmp_path: Path) -> None:
    folder = save_hostile(tmp_path / "model", "")
    here = load_model(folder)
    steps: list[tuple[int, int]] = []
    with isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        options: dict[str, Any] = {"count": 3, "seed": 7, "keep_posteriors": True}
        found = model.references(X, Y, progress=lambda done, of: steps.append((done, of)), **options)
        expected = here.references(X, Y, **options)
        assert found is not None
        assert expected is not None
        assert found.scores.tobytes() == expected.scores.tobytes()
        assert found.in_mask.tobytes() == expected.in_mask.tobytes()
        assert found.posteriors is not None
        assert expected.posteriors is not None
        assert found.posteriors.top.tobytes() == expected.posteriors.top.tobytes()
        assert found.posteriors.correct.tobytes() == expected.posteriors.correct.tobytes()
        assert (found.origin, found.seed, found.notes) == (expected.origin, expected.seed, expected.notes)
        assert steps == [(1, 3), (2, 3), (3, 3)]
        assert model.reproduced(X, Y, train_rows=120) is True
        assert model.reproduced(X, Y, train_rows=119) is False


def test_a_model_without_a_recipe_has_no_references_in_a_child_either(tmp_path: Path) -> None:
    folder = save_hostile(tmp_path / "model", "", GaussianMixture(2, random_state=0).fit(X[:120]))
    with isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        assert model.references(X, Y, count=2, seed=0) is None


def test_columns_of_every_kind_arrive_as_they_were_sent(tmp_path: Path) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    mixed = X.assign(
        colour=pd.Categorical(np.where(Y == 1, "red", "blue"), categories=["red", "green", "blue"]),
        code=np.where(X.index % 3 == 0, np.nan, (X.index % 5).astype(float)),
        word=pd.Series(
            np.where(X.index % 4 == 0, None, "w" + (X.index % 7).astype(str).to_numpy(dtype=object)), dtype=object
        ),
    )
    encoder = OneHotEncoder(handle_unknown="ignore")
    pipeline = make_pipeline(
        make_column_transformer((encoder, ["colour", "code", "word"]), remainder="passthrough"),
        LogisticRegression(max_iter=5000),
    ).fit(mixed[:120], Y[:120])
    folder = save_hostile(tmp_path / "model", "", pipeline)
    with isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        seen, expected = model.observe(mixed[60:], Y[60:]), load_model(folder).observe(mixed[60:], Y[60:])
        np.testing.assert_array_equal(np.asarray(seen.probabilities), np.asarray(expected.probabilities))


def test_rows_whose_label_the_model_does_not_know_are_left_out_and_counted(tmp_path: Path) -> None:
    labels = Y.where(Y.index % 10 != 0, 2)
    with isolated(save_hostile(tmp_path / "model", ""), seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        seen = model.observe(X, labels)
    assert seen.unknown_labels == 24
    np.testing.assert_array_equal(seen.kept, labels != 2)


def test_labels_in_other_words_keep_their_own_error(tmp_path: Path) -> None:
    folder = save_hostile(tmp_path / "model", "")
    with (
        isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model,
        pytest.raises(ObservationError, match="none of the 240 labels"),
    ):
        model.observe(X, Y.map({0: "benign", 1: "malignant"}))


def test_a_child_leaves_no_row_on_disk(tmp_path: Path, work: Path) -> None:
    with isolated(save_hostile(tmp_path / "model", ""), seconds=SECONDS, memory_gb=MEMORY_GB, ways=("room",)) as model:
        model.observe(X, Y)
        (folder,) = work.glob("privacy-gate-model-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []


# Secrets


def test_the_environment_of_a_child_holds_nothing_that_was_not_listed(tmp_path: Path) -> None:
    caller = {
        **{"PATH": "/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "2", "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false"},
        **{"PRIVACY_GATE_SIGNING_KEY": "k", "PRIVACY_GATE_KEY_PASSWORD": "p", "MLFLOW_TRACKING_TOKEN": "t"},
        **{"MLFLOW_TRACKING_URI": "http://u:p@host", "AWS_SECRET_ACCESS_KEY": "s", "AZURE_CLIENT_ID": "a"},
        **{"GOOGLE_APPLICATION_CREDENTIALS": "/g", "OMP_SECRET_TOKEN": "x", "HOME": "/home/me", "LD_PRELOAD": "/x.so"},
    }
    made = child_environment(caller, tmp_path)
    assert {name for name in made if made.get(name) == caller.get(name)} == {
        "PATH",
        "LANG",
        "OMP_NUM_THREADS",
        "MLFLOW_ALLOW_PICKLE_DESERIALIZATION",
    }
    assert made["HOME"] == made["TMPDIR"] == str(tmp_path)
    assert not [
        name for name in made if any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASSWORD", "TRACKING"))
    ]


def test_relative_places_to_import_from_stay_where_they_were(tmp_path: Path) -> None:
    made = child_environment({"PYTHONPATH": os.pathsep.join(["lib", "", str(tmp_path)])}, tmp_path)
    assert made["PYTHONPATH"] == os.pathsep.join([str(Path("lib").absolute()), str(tmp_path)])


def test_a_model_that_searches_for_the_key_finds_none(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "privacy-gate.key"
    key.write_text("hush-hush PRIVATE KEY")
    key.chmod(0o600)
    monkeypatch.setenv("PRIVACY_GATE_KEY_PASSWORD", "hush-hush")
    code = SEARCH.format(mark="hsuh-hsuh", paths=[str(key)])
    folder = save_hostile(tmp_path / "model", code)
    with pytest.raises(ModelUnusable, match=r"FOUND .*file by its path"):
        load_model(folder)  # the search is one that finds
    with key.open() as held:
        os.set_inheritable(held.fileno(), True)
        said = refused(folder, hidden=(key,), ways=(way,))
    if way == "none":  # and then the card says so
        assert "FOUND ['file by its path'" in said
    else:
        assert "FOUND []" in said


def test_a_key_among_the_folders_that_a_room_shows_reads_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Path
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    key, other = library / "privacy-gate.key", library / "other.txt"
    key.write_text("hush-hush")
    other.write_text("hush-hush")
    monkeypatch.setenv("PYTHONPATH", str(library))
    code = f"raise RuntimeError(repr([open(path).read() for path in {[str(key), str(other)]!r}]))"
    said = refused(save_hostile(tmp_path / "model", code), hidden=(key,), ways=("room",))
    assert "['', 'hush-hush']" in said


def test_a_room_holds_no_home_no_network_and_no_other_process(tmp_path: Path) -> None:
    code = """
import os, socket, pathlib
said = []
for path in ("/root", "/home", "/var", "/run", "/etc/shadow", "/etc/ssh", "/sys", "/boot"):
    said += [path] if os.path.exists(path) and os.listdir(path) != ["."] and path != "/root" else []
said += ["process " + name for name in os.listdir("/proc") if name.isdigit() and name != str(os.getpid())]
said += ["interface " + name for _, name in socket.if_nameindex() if name != "lo"]
try:
    socket.create_connection(("127.0.0.1", 22), timeout=1)
except OSError as exc:
    said += ["network"] if exc.errno != 101 else []
for path in ("/", "/usr", "/proc/sys/kernel/core_pattern", os.environ["MODEL"] if "MODEL" in os.environ else "/lib"):
    try:
        target = pathlib.Path(path)
        (target / "written" if target.is_dir() else target).write_text("x")
        said.append("wrote " + path)
    except OSError:
        pass
try:
    os.setuid(12345)
    said.append("became another user")
except OSError:
    pass
raise RuntimeError("SAID " + repr(said))
"""
    assert "SAID []" in refused(save_hostile(tmp_path / "model", code), ways=("room",))


def test_what_was_not_possible_is_said_on_the_card(tmp_path: Path, way: str) -> None:
    with isolated(save_hostile(tmp_path / "model", ""), seconds=SECONDS, memory_gb=MEMORY_GB, ways=(way,)) as model:
        said = " ".join(model.notes.warnings)
    assert ("a signing key's file too" in said) == (way == "none")
    assert ("under a user id of its own" in said) == (way == "user")


def test_a_model_cannot_change_its_own_folder_in_a_room(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    code = f"open({str(folder / 'MLmodel')!r}, 'a').write('x')"
    assert "Read-only file system" in refused(save_hostile(folder, code), ways=("room",))


# Limits


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os; os._exit(7)", "exit code 7"),
        ("import sys; sys.exit(0)", "ended before it answered"),
        ("raise KeyboardInterrupt", "ended before it answered"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        (
            "import os; [os.close(n) for n in range(256) if n != 2]",
            "ended before it answered|closed its answers|no answer",
        ),
        ("raise ValueError('\\x1b[31m' + 'red\\n' * 5000)", "ValueError"),
    ],
    ids=["_exit", "exit", "interrupt", "fault", "closes everything", "long error"],
)
def test_a_model_that_ends_its_process_could_not_be_judged(tmp_path: Path, code: str, why: str) -> None:
    import re

    message = refused(save_hostile(tmp_path / "model", code))
    assert re.search(why, message), message
    assert len(message) < 2500


def test_a_model_that_ends_its_process_when_asked_could_not_be_judged(tmp_path: Path) -> None:
    code = WHEN_ASKED.format("    import os\n    os._exit(9)")
    assert "exit code 9" in refused(save_hostile(tmp_path / "model", code))


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(600)",
        "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; \nwhile True: pass",
    ],
    ids=["busy", "asleep", "deaf"],
)
def test_a_model_that_hangs_is_stopped_within_its_seconds(tmp_path: Path, way: str, code: str) -> None:
    start = time.monotonic()
    assert "limits.seconds" in refused(save_hostile(tmp_path / "model", code), seconds=4, ways=(way,))
    assert time.monotonic() - start < 20


def test_the_seconds_are_for_all_questions_together(tmp_path: Path) -> None:
    code = WHEN_ASKED.format("    import time\n    time.sleep(6)\n    return [[0.5, 0.5]] * len(rows)")
    with isolated(save_hostile(tmp_path / "model", code), seconds=17, memory_gb=MEMORY_GB) as model:

        def three_questions() -> None:  # each fits into the seconds; a slow machine may be out of time before the third
            for _ in range(3):
                model.observe(X, Y)

        with pytest.raises(ModelUnusable, match="more than 17 seconds"):
            three_questions()


def test_time_in_which_the_model_is_not_asked_does_not_count(tmp_path: Path) -> None:
    with isolated(save_hostile(tmp_path / "model", ""), seconds=12, memory_gb=MEMORY_GB) as model:
        time.sleep(12)
        assert model.observe(X, Y).n == 240


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")
@pytest.mark.parametrize(
    "code",
    [
        "held = []\nwhile True: held.append(bytearray(1 << 24))",
        "import mmap\nheld = []\nwhile True:\n    held.append(mmap.mmap(-1, 1 << 24)); held[-1].write(b'x' * (1 << 24))",
        "import os\nwhile os.fork(): pass\nheld = bytearray(1 << 26)\nimport time; time.sleep(60)",
        "import os\nfile = open('filled', 'wb')\nwhile True: file.write(b'x' * (1 << 20))",
    ],
    ids=["private", "shared", "many processes", "files"],
)
def test_a_model_that_takes_memory_without_end_is_stopped(tmp_path: Path, way: str, code: str) -> None:
    start = time.monotonic()
    message = refused(save_hostile(tmp_path / "model", code), memory_gb=1.5, seconds=30, ways=(way,))
    assert (
        "MemoryError" in message
        or "limits.memory_gb" in message
        or "No space" in message
        or "too large" in message
        or "processes" in message
        or "Errno 12" in message
        or "Errno 11" in message
    )
    assert time.monotonic() - start < 25


# Forks, floods and nonsense


@pytest.mark.parametrize("detached", [False, True], ids=["child", "detached"])
def test_processes_that_a_model_leaves_behind_end_with_it(tmp_path: Path, way: str, detached: bool) -> None:
    code = f"""
import os, time
if os.fork() == 0:
    if {detached}:
        os.setsid()
        if os.fork():
            os._exit(0)
    time.sleep(600)
"""
    with isolated(save_hostile(tmp_path / "model", code), seconds=SECONDS, memory_gb=MEMORY_GB, ways=(way,)) as model:
        assert model.observe(X, Y).n == 240
    # the fixture looks for what is left


def test_a_fork_bomb_ends_with_its_model(tmp_path: Path) -> None:
    code = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.01)"
    assert "the model was stopped" in refused(save_hostile(tmp_path / "model", code), seconds=20, memory_gb=1)


def test_what_a_model_prints_is_no_part_of_its_answers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys, os\nprint('hello' * 10)\nos.write(1, b'x' * 100)\nsys.__stdout__.write('y')\nos.write(2, b'z')"
    folder = save_hostile(tmp_path / "model", code)
    capfd.readouterr()
    with isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        assert model.observe(X, Y).n == 240
    assert capfd.readouterr() == ("", "")


def test_a_flood_of_output_neither_blocks_a_model_nor_fills_this_process(tmp_path: Path) -> None:
    code = WHEN_ASKED.format(
        "    import os\n    for _ in range(2000): os.write(1, b'x' * 100_000)\n    return [[0.5, 0.5]] * len(rows)"
    )
    with isolated(save_hostile(tmp_path / "model", code), seconds=SECONDS, memory_gb=MEMORY_GB) as model:
        assert model.observe(X, Y).n == 240


def test_what_is_quoted_of_a_models_output_is_one_printable_line(tmp_path: Path) -> None:
    code = "import os\nos.write(2, b'before\\n\\x1b[31mlast words\\x00\\xff\\n')\nos._exit(1)"
    said = refused(save_hostile(tmp_path / "model", code))
    assert "it last said: before [31mlast words" in said


@pytest.mark.parametrize(
    "junk",
    [
        "b'\\xff' * 4096",
        "b'\\x00' * 4096",
        "b'\\x00\\x00\\x00\\x02' + b'\\xff' * 8 + b'{}'",
        "b'\\x00\\x00\\x00\\x02' + b'\\x00' * 8 + b'[]'",
        "b'\\x00\\x00\\x00\\x02' + b'\\x00' * 8 + b'{}'",
        "b'\\x00\\x00\\x00\\x0d' + b'\\x00' * 8 + b'{\"notes\": {}}' + b' '",
    ],
    ids=["ones", "zeros", "huge body", "a list", "no notes", "empty notes"],
)
def test_nonsense_on_the_pipe_could_not_be_judged(tmp_path: Path, junk: str) -> None:
    code = f"import os, time\nfor number in range(3, 64):\n    try: os.write(number, {junk})\n    except OSError: pass\ntime.sleep(60)"
    assert "no answer" in refused(save_hostile(tmp_path / "model", code), seconds=20)


def test_an_error_of_another_kind_is_still_no_more_than_an_unusable_model(tmp_path: Path) -> None:
    code = "from mlflow_privacy_gate.errors import UsageError\nraise UsageError('exit 2, please')"
    assert "exit 2, please" in refused(save_hostile(tmp_path / "model", code))


def test_a_model_that_forges_probabilities_that_are_none_could_not_be_judged(tmp_path: Path) -> None:
    code = """
import mlflow_privacy_gate.models.isolation.serving as serving
import numpy as np
plain = serving.described
def forged(arrays):
    return plain({**arrays, "probabilities": np.full_like(arrays["probabilities"], np.nan)})
serving.described = forged
"""
    folder = save_hostile(tmp_path / "model", code)
    with (
        isolated(folder, seconds=SECONDS, memory_gb=MEMORY_GB) as model,
        pytest.raises(ObservationError, match="NaN"),
    ):
        model.observe(X, Y)


def test_a_child_ends_when_its_gate_is_killed(tmp_path: Path, work: Path) -> None:
    import subprocess

    folder = save_hostile(tmp_path / "model", WHEN_ASKED.format("    while True: pass"))
    script = (
        "import sys; from pathlib import Path; from hostile_models import X, Y\n"
        "from mlflow_privacy_gate.models.isolated import isolated\n"
        f"with isolated(Path({str(folder)!r}), seconds=600, memory_gb=4) as model:\n"
        "    print('open', flush=True); model.observe(X, Y)"
    )
    environ = {**os.environ, "TMPDIR": str(work), "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environ) as gate:
        assert gate.stdout is not None
        assert gate.stdout.readline() == b"open\n"
        assert processes_that_know(str(work))
        gate.kill()
    assert gone(str(work))
    for left in work.glob("privacy-gate-model-*"):
        left.rmdir()  # empty: nobody was left to delete it


def gone(mark: str) -> bool:
    """Whether the processes that know the mark end within the time that a busy machine needs."""
    deadline = time.monotonic() + 10
    while processes_that_know(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_that_know(mark)


def test_a_folder_that_is_no_model_says_so_as_in_process(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert "no MLmodel file" in refused(tmp_path / "model")
