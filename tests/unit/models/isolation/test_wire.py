"""Promises of what goes over the pipes: round trips to the bit, and nothing taken that does not fit."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.references import Posteriors, References
from mlflow_privacy_gate.errors import ModelUnusable, ObservationError
from mlflow_privacy_gate.models.isolation.answers import (
    arrays_of_observations,
    arrays_of_references,
    observations_of,
    references_of,
)
from mlflow_privacy_gate.models.isolation.arrays import arrays_of, described
from mlflow_privacy_gate.models.isolation.frames import (
    HEAD,
    Frame,
    NoFrame,
    lengths,
    parsed_header,
    read_frame,
    write_frame,
)
from mlflow_privacy_gate.models.isolation.rows import received, sent
from mlflow_privacy_gate.models.isolation.words import last_words, one_line

Arrays = dict[str, npt.NDArray[Any]]

CLASSES = ["a", "b", "c"]
LABELS = ["a", "c", "x", "b"]
PROBABILITIES = np.array([[0.2, 0.3, 0.5], [1, 0, 0], [0.1, 0.1, 0.8], [0.25, 0.25, 0.5]])
OBSERVED = [
    Observations.from_probabilities(PROBABILITIES, LABELS, CLASSES),
    Observations.from_probabilities(
        PROBABILITIES.astype(np.float32) * 0.9995, LABELS, CLASSES
    ),  # divided by its sum once
    Observations.from_logits(np.array([[-np.inf, 0, 1.5]] * 4), LABELS, CLASSES),
    Observations.from_decision_margins(PROBABILITIES, LABELS, CLASSES),
    Observations.from_predicted_labels(["a", "b", "c", "b"], LABELS, CLASSES),
    Observations.from_predictions([1.5, -2.0], [1.0, 2.0]),
    Observations.from_log_likelihood([-1.0, -np.inf]),
]


def over_the_wire(header: dict[str, Any], arrays: Arrays) -> Frame:
    words, bodies = described(arrays)
    stream = io.BytesIO()
    write_frame(stream, {**header, "arrays": words}, bodies)
    stream.seek(0)
    frame = read_frame(stream, largest_body=1 << 20)
    assert frame is not None
    assert stream.read() == b""
    return frame


@pytest.mark.parametrize("seen", OBSERVED, ids=lambda seen: seen.basis)
def test_observations_come_out_as_they_went_in(seen: Observations) -> None:
    frame = over_the_wire({}, arrays_of_observations(seen))
    back = observations_of(seen.kind, seen.basis, arrays_of(frame), rows=seen.kept.size)
    for name, expected in vars(seen).items():
        got = getattr(back, name)
        if isinstance(expected, np.ndarray):
            assert got.dtype == expected.dtype, name
            assert got.shape == expected.shape, name
            assert got.tobytes() == np.ascontiguousarray(expected).tobytes(), name
            assert not got.flags.writeable, name
        else:
            assert got == expected, name


@pytest.mark.parametrize(
    ("name", "array", "error"),
    [
        ("kept", np.ones(3, dtype=np.bool_), NoFrame),
        ("kept", np.ones(4, dtype=np.bool_), NoFrame),
        ("kept", np.ones(4), NoFrame),
        ("true_column", np.array([0, 1, 3]), NoFrame),
        ("true_column", np.array([0, 1, -2]), NoFrame),
        ("true_column", np.array([0.0, 1.0, 2.0]), NoFrame),
        ("probabilities", np.full((3, 3), np.nan), ObservationError),
        ("probabilities", np.full((3, 3), np.inf), ObservationError),
        ("probabilities", np.full((3, 3), 0.9), ObservationError),
        ("probabilities", np.array([[1 + 1e-9, -1e-9, 0.0]] * 3), NoFrame),
        ("probabilities", np.full((3, 1), 1.0), ObservationError),
        ("probabilities", np.full((2, 3), 1 / 3), NoFrame),
        ("probabilities", np.full(3, 1 / 3), NoFrame),
        ("probabilities", np.full((3, 3), 1), NoFrame),
    ],
)
def test_answers_that_do_not_fit_are_refused(name: str, array: npt.NDArray[Any], error: type[Exception]) -> None:
    arrays = {**arrays_of_observations(OBSERVED[0]), name: array}
    with pytest.raises(error):
        observations_of("classification", "probabilities", arrays, rows=4)


@pytest.mark.parametrize(
    ("kind", "basis"),
    [
        ("classification", "guesses"),
        ("classification", None),
        ("clairvoyance", "probabilities"),
        (None, None),
        ([], {}),
    ],
)
def test_kinds_that_nobody_knows_are_refused(kind: object, basis: object) -> None:
    with pytest.raises(NoFrame):
        observations_of(kind, basis, arrays_of_observations(OBSERVED[0]), rows=4)


def made_references() -> References:
    rng = np.random.default_rng(0)
    posteriors = Posteriors(rng.random((2, 5, 3), dtype=np.float32), rng.random((2, 5)) < 0.5)
    return References(rng.normal(size=(2, 5)), rng.random((2, 5)) < 0.5, "clone", 3, posteriors, ("a note",))


def received_references(arrays: Arrays, *, origin: str = "clone", keep_posteriors: bool = True) -> References:
    return references_of(
        arrays, count=2, rows=5, seed=3, origin=origin, notes=("a note",), keep_posteriors=keep_posteriors
    )


def test_references_come_out_as_they_went_in() -> None:
    found = made_references()
    back = received_references(arrays_of(over_the_wire({}, arrays_of_references(found))))
    assert found.posteriors is not None
    assert back.posteriors is not None
    for one, other in (
        (back.scores, found.scores),
        (back.in_mask, found.in_mask),
        (back.posteriors.top, found.posteriors.top),
        (back.posteriors.correct, found.posteriors.correct),
    ):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert (back.origin, back.seed, back.notes) == (found.origin, found.seed, found.notes)


@pytest.mark.parametrize(
    ("name", "array", "error"),
    [
        ("scores", np.full((2, 5), np.nan), ObservationError),
        ("scores", np.full((2, 5), np.inf), ObservationError),
        ("scores", np.zeros((1, 5)), NoFrame),
        ("scores", np.zeros((2, 4)), NoFrame),
        ("in_mask", np.zeros((2, 5)), NoFrame),
        ("top", np.full((2, 5, 3), 2, dtype=np.float32), NoFrame),
        ("top", np.full((2, 5, 3), np.nan, dtype=np.float32), NoFrame),
        ("correct", np.zeros((2, 4), dtype=np.bool_), NoFrame),
    ],
)
def test_references_that_do_not_fit_are_refused(name: str, array: npt.NDArray[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        received_references({**arrays_of_references(made_references()), name: array})


def test_references_of_an_unknown_origin_are_refused() -> None:
    with pytest.raises(ObservationError, match="origin"):
        received_references(arrays_of_references(made_references()), origin="thin air")


# Arrays and frames


@given(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_]).flatmap(
        lambda dtype: numpy_strategies.arrays(dtype, numpy_strategies.array_shapes(max_dims=3, min_side=0))
    )
)
def test_any_array_round_trips(array: npt.NDArray[Any]) -> None:
    back = arrays_of(over_the_wire({}, {"one": array, "two": array.T}))
    for got, expected in ((back["one"], array), (back["two"], array.T)):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert got.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize(
    "words",
    [
        None,
        {},
        [1],
        [{"name": "a", "dtype": "<f8"}],
        [{"name": "a", "dtype": "|O", "shape": [1]}],
        [{"name": "a", "dtype": [], "shape": [1]}],
        [{"name": "a", "dtype": "<f8", "shape": [-1]}],
        [{"name": "a", "dtype": "<f8", "shape": [True]}],
        [{"name": "a", "dtype": "<f8", "shape": [1.0]}],
        [{"name": "a", "dtype": "<f8", "shape": [1 << 62, 1 << 62]}],
        [{"name": "a", "dtype": "<f8", "shape": [1, 1, 1, 1]}],
        [{"name": "a", "dtype": "<f8", "shape": [2]}],
        [{"name": "a", "dtype": "<f8", "shape": []}] * 2,
        [{"name": 1, "dtype": "<f8", "shape": [1]}],
        [],
    ],
)
def test_descriptions_that_do_not_fit_their_bytes_are_refused(words: object) -> None:
    with pytest.raises(NoFrame):
        arrays_of(Frame({"arrays": words}, b"\0" * 8))


def test_a_truth_value_that_is_neither_is_refused() -> None:
    with pytest.raises(NoFrame, match="truth values"):
        arrays_of(Frame({"arrays": [{"name": "kept", "dtype": "|b1", "shape": [2]}]}, b"\x01\x02"))


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "object", "complex128", "float16"])
def test_arrays_of_other_kinds_are_never_sent(dtype: str) -> None:
    with pytest.raises(NoFrame):
        described({"one": np.zeros(2, dtype=dtype)})


@pytest.mark.parametrize(
    "raw",
    [b"[]", b"1", b'"text"', b"{", b"\xff\xfe", b'{"a": NaN}', b'{"a": Infinity}', b"[" * 100_000, b"null"],
    ids=lambda raw: repr(raw[:12]),
)
def test_headers_that_are_no_json_object_are_refused(raw: bytes) -> None:
    with pytest.raises(NoFrame):
        parsed_header(raw)


@pytest.mark.parametrize(("header", "body"), [(1 << 21, 0), (0, 0), (10, 1025), ((1 << 32) - 1, (1 << 64) - 1)])
def test_lengths_past_their_bounds_are_refused_before_anything_is_read(header: int, body: int) -> None:
    with pytest.raises(NoFrame):
        lengths(HEAD.pack(header, body), largest_body=1024)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    try:
        frame = read_frame(io.BytesIO(raw), largest_body=1024)
    except NoFrame:
        return
    if frame is not None:
        json.dumps(frame.header)


# Rows


def frames() -> dict[str, pd.DataFrame]:
    index = pd.Index([7, 3, 5])
    return {
        "numbers": pd.DataFrame({"a": [1.5, np.nan, -0.0], "b": np.array([1, 2, 3], dtype="int8")}, index=index),
        "none": pd.DataFrame({"a": pd.Series(["x", None, "y"], dtype=object)}),
        "nan": pd.DataFrame({"a": pd.Series(["x", np.nan, "y"], dtype=object)}),
        "NA": pd.DataFrame({"a": pd.Series(["x", pd.NA, "y"], dtype=object)}),
        "integers and none": pd.DataFrame({"a": pd.Series([1, None, 3], dtype=object)}),
        "truths": pd.DataFrame({"a": [True, False, True], "b": pd.array([True, None, False], dtype="boolean")}),
        "categories": pd.DataFrame({"a": pd.Categorical(["x", None, "y"], ["y", "z", "x"], ordered=True)}),
        "nullable": pd.DataFrame(
            {"a": pd.array([1, None, 3], dtype="Int64"), "b": pd.array([1.5, None, 2], dtype="Float64")}
        ),
        "strings": pd.DataFrame({"a": pd.array(["x", None, "y"], dtype="string")}),
        "times": pd.DataFrame({"a": pd.to_datetime(["2026-01-01", "NaT", "2026-01-02"])}),
        "numbered": pd.DataFrame(np.eye(3)),
    }


@pytest.mark.parametrize("frame", frames().values(), ids=frames().keys())
def test_rows_arrive_as_they_were_sent(frame: pd.DataFrame) -> None:
    objects, raw = sent(frame)
    back = received(raw, objects)
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_column_type=False)
    for name in frame.columns:
        assert [type(value) for value in back[name]] == [type(value) for value in frame[name]]


@pytest.mark.parametrize(
    "column",
    [[1, "one"], [None, np.nan], [1, 2.5], [{"a": 1}, {}], [object(), object()], [True, 1]],
    ids=["mixed", "two ways of missing", "numbers", "mappings", "objects", "truth and number"],
)
def test_a_column_that_would_arrive_changed_is_refused_by_name(column: list[Any]) -> None:
    with pytest.raises(ModelUnusable, match=r"in-process"):
        sent(pd.DataFrame({"fine": [1, 2], "odd": pd.Series(column, dtype=object)}))


def test_what_is_quoted_is_one_short_printable_line() -> None:
    assert one_line("a\n\x1b[31mb\x00\u202ec", limit=50) == "a [31mb c"
    assert one_line("x" * 100, limit=10) == "xxxxxxxxx…"
    assert last_words(b"first\nlast \xff", limit=7) == "…last \ufffd"
