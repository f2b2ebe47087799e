"""The port to attacks: a function that gives each observed row a score, higher for a likelier member.

An attack is a plain function, one file each (variants of one paper may share a file), named in :mod:`.catalogue`. It takes
the observations first and asks for anything else by naming a parameter of :class:`Given`::

    def scores(observations: Observations) -> FloatArray: ...
    def scores(observations: Observations, references: References) -> FloatArray: ...
    def scores(observations: Observations, *, features: pd.DataFrame, is_member: BoolArray, rng: Generator) -> FloatArray: ...

It returns float64 of shape (n,), n = ``observations.n``, in the order of the rows, and its bits do not depend on that order.
``-inf`` and ``inf`` are scores and rank as such. NaN is not a score: only an attack that uses reference models may return it, for a
row it leaves out (too few reference models); whoever uses the scores drops and counts those rows, and the statistics refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.attacks.references import References

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.intp]


class Attack(Protocol):
    """One score per row."""

    def __call__(self, observations: Observations, /, **asked_for: object) -> FloatArray:
        """Score n rows; ObservationError where the observations are not what this attack needs."""


@dataclass(frozen=True)
class Given:
    """What an attack may ask for beside the observations; None = not to be had.

    ``references``: reference models' scores for the same n rows. ``features`` (n, d): the rows without their label. ``is_member``
    (n,): which rows are members, for attacks that learn on the non-members alone. ``rng``: the only source of randomness.
    """

    references: References | None = None
    features: pd.DataFrame | None = None
    is_member: BoolArray | None = None
    rng: np.random.Generator | None = None
