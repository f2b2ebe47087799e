"""A row set's digest depends on the rows' values and on nothing else: not on order, library, or the width of a type."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import struct
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence import rowset
from mlflow_privacy_gate.evidence.rowset import rowset_digest

MASK = 2**64 - 1
NAN = struct.pack("<Q", 0x7FF8000000000000)
TIME_NULL = struct.pack("<q", -(2**63))
UTC = dt.timezone.utc


def number(value: float | None) -> bytes:
    return NAN if value is None or value != value else struct.pack("<d", value + 0.0)


def text(value: str | None) -> bytes:
    return bytes(32) if value is None else hashlib.sha256(value.encode()).digest()


def time(nanoseconds: int | None) -> bytes:
    return TIME_NULL if nanoseconds is None else struct.pack("<q", nanoseconds)


def by_the_book(columns: dict[str, tuple[str, list[bytes]]], rows: int) -> str:
    """The digest as the module's docstring says it, byte by byte, in plain Python."""
    ordered = sorted(columns.items(), key=lambda column: column[0].encode())
    buckets: list[list[tuple[int, bytes]]] = [[] for _ in range(256)]
    for place in range(rows):
        cells = [cells[place] for _, (_, cells) in ordered]
        key = 0
        for cell in cells:
            if cell:
                key = (key ^ int.from_bytes(cell[:8], "little")) * 0x9E3779B97F4A7C15 & MASK
                key ^= key >> 32
        buckets[key >> 56].append((key, b"".join(cells)))
    u64 = struct.Struct("<Q").pack
    digest = hashlib.sha256(b"rowset-sha256/v1\n" + u64(rows) + u64(len(ordered)))
    for name, (kind, _) in ordered:
        for part in (name.encode(), kind.encode()):
            digest.update(u64(len(part)) + part)
    for bucket in buckets:
        content = b"".join(row for _, row in sorted(bucket))
        digest.update(u64(len(bucket)) + hashlib.sha256(content).digest())
    return f"rowset-sha256/v1:{digest.hexdigest()}"


def test_the_digest_is_the_documented_one() -> None:
    frame = pd.DataFrame(
        {
            "age": [41, 7, 41, 0],
            "bmi": [-0.0, np.nan, 0.1, np.inf],
            "smoker": [True, False, True, True],
            "när": np.array(["2026-01-31", "NaT", "1969-12-31T23:59:59.999999999", "2000-01-01"], dtype="M8[ns]"),
            "site": ["north", "söder", None, ""],
            "none": [None] * 4,
        }
    )
    expected = by_the_book(
        {
            "age": ("number", [number(v) for v in (41, 7, 41, 0)]),
            "bmi": ("number", [number(v) for v in (0.0, None, 0.1, np.inf)]),
            "smoker": ("boolean", [struct.pack("<Q", v) for v in (1, 0, 1, 1)]),
            "när": ("datetime", [time(v) for v in (1769817600 * 10**9, None, -1, 946684800 * 10**9)]),
            "site": ("text", [text(v) for v in ("north", "söder", None, "")]),
            "none": ("null", [b""] * 4),
        },
        rows=4,
    )
    assert rowset_digest(frame) == expected


@given(st.lists(st.tuples(st.floats(), st.integers(-(2**53), 2**53), st.none() | st.text(max_size=5)), max_size=40))
def test_any_small_table_has_the_documented_digest(rows: list[tuple[float, int, str | None]]) -> None:
    floats, integers, texts = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    columns = {
        "f": ("number", [number(v) for v in floats]),
        "i": ("number", [number(float(v)) for v in integers]),
        "t": ("text", [text(v) for v in texts]),
    }
    nothing = {"f": all(v != v for v in floats), "i": not rows, "t": all(v is None for v in texts)}
    columns |= {name: ("null", [b""] * len(rows)) for name, empty in nothing.items() if empty}
    frame = pd.DataFrame({"f": np.array(floats, dtype=float), "i": np.array(integers, dtype=np.int64), "t": texts})
    assert rowset_digest(frame) == by_the_book(columns, len(rows))


def test_digests_written_down_once_stay_as_they_are() -> None:
    """Frozen: evidence names data by these for years."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.integers(0, 1000, (5000, 6)) / 8).assign(site=[f"site {i % 17}" for i in range(5000)])
    assert rowset_digest(frame) == "rowset-sha256/v1:87d60f13bbfa47e12a16b5cb23e463fb783630c6a9afcf827185518390f8b20b"
    assert (
        rowset_digest(np.zeros((0, 2)))
        == "rowset-sha256/v1:0395a797d902ce804812eae8d6a5879a4d2bad78984f0ebdae2d613e9044ae5b"
    )


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 3000
    rows: pd.DataFrame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "small": rng.normal(size=n).astype(np.float32),
            "count": rng.integers(-5, 5, n),
            "flag": rng.random(n) < 0.5,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**9, n), unit="s"),
            "site": rng.choice(["a", "b", "ö"], n),
        }
    )
    return rows


def test_order_of_rows_and_columns_and_the_index_do_not_matter(frame: pd.DataFrame) -> None:
    shuffled = frame.sample(frac=1, random_state=3)[list(reversed(frame.columns))]
    assert rowset_digest(shuffled) == rowset_digest(frame)


def test_pandas_arrow_and_numpy_agree(frame: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    halves = pa.concat_tables([table.slice(1000), table.slice(0, 1000)])
    digest = rowset_digest(frame)
    assert rowset_digest(table) == rowset_digest(halves) == digest
    assert rowset_digest(table.combine_chunks().to_batches()[0]) == digest
    assert rowset_digest(frame.convert_dtypes()) == digest
    assert rowset_digest(frame.convert_dtypes(dtype_backend="pyarrow")) == digest
    assert rowset_digest(frame.astype(object)) == digest
    assert rowset_digest(frame.to_records(index=False)) == digest
    numbers = frame[["x", "count"]].set_axis(["0", "1"], axis=1)
    assert rowset_digest(numbers) == rowset_digest(numbers.to_numpy()) == rowset_digest(np.asfortranarray(numbers))
    assert rowset_digest(frame["x"].to_numpy()) == rowset_digest(pd.DataFrame({0: frame["x"]}))


def test_polars_agrees(frame: pd.DataFrame) -> None:
    pl = pytest.importorskip("polars")
    texts: Any = [None, "a", "b"] * 1000
    table = pl.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)).with_columns(
        pl.Series("group", texts, dtype=pl.Categorical), pl.Series("text", texts)
    )
    assert rowset_digest(table) == rowset_digest(frame.assign(group=pd.Categorical(texts), text=texts))


def test_a_round_trip_through_parquet_keeps_the_digest(frame: pd.DataFrame, tmp_path: Any) -> None:
    frame["group"] = pd.Categorical(frame["site"])
    frame.to_parquet(tmp_path / "rows.parquet")
    assert rowset_digest(pd.read_parquet(tmp_path / "rows.parquet")) == rowset_digest(frame)


N = pd.NA
SAME = {
    "integers of any width": [
        np.array([1, 2, 3], dtype=kind) for kind in ("i1", "i8", "u2", "f4", "f8", "f2", ">i4", ">f8")
    ],
    "integers and floats": [
        pd.DataFrame({0: [1, 2]}),
        pd.DataFrame({0: [1.0, 2.0]}),
        pd.DataFrame({0: [1, 2]}, dtype=object),
    ],
    "decimals that are whole": [pd.DataFrame({0: [1, 2]}), pd.DataFrame({0: [Decimal("1.00"), Decimal(2)]})],
    "minus zero": [np.array([0.0, 1.0]), np.array([-0.0, 1.0])],
    "every NaN": [
        np.array([0x7FF8000000000000, 0], dtype="u8").view("f8"),
        np.array([0xFFF8000000000123, 0], dtype="u8").view("f8"),
    ],
    "every null of numbers": [
        pd.DataFrame({0: [1.0, np.nan]}),
        pd.DataFrame({0: [1, None]}, dtype="Int64"),
        pd.DataFrame({0: [1, N]}, dtype=object),
        pd.DataFrame({0: [1, pd.NaT]}, dtype=object),
        pd.DataFrame({0: [Decimal(1), Decimal("NaN")]}),
        pa.table({"0": pa.array([1, None], pa.uint8())}),
        pa.table({"0": pa.array([1, None], pa.float16())}),
        pd.DataFrame({0: pd.arrays.SparseArray([1.0, np.nan])}),
        np.ma.MaskedArray([1, 2], mask=[False, True]),
    ],
    "every null of text": [
        pd.DataFrame({0: ["a", null]}, dtype=kind) for null in (None, np.nan, N) for kind in (object, "string", "str")
    ],
    "columns of nulls": [
        pd.DataFrame({0: [np.nan, np.nan]}),
        pd.DataFrame({0: [None, None]}),
        pd.DataFrame({0: [None, None]}, dtype="boolean"),
        pd.DataFrame({0: np.array(["NaT", "NaT"], dtype="M8[ns]")}),
        pd.DataFrame({0: pd.Categorical([None, None], categories=["a"])}),
        pa.table({"0": pa.nulls(2)}),
    ],
    "booleans": [
        pd.DataFrame({0: [True, None]}),
        pd.DataFrame({0: [True, None]}, dtype="boolean"),
        pa.table({"0": [True, None]}),
    ],
    "categories": [
        pd.DataFrame({0: ["b", "a", None]}),
        pd.DataFrame({0: pd.Categorical(["b", "a", None])}),
        pd.DataFrame({0: pd.Categorical(["b", "a", None], categories=["z", "b", "a"], ordered=True)}),
        pa.table({"0": pa.DictionaryArray.from_arrays([0, 1, 2], ["b", "a", None])}),
        pa.table(
            {"0": pa.chunked_array([pa.array(["b"]).dictionary_encode(), pa.array(["a", None]).dictionary_encode()])}
        ),
        pa.table({"0": pa.array(["b", "a", None], pa.large_string())}),
        pa.table({"0": pa.array(["b", "a", None], pa.string_view())}),
    ],
    "categories of numbers": [pd.DataFrame({0: [3, 1, 3]}), pd.DataFrame({0: pd.Categorical([3, 1, 3])})],
    "text in numpy": [np.array(["a", "bc"]), np.array(["a", "bc"], dtype=object), pd.DataFrame({0: ["bc", "a"]})],
    "bytes": [np.array([b"a", b"bc"]), pa.table({"0": [b"a", b"bc"]}), pd.DataFrame({0: [bytearray(b"a"), b"bc"]})],
    "times of any unit": [
        pd.DataFrame({0: np.array(["2026-01-31"], dtype=f"M8[{unit}]")}) for unit in ("s", "ms", "us", "ns")
    ]
    + [
        pd.DataFrame({0: [dt.date(2026, 1, 31)]}),
        pd.DataFrame({0: [dt.datetime(2026, 1, 31)]}, dtype=object),
        pd.DataFrame({0: [np.datetime64("2026-01-31")]}, dtype=object),
        pa.table({"0": pa.array([dt.date(2026, 1, 31)], pa.date64())}),
        np.array(["2026-01-31"], dtype="M8[D]"),
    ],
    "instants in any zone": [
        pd.DataFrame({0: pd.to_datetime(["2026-01-31 12:00+00:00"])}),
        pd.DataFrame({0: pd.to_datetime(["2026-01-31 12:00+00:00"]).tz_convert("Europe/Stockholm")}),
        pd.DataFrame({0: [dt.datetime(2026, 1, 31, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))]}, dtype=object),
    ],
    "durations": [
        pd.DataFrame({0: pd.to_timedelta([1, 2], unit="s")}),
        pd.DataFrame({0: [dt.timedelta(seconds=1), dt.timedelta(seconds=2)]}, dtype=object),
        np.array([1000, 2000], dtype="m8[ms]"),
    ],
    "times of day": [
        pa.table({"0": pa.array([1, 2], pa.time32("s"))}),
        pa.table({"0": pa.array([10**9, 2 * 10**9], pa.time64("ns"))}),
        pd.DataFrame({0: [dt.time(0, 0, 1), dt.time(0, 0, 2)]}),
    ],
    "integers past 2^53": [
        np.array([2**60 + 1, 5]),
        pd.DataFrame({0: [2**60 + 1, 5]}, dtype=object),
        pa.table({"0": pa.array([2**60 + 1, 5], pa.uint64())}),
        pd.DataFrame({0: [Decimal(2**60 + 1), Decimal("5.0")]}),
    ],
    "large integers that a float holds": [np.array([2**60, -(2**63)]), np.array([2.0**60, -(2.0**63)])],
    "times that ns cannot hold": [
        pd.DataFrame({0: np.array(["9999-12-31", "NaT"], dtype="M8[s]")}),
        pd.DataFrame({0: [dt.datetime(9999, 12, 31), None]}, dtype=object),
    ],
    "lists": [
        pd.DataFrame({0: [[1, 2], [None]]}),
        pd.DataFrame({0: [np.array([1.0, 2.0]), (np.nan,)]}),
        pa.table({"0": [[1, 2], [None]]}),
    ],
    "structs": [pd.DataFrame({0: [{"a": 1, "b": "x"}]}), pa.table({"0": [{"b": "x", "a": 1.0}]})],
}


@pytest.mark.parametrize("tables", SAME.values(), ids=SAME)
def test_equal_values_have_equal_digests(tables: list[Any]) -> None:
    assert len({rowset_digest(table) for table in tables}) == 1


DIFFERENT = [
    np.array([1.0, 2.0]),
    np.array([1.0, 2.0, 2.0]),
    np.array([1.0, 1.0, 2.0]),
    np.array([1.0, np.nan]),
    np.array([1.0, np.nextafter(2.0, 3)]),
    np.array([[1.0], [2.0]]) * [[1, 1]],
    np.array(["1.0", "2.0"]),
    np.array(["1", "2"]),
    np.array([b"1", b"2"]),
    np.array([True, False]),
    np.array([2**53, 2**53 + 1]),
    np.array([2**53, 2**53 + 2]),
    np.array([1, 2], dtype="m8[ns]"),
    np.array([1, 2], dtype="M8[ns]"),
    pa.table({"0": pa.array([1, 2], pa.timestamp("ns", "UTC"))}),
    pa.table({"0": pa.array([1, 2], pa.time64("ns"))}),
    pa.table({"1": [1.0, 2.0]}),
    pd.DataFrame({0: [1, "2"]}),
    pd.DataFrame({0: ["1", 2]}),
    pd.DataFrame({0: [1, True]}),
    pd.DataFrame({0: [[1], [2]]}),
    pd.DataFrame({0: [[[1]], [[2]]]}),
    pd.DataFrame({0: [{"a": 1}, {"a": 2}]}),
    pd.DataFrame({0: [Decimal("1.1"), Decimal(2)]}),
    pd.DataFrame({0: [1.1, 2.0]}),
    pd.DataFrame({0: [None, None]}),
    pd.DataFrame({0: ["", None]}),
    pd.DataFrame({0: ["", ""]}),
    np.zeros((0, 1)),
    np.zeros((0, 2)),
]


def test_different_values_have_different_digests() -> None:
    digests = [rowset_digest(table) for table in DIFFERENT]
    assert len(set(digests)) == len(digests)


def test_values_cannot_move_between_columns_or_rows() -> None:
    tables = [
        pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"]}),
        pd.DataFrame({"a": ["x", "y"], "b": ["v", "u"]}),
        pd.DataFrame({"a": ["u", "v"], "b": ["x", "y"]}),
    ]
    assert len({rowset_digest(table) for table in tables}) == 3


def test_rows_that_collide_on_the_key_are_still_told_apart_and_ordered() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, (400, 3)).astype(float)
    # The last column undoes the others' part in the key: all rows collide.
    first = rows[:, 0].copy().view("u8")
    key = first * np.uint64(0x9E3779B97F4A7C15)
    key ^= key >> np.uint64(32)
    collided = np.column_stack([rows[:, 0], key.view("f8")])
    finite = np.isfinite(collided[:, 1])
    collided = collided[finite]
    columns = {str(i): ("number", [number(v) for v in collided[:, i]]) for i in range(2)}
    assert len({tuple(row) for row in collided.tolist()}) > 1
    expected = by_the_book(columns, len(collided))
    assert rowset_digest(collided) == rowset_digest(collided[rng.permutation(len(collided))]) == expected


def test_blocks_smaller_than_a_bucket_give_the_same_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).normal(size=(3000, 3))
    whole = rowset_digest(rows)
    monkeypatch.setattr(rowset, "_GATHER_BYTES", 100)
    monkeypatch.setattr(rowset, "_KEY_ROWS", 7)
    assert rowset_digest(rows) == whole


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, None]), st.sampled_from(["a", None, "b"])), max_size=12), st.randoms()
)
def test_any_permutation_has_the_same_digest_and_any_lost_row_another(
    rows: list[tuple[float | None, str | None]], rand: random.Random
) -> None:
    def digest(some: list[tuple[float | None, str | None]]) -> str:
        return rowset_digest(pd.DataFrame(some, columns=["x", "s"]).astype({"x": float, "s": object}))

    permuted = rand.sample(rows, len(rows))
    assert digest(permuted) == digest(rows)
    if rows:
        assert digest(permuted[1:]) != digest(rows)


def test_the_callers_table_is_left_alone(frame: pd.DataFrame) -> None:
    array = np.array([[-0.0, 0xFFF8000000000123], [1.0, 2.0]])
    before, copied = array.tobytes(), frame.copy()
    rowset_digest(array)
    rowset_digest(frame)
    assert array.tobytes() == before
    pd.testing.assert_frame_equal(frame, copied)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([[1.0]], "builtins.list"),
        (pd.Series([1.0]), "Series"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.float64(1.0), "float64"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' stands twice"),
        (pd.DataFrame([[1, 2]], columns=[0, "0"]), "'0' stands twice"),
        (pd.DataFrame({"z": [1j]}), "column 'z': values of type builtins.complex"),
        (pd.DataFrame({"p": pd.period_range("2026", periods=2, freq="M")}), "column 'p'"),
        (pd.DataFrame({"o": [object()]}), "builtins.object"),
        (pd.DataFrame({"i": [pd.Interval(0, 1), None]}, dtype=object), "Interval"),
        (np.array([1], dtype=np.longdouble), "longdouble"),
        (pd.DataFrame({"o": pd.Series([np.datetime64("2026-01", "M"), "x"], dtype=object)}), "units of 'M'"),
        (pa.table({"m": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "column 'm'"),
    ],
)
def test_what_has_no_bytes_is_refused_by_name(table: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        rowset_digest(table)


def test_believing_evidence_imports_no_data_library() -> None:
    script = (
        "import sys, mlflow_privacy_gate.evidence.verification, mlflow_privacy_gate.evidence.signing, "
        "mlflow_privacy_gate.evidence.model_digest\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'scipy', 'sklearn', 'mlflow', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_numpy_table_needs_neither_pandas_nor_arrow() -> None:
    script = (
        "import sys, numpy, mlflow_privacy_gate.evidence.rowset as r\n"
        "r.rowset_digest(numpy.zeros((3, 2)))\n"
        "sys.exit(1 if {'pandas', 'pyarrow', 'polars'} & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
