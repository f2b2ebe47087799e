"""The model card: the author's claims read, our block, keys and metrics written, and every other byte left as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.block import View, render_block
from mlflow_privacy_gate.cards.front_matter import FrontMatter, read_claims, take_apart
from mlflow_privacy_gate.cards.markers import put_block
from mlflow_privacy_gate.cards.rows import TPR_PREFIX
from mlflow_privacy_gate.cards.splicing import TASK_NAME, TASK_TYPE, splice, take_back
from mlflow_privacy_gate.cards.templates import render
from mlflow_privacy_gate.cards.untested import UNTESTED, UntestedView
from mlflow_privacy_gate.cards.view import CardView
from mlflow_privacy_gate.cards.yaml_text import Number, Value

__all__ = ["read_claims", "write_card", "write_untested"]


def write_card(card: str | None, view: CardView, *, templates: Path | None = None) -> str:
    """Write one test's result into a card; a card of our template where there is none (None or blank).

    One block between the markers, the key ``privacy_gate:`` and one ``model-index`` result are ours; all else stays byte for byte,
    line ends included, and writing the same view twice gives the same text. CardError with line numbers where that cannot be had;
    nothing is written then.
    """
    return _written(card, view, templates, lambda front: splice(front, _section(view), view.model_name, _result(view)))


def write_untested(card: str | None, view: UntestedView, *, templates: Path | None = None) -> str:
    """Write into a card that no test counts, as :func:`write_card` does; figures of an earlier test that stand there are taken back."""
    return _written(card, view, templates, lambda front: take_back(front, UNTESTED))


def _written(card: str | None, view: View, templates: Path | None, edited: Callable[[FrontMatter], FrontMatter]) -> str:
    if card is None or not card.strip():
        card = render("card.md.j2", folder=templates, view=view)
    read_claims(card)
    parts = take_apart(card)
    block = render_block(view, newline=parts.newline, templates=templates)
    body = put_block(parts.body or parts.newline, block, parts.newline, first_line=parts.body_line)
    front = edited(parts)
    return front.opening + front.yaml_text + front.closing + body


def _section(view: CardView) -> Mapping[str, Value]:
    return {
        "verdict": view.outcome.value,
        "attack_auc": _number(view.verdict.attack_auc, view),
        "margin": Number(view.margin),
        "checked_at": _instant(view.evidence.tested_at),
        "expires_at": _instant(view.verdict.expires_at),
        "model_digest": f"sha256:{view.evidence.model_digest}",
        "attestation_sha256": view.particulars.attestation_sha256,
        "policy": view.evidence.policy.name,
    }


def _instant(time: datetime) -> str:
    return f"{time.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def _number(value: float | None, view: CardView) -> Number | None:
    return None if value is None else Number(numbers.plain(value, limit=view.verdict.margin))


def _optional(value: float | None) -> Number | None:
    return None if value is None else Number(numbers.plain(value))


def _result(view: CardView) -> Mapping[str, Value]:
    metrics: list[Value] = [_auc_metric(view)]
    attack = view.evidence.attack(view.verdict.attack or "")
    for metric in attack.metrics if attack is not None else ():
        if metric.id.startswith(TPR_PREFIX) and metric.value is not None:
            fpr = float(metric.id.removeprefix(TPR_PREFIX))
            args: dict[str, Value] = {
                "attack": view.verdict.attack,
                "fpr": Number(numbers.exact(fpr)),
                "ci_low": _optional(metric.ci_low),
                "ci_high": _optional(metric.ci_high),
            }
            metrics.append(_metric(f"mia_{metric.id}", f"TPR at {numbers.percentage(fpr)} FPR", metric.value, args))
    members, non_members = view.evidence.side("members"), view.evidence.side("non_members")
    dataset: Mapping[str, Value] = {
        "type": "training-and-held-out-rows",
        "name": view.particulars.author.training_data or (members.mlflow_name if members else None) or "unknown",
        "args": {
            "members": members.rows_used if members else None,
            "non_members": non_members.rows_used if non_members else None,
        },
    }
    return {"task": {"type": TASK_TYPE, "name": TASK_NAME}, "dataset": dataset, "metrics": metrics}


def _auc_metric(view: CardView) -> Value:
    attack = view.evidence.attack(view.verdict.attack or "")
    measured = attack.auc if attack is not None else None
    return {
        "type": "mia_auc",
        "name": "Attack AUC",
        "value": _number(view.verdict.attack_auc, view),
        "args": {
            "verdict": view.outcome.value,
            "attack": view.verdict.attack,
            "formula": attack.formula if attack is not None else None,
            "margin": Number(view.margin),
            "ci_low": _optional(measured.ci_low if measured else None),
            "ci_high": _optional(measured.ci_high if measured else None),
        },
    }


def _metric(kind: str, name: str, value: float, args: Mapping[str, Value]) -> Value:
    return {"type": kind, "name": name, "value": Number(numbers.plain(value)), "args": args}
