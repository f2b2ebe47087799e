"""Attack scores as they enter: checked, copied and sorted once, so that neither row order nor the caller's arrays can matter."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.errors import ObservationError
from mlflow_privacy_gate.stats.results import FloatArray

_ROWS_NAMED = 5
# Above this a 64-bit integer may share its nearest float64 with another one: two different scores would become a tie.
_LARGEST_EXACT_INTEGER = 2**53


@dataclass(frozen=True, eq=False)
class SortedScores:
    """The scores of both sides, each ascending float64 without NaN; ``members`` (m,), ``non_members`` (n,), both at least 1."""

    members: FloatArray
    non_members: FloatArray


def sort_scores(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike) -> SortedScores:
    """Check and sort both sides' scores; the caller's arrays are not touched.

    Takes anything array-like, one-dimensional and real (float16 to float64, integers, booleans). Infinities rank like other values.
    Raises ObservationError, naming rows and counts, for NaN, missing values, an empty side, another shape or another type.
    """
    return SortedScores(_ascending(member_scores, "member scores"), _ascending(non_member_scores, "non-member scores"))


def tie_share(member_scores: npt.ArrayLike, non_member_scores: npt.ArrayLike) -> float:
    """Return the share of rows whose score another row has too, a fraction in [0, 1]; 1.0 for a constant model.

    Parameters and errors as in :func:`mlflow_privacy_gate.stats.attack_auc`.
    """
    return share_of_tied_rows(sort_scores(member_scores, non_member_scores))


def share_of_tied_rows(scores: SortedScores) -> float:
    """Return :func:`tie_share` of scores that are sorted already."""
    few, many = sorted((scores.members, scores.non_members), key=len)
    few_tied, many_tied = _equals_neighbour(few), _equals_neighbour(many)
    block = 1 << 16
    for start in range(0, len(few), block):
        chunk = few[start : start + block]
        at = np.searchsorted(many, chunk)
        shared = many[np.minimum(at, len(many) - 1)] == chunk
        few_tied[start : start + block] |= shared
        many_tied[at[shared]] = True  # a longer run of equal values is marked already
    return (int(np.count_nonzero(few_tied)) + int(np.count_nonzero(many_tied))) / (len(few) + len(many))


def _equals_neighbour(ascending: FloatArray) -> npt.NDArray[np.bool_]:
    tied = np.zeros(len(ascending), dtype=bool)
    same = ascending[1:] == ascending[:-1]
    tied[1:] = same
    tied[:-1] |= same
    return tied


def real_vector(values: npt.ArrayLike, what: str) -> FloatArray:
    """Return a float64 copy (n,) of one-dimensional real values without NaN; ObservationError says what is wrong with ``what``."""
    array = _as_real_array(values, what)
    if array.ndim != 1:
        raise ObservationError(f"{what}: expected one score per row, shape (n,), got shape {array.shape}")
    if array.size == 0:
        raise ObservationError(f"{what}: expected at least one row, got none")
    vector = np.array(array, dtype=np.float64)
    missing = np.isnan(vector)
    if missing.any():
        raise _no_number(missing, what)
    return vector


def _ascending(values: npt.ArrayLike, what: str) -> FloatArray:
    vector = real_vector(values, what)
    vector.sort()
    return vector


def _as_real_array(values: npt.ArrayLike, what: str) -> npt.NDArray[np.generic]:
    if np.ma.is_masked(values):
        raise _no_number(np.atleast_1d(np.ma.getmaskarray(np.ma.asarray(values))), what)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as exc:
        raise ObservationError(f"{what}: expected one real number per row, got something else: {exc}") from exc
    if array.dtype == object and array.ndim == 1:
        array = _from_objects(array, what)
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        raise ObservationError(f"{what}: expected real numbers of at most 64 bits, got dtype {array.dtype}")
    if array.dtype.kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > _LARGEST_EXACT_INTEGER:
        raise _too_large(what)
    return array


def _from_objects(array: npt.NDArray[np.object_], what: str) -> FloatArray:
    strange = np.array([not isinstance(value, Real) for value in array], dtype=bool)
    if strange.any():
        raise _no_number(strange, what)
    if any(isinstance(value, Integral) and abs(int(value)) > _LARGEST_EXACT_INTEGER for value in array):
        raise _too_large(what)
    try:
        return array.astype(np.float64)
    except OverflowError as exc:
        raise ObservationError(f"{what}: a number is too large for float64") from exc


def _too_large(what: str) -> ObservationError:
    return ObservationError(f"{what}: integers above 2**53 would lose digits; hand in float64 or smaller integers")


def _no_number(rows_without: npt.NDArray[np.bool_], what: str) -> ObservationError:
    rows = np.flatnonzero(rows_without)
    named = ", ".join(str(row) for row in rows[:_ROWS_NAMED]) + (", …" if len(rows) > _ROWS_NAMED else "")
    return ObservationError(
        f"{what}: {len(rows)} of {rows_without.size} rows hold no number (NaN, missing or of another type): row {named}; "
        "rows are never dropped here: find out why the model gives no number for them"
    )
