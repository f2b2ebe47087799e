"""EMA's answer: the published rule, tried on known training rows first, with its blind spots counted from the rows at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import hypergeom

from mlflow_privacy_gate.attacks import ema
from mlflow_privacy_gate.evidence.removal import EmaFacts, MetricFacts, SetFacts
from mlflow_privacy_gate.vocabulary import RemovalAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.removal.asking import AskedSets, Calibration


def ema_facts(asked: AskedSets, calibration: Calibration, *, unlogged_control: int | None) -> EmaFacts:
    """Ask EMA about the query. The control rejects when more than alpha of all sets of the query's size, drawn from it, would be cleared.

    The control is known training rows: where the rule clears them it is wrong about this model, and where there are none nobody knows.
    """
    train, test = calibration.train, calibration.test
    thresholds = {name: ema.threshold(train[name], test[name]) for name in ema.METRICS}
    metrics = tuple(MetricFacts(name, one.balanced_accuracy, one.usable) for name, one in thresholds.items())
    rows = asked.query.said.n
    unable = _unable(rows, thresholds)
    if unable is not None:
        return EmaFacts(RemovalAnswer.INCONCLUSIVE, unable, ema.ALPHA, metrics, rows)
    zeros = _zeros(asked.query.said, thresholds)
    control = None if asked.control is None else set_facts(*_counted(asked.control.said, thresholds), query_rows=rows)
    rho = ema.rho(rows, zeros)
    answer, reason = read_ema(rho, rows, zeros, control, unlogged_control)
    return EmaFacts(
        answer,
        reason,
        ema.ALPHA,
        metrics,
        rows,
        zeros=zeros,
        rho=rho,
        fewest_zeros=ema.fewest_zeros(rows),
        control=control,
        held_out=set_facts(*_counted(asked.held_out.said, thresholds), query_rows=rows),
    )


def read_ema(
    rho: float, rows: int, zeros: int, control: SetFacts | None, unlogged_control: int | None
) -> tuple[RemovalAnswer, str]:
    """Read rho for ``zeros`` of ``rows``, the control first, and say why in a sentence."""
    broken = _broken_control(rows, control, unlogged_control)
    if broken is not None:
        return RemovalAnswer.INCONCLUSIVE, broken
    seen = f"{zeros:,} of {rows:,} query rows look like rows the model was not trained on"
    if rho <= ema.ALPHA:
        return RemovalAnswer.NOT_MEMORISED, f"{seen}; {ema.fewest_zeros(rows)} are enough for the rule."
    return RemovalAnswer.NOT_RULED_OUT, f"Only {seen}; the rule asks for {ema.fewest_zeros(rows)}."


def set_facts(rows: int, zeros: int, *, query_rows: int) -> SetFacts:
    """Count what EMA would say of all sets of ``query_rows`` drawn from these rows without replacement (a hypergeometric tail)."""
    if rows < query_rows:
        return SetFacts(rows, zeros, None)
    enough = ema.fewest_zeros(query_rows)
    return SetFacts(rows, zeros, float(hypergeom.sf(enough - 1, rows, zeros, query_rows)))


def _unable(rows: int, thresholds: Mapping[str, ema.Threshold]) -> str | None:
    if rows < ema.FEWEST_ROWS:
        return f"EMA needs at least {ema.FEWEST_ROWS} query rows, there are {rows}."
    if not any(one.usable for one in thresholds.values()):
        return "No metric parts the calibration model's training rows from its test rows, so EMA has nothing to go by."
    return None


def _broken_control(rows: int, control: SetFacts | None, unlogged_control: int | None) -> str | None:
    if control is None:
        return "There were no known training rows to try the rule on (--control, or splits logged with the model)."
    if unlogged_control:
        return f"{unlogged_control:,} control rows do not stand among the logged training rows, so they are no control."
    if control.cleared is None:
        return f"The control has {control.rows:,} rows and the query {rows:,}; it must have at least as many."
    if control.cleared > ema.ALPHA:
        return (
            f"The control rejects: {control.zeros:,} of {control.rows:,} known training rows look as if they were not trained on, and of "
            f"sets of {rows:,} of them the rule would clear a share of {control.cleared:.4f}. The model does not fit its own training rows "
            "closely enough for this rule."
        )
    return None


def _counted(said: Observations, thresholds: Mapping[str, ema.Threshold]) -> tuple[int, int]:
    return said.n, _zeros(said, thresholds)


def _zeros(said: Observations, thresholds: Mapping[str, ema.Threshold]) -> int:
    return int(np.count_nonzero(~ema.membership(ema.metrics(said), thresholds)))
