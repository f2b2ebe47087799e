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

# Of each side.
ASKED_AGAIN_ROWS = 100
ASKED_ALONE_ROWS = 10
# A share of the largest answer: what a sum in single precision may differ by. Less hides no more than rounding the answers would.
FLOAT_NOISE = 1e-5
_ANSWERS = ("probabilities", "logits", "correct", "residuals", "log_likelihood")


@dataclass(frozen=True)
class Sides:
    """What the model said of each side; rows with a label unknown to it are counted there and left out."""

    members: Observations
    non_members: Observations


@dataclass(frozen=True)
class AskedAgain:
    """How many rows the model was asked about once more, and on how many of them it gave another answer."""

    rows: int
    differing: int


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
    """Leave out the rows with a label unknown to the model."""
    return frame[side.kept] if side.unknown_labels else frame


def asked_again(
    model: LoadedModel, rows: TestedRows, sides: Sides, splits: Splits, *, rng: np.random.Generator
) -> AskedAgain:
    """Ask once more about a small sample of both sides, and count the rows whose answer is not the one that was tested.

    Against the very answers that were scored, of rows drawn by ``rng``, in another order and some of them alone, so that a model which
    answers by how often, beside what, in which place or among how many it is asked shows too.
    """
    compared = [
        _differing(model, side, _known(frame, side), splits, rng)
        for side, frame in ((sides.members, rows.members), (sides.non_members, rows.non_members))
    ]
    return AskedAgain(sum(one.size for one in compared), sum(int(np.count_nonzero(one)) for one in compared))


def _differing(
    model: LoadedModel, tested: Observations, known: pd.DataFrame, splits: Splits, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Say of each row that is asked about again whether its answer differs by more than float noise."""
    drawn = rng.permutation(tested.n)[:ASKED_AGAIN_ROWS]
    # Of one wrong label nothing tells whether it is in the words of the right one.
    alone = 0 if tested.kind == "label_only" else ASKED_ALONE_ROWS
    batches = [batch for batch in (*drawn[:alone, None], drawn[alone:]) if batch.size]
    first = _answers(tested)[drawn]
    noise = FLOAT_NOISE * float(np.abs(first[np.isfinite(first)]).max(initial=0.0))
    differs = []
    for batch in batches:
        sample = known.iloc[batch]
        again = model.observe(inputs(model, sample, splits), sample[splits.target])
        differs.append(_differs(_answers(tested)[batch], _answers(again), noise))
    return np.concatenate(differs)


def _differs(first: npt.NDArray[np.float64], again: npt.NDArray[np.float64], noise: float) -> npt.NDArray[np.bool_]:
    if first.shape != again.shape:
        return np.ones(len(first), dtype=np.bool_)
    differs: npt.NDArray[np.bool_] = ~np.isclose(first, again, rtol=0.0, atol=noise)
    return np.asarray(differs.reshape(len(first), -1).any(axis=1))


def _answers(said: Observations) -> npt.NDArray[np.float64]:
    given = next(answer for name in _ANSWERS if (answer := getattr(said, name)) is not None)
    return np.asarray(given, dtype=np.float64)


def accuracy(side: Observations) -> float | None:
    """Give the model's accuracy on one side, a fraction in [0, 1]; None for models without labels."""
    from mlflow_privacy_gate.attacks import scores

    if side.kind not in ("classification", "label_only") or side.n == 0:
        return None
    return float(scores("correctness", side).mean())
