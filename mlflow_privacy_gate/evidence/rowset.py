"""Row sets: a digest of a table that no order of rows or columns changes, and the rows that two tables share.

``rowset-sha256/v1``, byte by byte. All integers are unsigned, little-endian, 64 bits.

1. Columns are sorted by the UTF-8 bytes of their names. Each has one kind and each cell a fixed width
   (:mod:`mlflow_privacy_gate.evidence.cells`); a row is its cells, one after another.
2. Each row has a key, which only orders: with ``w`` the first 8 bytes of each cell as an integer (a null column has none),
   start at 0 and for each column ``key = (key XOR w) * 0x9E3779B97F4A7C15 mod 2^64``, then ``key = key XOR (key >> 32)``.
3. Rows are sorted by key, then by their bytes. Equal rows all stay: a row set counts duplicates.
4. Bucket b (0 to 255) holds the rows whose key's top 8 bits are b; its hash is the sha256 of its rows.
5. The digest is the sha256 of: the 17 bytes ``rowset-sha256/v1\\n``; number of rows; number of columns; for each column the length of
   its name in bytes, the name, the length of its kind, the kind; then for each bucket its number of rows and its 32-byte hash.

Security rests on sha256 alone: kinds give the widths, widths split a bucket's bytes into rows in one way. Keys are no hash; rows made
to collide on them cost time only. Tables in parts have the digest of the whole: give each column the kind that joins the parts' kinds,
sort each bucket over all parts, hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.cells import Cells, Words, as_kind, join_kinds, read_cells, width
from mlflow_privacy_gate.evidence.tables import Table, read_table

SCHEME = "rowset-sha256/v1"
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_BUCKETS = 256
_KEY_ROWS = 8_192  # a block's keys and cells stay in the processor's cache
_GATHER_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows that stand in both tables, compared by their bytes.

    ``member_order`` and ``non_member_order``: int64, that side's row numbers in an order that comes from the rows' content alone (of
    both sides): tables of the same rows give the same rows in it, equal rows beside each other.
    ``member_mask`` and ``non_member_mask``: bool, one per row of that side, True for a row that also stands on the other side (both sides'
    rows are to be dropped). ``count``: rows to drop on the side that loses more. ``expected``: how many that side would lose if both
    were drawn at random from one source, judged by the duplicates within each side.
    """

    member_mask: NDArray[np.bool_]
    non_member_mask: NDArray[np.bool_]
    member_order: NDArray[np.int64]
    non_member_order: NDArray[np.int64]
    count: int
    expected: float


def rowset_digest(table: Any) -> str:
    """Return ``rowset-sha256/v1:<64 hex digits>`` of a table's rows, whatever their order, their columns' order, or the library.

    ``table`` is a pandas or polars DataFrame, an Arrow table, or a numpy array. A number is the same in an integer and in a float
    column; nulls are one null. UsageError for other tables, two columns of one name, and types that have no cells.
    """
    content = read_table(table)
    cells = [read_cells(name, column) for name, column in content.columns.items()]
    rows = _Rows([_Part(content.rows, cells)])
    ordered = _ordered(rows)
    digest = hashlib.sha256(f"{SCHEME}\n".encode("ascii"))
    digest.update(_header(content, cells))
    edges = np.searchsorted(ordered.keys, np.arange(1, _BUCKETS, dtype=np.uint64) << np.uint64(56))
    bounds = [0, *edges.tolist(), content.rows]
    for bucket, bucket_hash in enumerate(_bucket_hashes(rows, ordered.order, bounds)):
        digest.update((bounds[bucket + 1] - bounds[bucket]).to_bytes(8, "little") + bucket_hash)
    return f"{SCHEME}:{digest.hexdigest()}"


def shared_rows(members: Any, non_members: Any, *, columns: Sequence[str] | None = None) -> SharedRows:
    """Find the rows that stand on both sides, over all rows, equal in every column (or in ``columns``).

    Both are tables as in :func:`rowset_digest` with the same columns. ``expected`` compares like with like: the chance that a row has a
    twin among k fresh rows of its source is read off the duplicates within a side of at least k rows (the smaller of the two where
    both sides are large enough, so that duplicates added to one side excuse nothing). UsageError as :func:`rowset_digest`,
    and where the columns differ.
    """
    tables = [read_table(members), read_table(non_members)]
    if columns is not None:
        tables = [table.select(columns) for table in tables]
    rows = _Rows(_same_kinds(tables))
    n_members, n_non_members = tables[0].rows, tables[1].rows
    shared = np.zeros(n_members + n_non_members, dtype=np.bool_)
    groups = _Groups.of(rows, n_members)
    shared[groups.order] = np.repeat(
        (groups.members > 0) & (groups.non_members > 0), groups.members + groups.non_members
    )
    member_mask, non_member_mask = shared[:n_members], shared[n_members:]
    lost = (int(member_mask.sum()), int(non_member_mask.sum()))
    expected = (
        n_members * _twin_chance(n_non_members, groups.non_members, groups.members),
        n_non_members * _twin_chance(n_members, groups.members, groups.non_members),
    )
    worse = 0 if lost[0] >= lost[1] else 1
    is_member = groups.order < n_members
    orders = groups.order[is_member], groups.order[~is_member] - n_members
    return SharedRows(member_mask, non_member_mask, *orders, lost[worse], expected[worse])


@dataclass(frozen=True)
class _Part:
    rows: int
    cells: Sequence[Cells]


class _Rows:
    """The rows of one or more tables of the same kinds, numbered through, as words."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(part.rows for part in parts)])
        self.count = int(self._starts[-1])
        self.width = sum(width(cells.kind) for cells in parts[0].cells)

    def keys(self) -> Words:
        """Return every row's key, (count,) uint64."""
        keys = np.zeros(self.count, dtype=np.uint64)
        for part, offset in zip(self._parts, self._starts[:-1].tolist(), strict=True):
            stated = [cells for cells in part.cells if width(cells.kind)]
            for start in range(0, part.rows, _KEY_ROWS):
                stop = min(start + _KEY_ROWS, part.rows)
                key = keys[offset + start : offset + stop]
                for cells in stated:
                    key ^= cells.words(slice(start, stop))[:, 0]
                    key *= _MULTIPLIER
                    key ^= key >> _HALF
        return keys

    def gather(self, numbers: NDArray[np.int64]) -> Words:
        """Return those rows, (len(numbers), width) little-endian words."""
        if len(self._parts) == 1:
            return self._gather(self._parts[0], numbers)
        gathered = np.empty((len(numbers), self.width), dtype="<u8")
        for part, offset in zip(self._parts, self._starts[:-1].tolist(), strict=True):
            inside = (numbers >= offset) & (numbers < offset + part.rows)
            gathered[inside] = self._gather(part, numbers[inside] - offset)
        return gathered

    def blocks(self, count: int) -> Iterator[slice]:
        """Give slices over ``count`` rows, each of about a megabyte of words."""
        step = max(1, _GATHER_BYTES // max(8, self.width * 8))
        return (slice(start, min(start + step, count)) for start in range(0, count, step))

    def _gather(self, part: _Part, numbers: NDArray[np.int64]) -> Words:
        gathered = np.empty((len(numbers), self.width), dtype="<u8")
        column = 0
        for cells in part.cells:
            wide = width(cells.kind)
            if wide:
                gathered[:, column : column + wide] = cells.words(numbers)
            column += wide
        return gathered


@dataclass(frozen=True, eq=False)
class _Ordered:
    """Row numbers sorted by (key, bytes), the sorted keys, and whether each row differs from the one before it."""

    order: NDArray[np.int64]
    keys: Words
    first: NDArray[np.bool_]


def _ordered(rows: _Rows) -> _Ordered:
    keys = rows.keys()
    order = np.argsort(keys)
    keys = keys[order]
    first = np.ones(rows.count, dtype=np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    repeated = np.flatnonzero(~first)
    differ = [_differ(rows, order, repeated[block]) for block in rows.blocks(len(repeated))]
    if differ:
        _sort_collided(rows, order, keys, first, repeated[np.concatenate(differ)])
    return _Ordered(order, keys, first)


def _differ(rows: _Rows, order: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the rows at these places differ from the ones just before, which have the same key."""
    differ: NDArray[np.bool_] = (rows.gather(order[places]) != rows.gather(order[places - 1])).any(axis=1)
    return differ


def _sort_collided(
    rows: _Rows, order: NDArray[np.int64], keys: Words, first: NDArray[np.bool_], collided: NDArray[np.int64]
) -> None:
    """Sort, in place, the rows of each key under which different rows met by their bytes, and mark where they differ."""
    for key in np.unique(keys[collided]):
        start, stop = np.searchsorted(keys, key), np.searchsorted(keys, key, side="right")
        words = rows.gather(order[start:stop])
        # Bytes compare as big-endian integers do; lexsort takes its first key last.
        by_bytes = np.lexsort(words.byteswap().T[::-1])
        order[start:stop] = order[start:stop][by_bytes]
        words = words[by_bytes]
        first[start + 1 : stop] = (words[1:] != words[:-1]).any(axis=1)


def _bucket_hashes(rows: _Rows, order: NDArray[np.int64], bounds: Sequence[int]) -> Iterator[bytes]:
    buckets = [hashlib.sha256() for _ in range(_BUCKETS)]
    bucket = 0
    for block in rows.blocks(rows.count):
        content = rows.gather(order[block])
        while bucket < _BUCKETS:
            start, stop = max(bounds[bucket], block.start), min(bounds[bucket + 1], block.stop)
            buckets[bucket].update(content[start - block.start : stop - block.start].data)
            if bounds[bucket + 1] > block.stop:
                break  # the next block goes on with this bucket
            bucket += 1
    return (bucket_hash.digest() for bucket_hash in buckets)


def _header(table: Table, cells: Sequence[Cells]) -> bytes:
    parts = [table.rows.to_bytes(8, "little"), len(cells).to_bytes(8, "little")]
    for name, column in zip(table.columns, cells, strict=True):
        for text in (name.encode("utf-8", "surrogatepass"), column.kind.encode("ascii")):
            parts += [len(text).to_bytes(8, "little"), text]
    return b"".join(parts)


def _same_kinds(tables: Sequence[Table]) -> list[_Part]:
    """Read the cells of tables with the same columns, each column under the one kind that fits all tables."""
    names = list(tables[0].columns)
    for table in tables[1:]:
        if list(table.columns) != names:
            differing = ", ".join(sorted(set(names) ^ set(table.columns)))
            raise UsageError(f"members and non-members need the same columns; only one side has {differing}")
    read = [[read_cells(name, column) for name, column in table.columns.items()] for table in tables]
    kinds = [join_kinds(cells.kind for cells in columns) for columns in zip(*read, strict=True)]
    return [
        _Part(table.rows, [as_kind(column, kind) for column, kind in zip(cells, kinds, strict=True)])
        for table, cells in zip(tables, read, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of equal rows: row numbers, group after group, and how many rows of each side a group has."""

    order: NDArray[np.int64]
    members: NDArray[np.int64]
    non_members: NDArray[np.int64]

    @classmethod
    def of(cls, rows: _Rows, n_members: int) -> _Groups:
        """Group the rows; the first ``n_members`` are the members."""
        ordered = _ordered(rows)
        starts = np.flatnonzero(ordered.first)
        sizes = np.diff(starts, append=rows.count)
        members_before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(ordered.order < n_members)])
        members = members_before[starts + sizes] - members_before[starts]
        return cls(ordered.order, members, sizes - members)


def _twin_chance(fresh: int, copies: NDArray[np.int64], other_copies: NDArray[np.int64]) -> float:
    """Return the chance that a row has a twin among ``fresh`` rows, by the duplicates in a side of so many rows.

    ``copies`` are those of the side that has ``fresh`` rows; the other side counts as well when it is at least as large.
    """
    sides = [copies, other_copies] if other_copies.sum() >= fresh else [copies]
    return min(_twin_chance_within(fresh, side) for side in sides)


def _twin_chance_within(fresh: int, copies: NDArray[np.int64]) -> float:
    """A row with c - 1 twins among the n - 1 others keeps none in a random part of ``fresh`` with chance (1 - fresh/(n - 1))^(c - 1)."""
    total = int(copies.sum())
    if total < 2:
        return 0.0
    kept_out = max(0.0, 1 - fresh / (total - 1))
    values, counts = np.unique(copies[copies > 1], return_counts=True)
    return float((values * counts * (1 - kept_out ** (values - 1))).sum() / total)
