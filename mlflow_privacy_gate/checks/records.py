"""How exposed each single row is: personal data, built only on request, and only for a local file that the caller names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.checks.attacking import Scored
    from mlflow_privacy_gate.checks.observing import Pool

SUFFIX = ".parquet"


def check_path(path: Path) -> None:
    """Refuse, before anything is measured, a file that could not be written; UsageError says why."""
    if path.suffix != SUFFIX:
        raise UsageError(f"{path}: records are written as {SUFFIX}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")


def row_records(pool: Pool, scored: Mapping[str, Scored]) -> pd.DataFrame:
    """Give one line a row, n lines, under the rows' own index and in the order they were found in, members first.

    ``member`` bool; per attack ``<name>_score`` (float64, NaN where it was left out) and ``<name>_exposure``: the share of
    non-members that score lower, ties one half, a fraction in [0, 1].
    """
    import pandas as pd

    columns: dict[str, npt.NDArray[Any]] = {"member": pool.is_member}
    for name, one in scored.items():
        columns[f"{name}_score"] = one.scores
        columns[f"{name}_exposure"] = _exposure(one)
    records: pd.DataFrame = pd.DataFrame(columns, index=pool.index).iloc[
        np.lexsort((pool.at.as_found, ~pool.is_member))
    ]
    return records


def write_records(records: pd.DataFrame, path: Path) -> None:
    """Write the records readable by their owner alone."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    records.to_parquet(path)


def _exposure(scored: Scored) -> npt.NDArray[np.float64]:
    others = np.sort(scored.non_members)
    lower, not_higher = (np.searchsorted(others, scored.scores, side=side) for side in ("left", "right"))
    share = (lower + not_higher) / (2 * others.size)
    return np.where(np.isnan(scored.scores), np.nan, share).astype(np.float64)
