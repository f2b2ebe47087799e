"""The calibrated answer: are the query rows scored like rows that were held out, or like known training rows?

Reference models, trained by the same recipe with and without each row, tell how a row scores when it was not trained on. Two
one-sided rank tests then decide. If the query scores higher than the held-out rows, memorisation is not ruled out. If it does not, and
known training rows score higher than the query, the query is not memorised as training rows are: rows that are still training rows,
like the control, would be told apart from it with a chance of at most the level. Otherwise the test could not tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks import scores
from mlflow_privacy_gate.attacks.observations import joined
from mlflow_privacy_gate.evidence.removal import CalibratedFacts, RankFacts
from mlflow_privacy_gate.vocabulary import ATTACKS, ReferenceOrigin, RemovalAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mlflow_privacy_gate.attacks.references import References
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.removal.asking import Asked, AskedSets

LEVEL = 0.05
DECIDES = "calibrated"
SHOWN = (DECIDES, "lira_offline")
QUERY, HELD_OUT, CONTROL = "query", "held_out", "control"


def calibrated_facts(
    model: LoadedModel,
    asked: AskedSets,
    *,
    count: int,
    seed: int,
    origins: Sequence[ReferenceOrigin],
    progress: Callable[[str], None],
) -> CalibratedFacts:
    """Train ``count`` reference models on random halves of all rows and compare the query with held-out and with training rows.

    ModelUnusable where a reference cannot be trained: none is ever dropped.
    """
    if ReferenceOrigin.CLONE not in origins:
        return _not_run("The policy admits no clones of the logged model (attacks.reference_origins).")
    sets = {QUERY: asked.query, HELD_OUT: asked.held_out}
    if asked.control is not None:
        sets[CONTROL] = asked.control
    references = model.references(
        pd.concat([one.features for one in sets.values()], ignore_index=True),
        pd.concat([one.labels for one in sets.values()], ignore_index=True),
        count=count,
        seed=seed,
        progress=lambda done, of: progress(f"training reference models: {done} of {of}"),
    )
    if references is None:
        return _not_run(
            "The logged model cannot be trained again from its own parameters, so there are no reference models."
        )
    return _compared(sets, references)


def read_tests(
    over_held_out: RankFacts, control_over: RankFacts | None, level: float = LEVEL
) -> tuple[RemovalAnswer, str]:
    """Read the two tests: query over held-out rows, and control over query (None: there is no control)."""
    if over_held_out.p_value <= level:
        return RemovalAnswer.NOT_RULED_OUT, "The query rows score higher than held-out rows, as training rows do."
    if control_over is None:
        return RemovalAnswer.INCONCLUSIVE, "There were no known training rows to compare the query with."
    if control_over.p_value <= level:
        return (
            RemovalAnswer.NOT_MEMORISED,
            "The query rows do not score higher than held-out rows, and known training rows score higher than the query.",
        )
    return (
        RemovalAnswer.INCONCLUSIVE,
        "The query rows can be told neither from held-out rows nor from known training rows.",
    )


def _compared(sets: dict[str, Asked], references: References) -> CalibratedFacts:
    said = (
        joined(joined(sets[QUERY].said, sets[HELD_OUT].said), sets[CONTROL].said)
        if CONTROL in sets
        else joined(sets[QUERY].said, sets[HELD_OUT].said)
    )
    role = np.repeat(list(sets), [one.said.n for one in sets.values()])
    tests: list[RankFacts] = []
    for name in SHOWN:
        scored = scores(name, said, references)
        of = {each: scored[(role == each) & ~np.isnan(scored)] for each in sets}
        tests.append(_tested(name, QUERY, HELD_OUT, of))
        if CONTROL in sets:
            tests.append(_tested(name, CONTROL, QUERY, of))
    decisive = {test.higher: test for test in tests if test.attack == DECIDES}
    answer, reason = read_tests(decisive[QUERY], decisive.get(CONTROL))
    return CalibratedFacts(
        answer,
        reason,
        LEVEL,
        DECIDES,
        tuple(tests),
        references.count,
        references.origin,
        references.seed,
        rows_left_out=int(np.count_nonzero(~references.enough_out)),
    )


def _tested(attack: str, higher: str, lower: str, of: dict[str, npt.NDArray[np.float64]]) -> RankFacts:
    test = stats.rank_test(of[higher], of[lower])
    interval = test.interval
    return RankFacts(
        attack,
        ATTACKS[attack].formula,
        higher,
        lower,
        test.p_value,
        test.auc,
        interval.low,
        interval.high,
        interval.method,
    )


def _not_run(reason: str) -> CalibratedFacts:
    return CalibratedFacts(RemovalAnswer.INCONCLUSIVE, reason, LEVEL, DECIDES)
