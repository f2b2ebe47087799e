"""Promises on reading rows back: by suffix, whole, under a cap, and with the very values that were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.splits.columns import column_kinds, conform
from mlflow_privacy_gate.splits.readers import readings

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "x": [0.1 + 0.2, 1e-17, 3.0, 123456.7891234567],
        "n": [1, -2, 2**53 + 1, 4],
        "flag": [True, False, True, True],
        "word": ["001", "NA", "a,b", 'q"uote'],
        "when": pd.to_datetime(
            ["2024-01-01", "2024-01-02 03:04:05.678901", "1999-12-31", "2024-02-29"], format="ISO8601"
        ),
        "kind": pd.Categorical(["a", "b", "a", "b"]),
    }
)
WRITERS: dict[str, Any] = {
    "rows.csv": lambda frame, path: frame.to_csv(path, index=False),
    "rows.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "rows.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "with_index.csv": lambda frame, path: frame.to_csv(path),
    "rows.parquet": lambda frame, path: frame.to_parquet(path),
    "rows.jsonl": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, date_format="iso", date_unit="ns", double_precision=15
    ),
    "rows.jsonl.gz": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, date_format="iso", date_unit="ns"
    ),
    "rows.feather": lambda frame, path: pyarrow.feather.write_feather(pa.Table.from_pandas(frame), path),
}


def digests(path: Path, logged: pd.DataFrame) -> list[str]:
    kinds = column_kinds(logged)
    return [rowset_digest(conform(frame, kinds)) for frame in readings(path, kinds=kinds, max_rows=100)]


@pytest.mark.parametrize("name", [name for name in WRITERS if "jsonl" not in name])
def test_a_table_read_back_from_any_kind_of_file_has_the_digest_it_was_logged_with(tmp_path: Path, name: str) -> None:
    WRITERS[name](FRAME, tmp_path / name)
    assert rowset_digest(FRAME) in digests(tmp_path / name, FRAME)


N = 40
HARD: dict[str, Any] = {
    "single precision": RNG.normal(size=N).astype("float32"),
    "every magnitude": RNG.normal(size=N) * 10.0 ** RNG.integers(-300, 300, N),
    "infinite, signed zero, NaN": RNG.choice([np.inf, -np.inf, 0.0, -0.0, np.nan], N),
    "unsigned": RNG.integers(0, 2**62, N).astype("uint64") * 3,
    "large": RNG.integers(-(2**62), 2**62, N),
    "large with gaps": pd.array(RNG.choice(np.array([1, None, 2**60 + 1], dtype=object), N), dtype="Int64"),
    "flags with gaps": pd.array(RNG.choice(np.array([True, False, None], dtype=object), N), dtype="boolean"),
    "text like values": RNG.choice(["001", "1e5", "nan", "None", "TRUE", "-"], N),
    "empty text": RNG.choice(["", "a", "NA"], N),
    "text with gaps": RNG.choice(np.array(["a", None, "b\nc", " lead", 'q"u', "é☃"], dtype=object), N),
    "coded categories": pd.Categorical(RNG.integers(0, 3, N)),
    "nanoseconds": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 10**15, N), unit="ns"),
    "summer time": pd.Timestamp("2020-01-01", tz="Europe/Stockholm")
    + pd.to_timedelta(RNG.integers(0, 10**7, N), unit="s"),
    "dates with gaps": pd.Series(pd.date_range("2020-01-01", periods=N)).where(RNG.random(N) < 0.7),
    "nothing": np.full(N, np.nan),
}


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("values", HARD.values(), ids=HARD)
def test_values_that_files_like_to_change_come_back_as_they_were(tmp_path: Path, values: Any, name: str) -> None:
    frame = pd.DataFrame({"v": values, "row": range(N)})
    WRITERS[name](frame, tmp_path / name)
    assert rowset_digest(frame) in digests(tmp_path / name, frame)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_json_lines_read_back_have_the_digest_where_json_kept_the_digits(tmp_path: Path, name: str) -> None:
    frame = FRAME.assign(x=[0.5, 0.25, 3.0, 1.125])
    WRITERS[name](frame, tmp_path / name)
    assert rowset_digest(frame) in digests(tmp_path / name, frame)


def test_rows_logged_after_pandas_read_its_file_with_its_own_defaults_are_recognised(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = tmp_path / "rows.csv"
    pd.DataFrame({"x": rng.normal(size=5000) * 1e-5, "word": ["NA", "b"] * 2500}).to_csv(file, index=False)
    frame = pd.read_csv(file)
    kinds = column_kinds(frame)
    found = [rowset_digest(conform(one, kinds)) for one in readings(file, kinds=kinds, max_rows=10_000)]
    assert rowset_digest(frame) in found


def test_whole_numbers_with_gaps_keep_every_digit(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": pd.array([2**60 + 1, None, 3], dtype="Int64"), "m": [1.0, None, 3.0]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert rowset_digest(frame) == digests(tmp_path / "rows.csv", frame)[0]


def test_a_partitioned_folder_and_a_folder_of_parts_are_one_table(tmp_path: Path) -> None:
    frame = FRAME.drop(columns=["kind", "when"]).assign(site=["a", "b", "a", "b"])
    frame.to_parquet(tmp_path / "parts", partition_cols=["site"])
    assert rowset_digest(frame) == digests(tmp_path / "parts", frame)[0]
    (tmp_path / "csvs").mkdir()
    frame.iloc[:1].to_csv(tmp_path / "csvs" / "1.csv", index=False)
    frame.iloc[1:].to_csv(tmp_path / "csvs" / "2.csv", index=False)
    (tmp_path / "csvs" / "_SUCCESS").touch()
    assert rowset_digest(frame) in digests(tmp_path / "csvs", frame)


def test_one_dimensional_npz_arrays_are_columns_and_others_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.5, 2.5], "y": ["a", "b"]})
    np.savez(tmp_path / "rows.npz", x=np.array([1.5, 2.5]), y=np.array(["a", "b"]))
    assert rowset_digest(frame) == digests(tmp_path / "rows.npz", frame)[0]
    np.savez(tmp_path / "flat.npz", X=np.zeros((2, 3)))
    with pytest.raises(SplitsUnavailable, match=r"\['X'\] are not one-dimensional"):
        next(readings(tmp_path / "flat.npz", max_rows=10))


def test_pickled_arrays_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", x=np.array([object()]))
    with pytest.raises(SplitsUnavailable, match="cannot be read"):
        next(readings(tmp_path / "rows.npz", max_rows=10))


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.pkl"])
def test_an_unknown_suffix_lists_what_is_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"?")
    with pytest.raises(SplitsUnavailable, match=r"known are \.csv, \.csv\.gz, .*\.parquet"):
        next(readings(tmp_path / name, max_rows=10))


def test_a_folder_of_mixed_or_no_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SplitsUnavailable, match="found none"):
        next(readings(tmp_path, max_rows=10))
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.parquet").touch()
    with pytest.raises(SplitsUnavailable, match=r"one suffix, found \['.csv', '.parquet'\]"):
        next(readings(tmp_path, max_rows=10))


@pytest.mark.parametrize("name", WRITERS)
def test_more_rows_than_may_be_read_are_refused_with_the_limit(tmp_path: Path, name: str) -> None:
    WRITERS[name](FRAME, tmp_path / name)
    assert len(next(readings(tmp_path / name, max_rows=4))) == len(next(readings(tmp_path / name))) == 4
    with pytest.raises(SplitsUnavailable, match="more than 3 rows"):
        next(readings(tmp_path / name, max_rows=3))


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet", "rows.feather", "rows.npz", "rows.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe{[damaged"])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SplitsUnavailable, match=name.replace(".", r"\.")):
        rowset_digest(conform(next(readings(tmp_path / name, kinds={"x": "number"}, max_rows=10)), {"x": "number"}))
