"""Asking the model about both sides, and pooling what it said for the attacks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mlflow_privacy_gate.attacks.error import with_shared_scale
from mlflow_privacy_gate.attacks.observations import Observations, joined

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.references import References
    from mlflow_privacy_gate.checks.rows import TestedRows, Whereabouts
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.splits._interface import Splits

ASKED_TWICE_ROWS = 200
_ANSWERS = ("probabilities", "logits", "correct", "residuals", "log_likelihood")


@dataclass(frozen=True)
class Sides:
    """What the model said of each side; rows whose label it does not know are left out and counted there."""

    members: Observations
    non_members: Observations


@dataclass(frozen=True)
class Pool:
    """Everything an attack may see: observations of n rows, which are members, the rows themselves, and reference models' answers.

    ``is_member`` (n,) bool, and all else, is in the order of the observations, members first. ``tables``: each side's rows with their
    label, the column ``target``. ``at``: where each row stands on its side. ``references`` are of the same n rows.
    """

    observations: Observations
    is_member: npt.NDArray[np.bool_]
    tables: tuple[pd.DataFrame, pd.DataFrame]
    target: str
    at: Whereabouts
    references: References | None = None

    @cached_property
    def features(self) -> pd.DataFrame:
        """The rows without their label, (n, d); put together only where they are asked for, for they may be large."""
        import pandas as pd

        features: pd.DataFrame = pd.concat(
            [table.drop(columns=self.target) for table in self.tables], ignore_index=True
        )
        return features

    @property
    def labels(self) -> pd.Series[Any]:
        """Each row's label, (n,)."""
        import pandas as pd

        return pd.concat([table[self.target] for table in self.tables], ignore_index=True)

    @property
    def index(self) -> pd.Index[Any]:
        """The rows' index (n,) in the splits as they were found."""
        return self.tables[0].index.append(self.tables[1].index)


def inputs(model: LoadedModel, frame: pd.DataFrame, splits: Splits) -> pd.DataFrame:
    """Give the columns that may be shown to the model: never the label, and the group only where the model was trained on it."""
    hidden = [splits.target]
    if splits.group is not None and splits.group not in (model.input_columns or ()):
        hidden.append(splits.group)
    shown: pd.DataFrame = frame.drop(columns=hidden, errors="ignore")
    return shown


def ask(model: LoadedModel, rows: TestedRows, splits: Splits) -> Sides:
    """Ask the model about every row of both sides, once."""
    members, non_members = (
        model.observe(inputs(model, frame, splits), frame[splits.target]) for frame in (rows.members, rows.non_members)
    )
    if members.kind == "regression":
        members, non_members = with_shared_scale(members, non_members)
    return Sides(members, non_members)


def pooled(sides: Sides, rows: TestedRows, target: str) -> Pool:
    """Put both sides one after the other."""
    return Pool(
        joined(sides.members, sides.non_members),
        np.repeat([True, False], [sides.members.n, sides.non_members.n]),
        (_known(rows.members, sides.members), _known(rows.non_members, sides.non_members)),
        target,
        rows.members_at.of(sides.members.kept).then(rows.non_members_at.of(sides.non_members.kept)),
    )


def _known(frame: pd.DataFrame, side: Observations) -> pd.DataFrame:
    """Leave out the rows whose label the model does not know."""
    return frame[side.kept] if side.unknown_labels else frame


def unstable_rows(model: LoadedModel, rows: TestedRows, splits: Splits) -> int:
    """Count the rows of a small sample on which the model, asked twice, gives two answers."""
    sample = rows.members.head(ASKED_TWICE_ROWS)
    features, labels = inputs(model, sample, splits), sample[splits.target]
    first, again = (model.observe(features, labels) for _ in range(2))
    for name in _ANSWERS:
        given, repeated = getattr(first, name), getattr(again, name)
        if given is not None:
            differs = given != repeated
            return int(np.count_nonzero(differs.any(axis=1) if differs.ndim > 1 else differs))
    return 0


def accuracy(side: Observations) -> float | None:
    """Give the model's accuracy on one side, a fraction in [0, 1]; None for models without labels."""
    from mlflow_privacy_gate.attacks import scores

    if side.kind not in ("classification", "label_only") or side.n == 0:
        return None
    return float(scores("correctness", side).mean())
