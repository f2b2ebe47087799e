"""Reading a file or folder of rows by its suffix, under a cap on the rows where there is one.

A text file does not say what its values were. It is therefore read in up to four ways (see :func:`_csv`), and whoever knows the
logged digest takes the one that gives it; a digest proves the values, whichever reading found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import dataset, feather
from pyarrow import json as arrow_json

from mlflow_privacy_gate.errors import PrivacyGateError, SplitsUnavailable
from mlflow_privacy_gate.splits.columns import Kind
from mlflow_privacy_gate.splits.locations import SUFFIXES, suffix_of
from mlflow_privacy_gate.splits.tables import arrow_to_pandas

Kinds: TypeAlias = Mapping[str, Kind]
_CsvWay: TypeAlias = Callable[[Path, Any, "int | None"], pd.DataFrame]
Reader: TypeAlias = Callable[[list[Path], "Kinds | None", "int | None"], Iterator[pd.DataFrame]]

# Dates are read as text first: how a date is written is not the reader's to guess.
_ARROW_TYPES: Mapping[Kind, pa.DataType] = {
    "number": pa.float64(),
    "single": pa.float64(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "datetime": pa.string(),
}


def readings(path: Path, *, kinds: Kinds | None = None, max_rows: int | None = None) -> Iterator[pd.DataFrame]:
    """Yield the rows in ``path`` (a file, or a folder of files of one suffix), once for each way its text may be read.

    ``kinds`` names the logged columns; other columns are not read. The first reading keeps every digit of every number.
    SplitsUnavailable for an unknown suffix, a damaged file, or more than ``max_rows`` rows.
    """
    files = _files(path)
    suffix = suffix_of(files[0].name)
    if suffix is None:
        known = ", ".join(sorted(SUFFIXES))
        raise SplitsUnavailable(f"{path}: no reader for this suffix; known are {known}")
    reader = _READERS[suffix.removesuffix(".gz")]
    if path.is_dir() and suffix == ".parquet":
        files = [path]
    try:
        for frame in reader(files, kinds, max_rows):
            _within(len(frame), max_rows, path)
            yield frame
    except PrivacyGateError:
        raise
    except Exception as exc:  # whatever a damaged or hostile file makes a parser raise
        raise SplitsUnavailable(f"{path}: cannot be read as {suffix}: {exc}") from exc


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
    suffixes = {suffix_of(file.name) or file.suffix for file in files}
    if len(suffixes) != 1:
        raise SplitsUnavailable(
            f"{path}: expected a folder with files of one suffix, found {sorted(suffixes) or 'none'}"
        )
    return files


def _within(rows: int, max_rows: int | None, path: Path) -> None:
    if max_rows is not None and rows > max_rows:
        raise SplitsUnavailable(
            f"{path}: holds more than {max_rows:,} rows, the most that may be read; log splits that are a random part of it"
        )


def _csv(files: list[Path], kinds: Kinds | None, max_rows: int | None) -> Iterator[pd.DataFrame]:
    """Read by the logged kinds; then as pandas does, whose last digits differ; then with words such as NA, and with nothing, as text."""
    ways: list[_CsvWay] = [_csv_by_pandas]
    if kinds is not None:
        nulls = arrow_csv.ConvertOptions().null_values
        exact = partial(_csv_by_kinds, nulls=[*nulls, "None"], quoted_nulls=True)
        literal = partial(_csv_by_kinds, nulls=[""], quoted_nulls=False)
        ways = [exact, _csv_by_pandas, literal, partial(_csv_without_gaps, literal)]
    failed: Exception | None = None
    read = 0
    for way in ways:
        try:
            frame = pd.concat([way(file, kinds, max_rows) for file in files], ignore_index=True)
        except (ValueError, pa.ArrowInvalid) as exc:
            failed = exc
            continue
        yield frame
        read += 1
    if failed is not None and not read:
        raise failed


def _csv_by_pandas(file: Path, kinds: Kinds | None, max_rows: int | None) -> pd.DataFrame:
    frame: pd.DataFrame = pd.read_csv(
        file,
        sep=_separator(file),
        nrows=None if max_rows is None else max_rows + 1,
        low_memory=False,
        dtype={name: str for name, kind in (kinds or {}).items() if kind == "text"},
        usecols=None if kinds is None else lambda name: name in kinds,
    )
    return frame


def _csv_by_kinds(
    file: Path, kinds: Kinds, max_rows: int | None, *, nulls: list[str], quoted_nulls: bool
) -> pd.DataFrame:
    convert = arrow_csv.ConvertOptions(
        column_types={name: _ARROW_TYPES[kind] for name, kind in kinds.items() if kind in _ARROW_TYPES},
        null_values=nulls,
        strings_can_be_null=True,
        quoted_strings_can_be_null=quoted_nulls,
    )
    parse = arrow_csv.ParseOptions(delimiter=_separator(file), newlines_in_values=True)
    batches, rows = [], 0
    with (
        pa.input_stream(str(file), compression="detect") as stream,
        arrow_csv.open_csv(stream, convert_options=convert, parse_options=parse) as reader,
    ):
        for batch in reader:
            batches.append(batch.select([name for name in kinds if name in batch.schema.names]))
            rows += batch.num_rows
            if max_rows is not None and rows > max_rows:
                break
    return arrow_to_pandas(pa.Table.from_batches(batches))


def _csv_without_gaps(read: _CsvWay, file: Path, kinds: Kinds, max_rows: int | None) -> pd.DataFrame:
    """Take an empty text for an empty text: pandas writes it as it writes no text at all."""
    frame = read(file, kinds, max_rows)
    filled: pd.DataFrame = frame.fillna({name: "" for name, kind in kinds.items() if kind == "text" and name in frame})
    return filled


def _separator(file: Path) -> str:
    return "\t" if suffix_of(file.name) in {".tsv", ".tsv.gz"} else ","


def _jsonl(files: list[Path], kinds: Kinds | None, _max_rows: int | None) -> Iterator[pd.DataFrame]:
    texts = [(name, pa.string()) for name, kind in (kinds or {}).items() if kind == "text"]
    options = arrow_json.ParseOptions(
        explicit_schema=pa.schema(texts) if texts else None,
        unexpected_field_behavior="infer",
    )
    tables = []
    for file in files:
        with pa.input_stream(str(file), compression="detect") as stream:
            tables.append(arrow_json.read_json(stream, parse_options=options))
    yield _chosen(pa.concat_tables(tables, promote_options="permissive"), kinds)


def _parquet(files: list[Path], kinds: Kinds | None, max_rows: int | None) -> Iterator[pd.DataFrame]:
    found = dataset.dataset(str(files[0]), format="parquet", partitioning="hive")
    _within(found.count_rows(), max_rows, files[0])
    names = None if kinds is None else [name for name in kinds if name in found.schema.names]
    yield arrow_to_pandas(found.to_table(columns=names))


def _feather(files: list[Path], kinds: Kinds | None, _max_rows: int | None) -> Iterator[pd.DataFrame]:
    yield _chosen(pa.concat_tables([feather.read_table(file) for file in files]), kinds)


def _npz(files: list[Path], kinds: Kinds | None, _max_rows: int | None) -> Iterator[pd.DataFrame]:
    """Read each one-dimensional array as the column of its name; anything else has no column names to go by."""
    frames = []
    for file in files:
        with np.load(file, allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in arrays.files if kinds is None or name in kinds}
        odd = sorted(name for name, values in columns.items() if values.ndim != 1)
        if odd:
            raise SplitsUnavailable(
                f"{file}: arrays {odd} are not one-dimensional; store one array a column, by its name"
            )
        frames.append(pd.DataFrame(columns))
    yield pd.concat(frames, ignore_index=True)


def _chosen(table: pa.Table, kinds: Kinds | None) -> pd.DataFrame:
    if kinds is not None:
        table = table.select([name for name in kinds if name in table.column_names])
    return arrow_to_pandas(table)


_READERS: Mapping[str, Reader] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".feather": _feather,
    ".npz": _npz,
}
