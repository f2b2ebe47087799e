"""Which column of a split is the label: the caller's word, then the manifest's, then whichever single column the model does not take."""

from __future__ import annotations

from collections.abc import Sequence

from mlflow_privacy_gate.errors import SplitsUnavailable
from mlflow_privacy_gate.vocabulary import ReasonCode


def target_column(
    columns: Sequence[str],
    *,
    asked: str | None,
    logged: str | None = None,
    input_columns: Sequence[str] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Return the label's column and notes for the card on how it was found; SplitsUnavailable where it cannot be told.

    ``columns``: of the split. ``asked``: the caller's word. ``logged``: the manifest's. ``input_columns``: what the model takes.
    """
    named = asked if asked is not None else logged
    if named is not None:
        if named not in columns:
            raise SplitsUnavailable(f"target {named!r} is not a column of the splits; they have {_some(columns)}")
        if logged is not None and asked is not None and asked != logged:
            raise SplitsUnavailable(
                f"target {asked!r} was asked for, and {logged!r} was logged: a test on another label is another test; "
                "leave the target out, or log the splits anew",
                code=ReasonCode.PG104,
            )
        return named, ()
    if input_columns is None:
        raise SplitsUnavailable(
            "the label's column is not known: the model has no signature that names its columns; say it with `--target`"
        )
    lacking = [name for name in columns if name not in set(input_columns)]
    if len(lacking) != 1:
        found = f"{len(lacking)} columns ({_some(lacking)})" if lacking else "no column"
        raise SplitsUnavailable(
            f"the label's column is not known: the splits have {found} beside the model's inputs; say it with `--target`"
        )
    return lacking[0], (f"target {lacking[0]!r}: the one column of the splits that the model does not take",)


def _some(columns: Sequence[str]) -> str:
    more = f", … ({len(columns)} in all)" if len(columns) > 8 else ""
    return ", ".join(repr(name) for name in columns[:8]) + more
