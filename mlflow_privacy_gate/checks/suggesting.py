"""What each mitigation would do to a model over the margin, measured on the very rows of its test: attack AUC and accuracy.

Nothing here feeds a verdict. Mitigations of the answers change what the model says on its way out; mitigations of the recipe are trained
again on the tested members, a family's stronger steps only while the milder ones are not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from mlflow_privacy_gate import stats
from mlflow_privacy_gate.attacks import mitigations as answers
from mlflow_privacy_gate.attacks import scores
from mlflow_privacy_gate.attacks.recipe_changes import Changes, recipe_changes
from mlflow_privacy_gate.attacks.telling_columns import held_constant, most_telling_first
from mlflow_privacy_gate.cards.particulars import Mitigation
from mlflow_privacy_gate.checks.attacking import MOST_BOOTSTRAPPED_ROWS, Scored, interval_of_worst, score
from mlflow_privacy_gate.checks.observing import Pool, inputs
from mlflow_privacy_gate.checks.referring import needy
from mlflow_privacy_gate.errors import ModelUnusable, ObservationError
from mlflow_privacy_gate.policy.margin import exceeds
from mlflow_privacy_gate.vocabulary import KIND_ATTACKS, ReferenceOrigin

if TYPE_CHECKING:
    from mlflow_privacy_gate.attacks.observations import Observations
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.splits._interface import Splits

LABELS_REMAIN = "changes the answers only; attacks that need the label alone remain"
FIXED_NOISE = "each row must keep the noise it once got: answers that change are not judged (PG110)"
NO_REFERENCES = "attacks with reference models were not made on it"
RETRAIN = "retrain"
_FEWEST_COLUMNS = 4
_SHARES_KEPT = (2, 4, 8)
_COLUMNS_NAMED = 8
_NOISE = (0.05, 0.2)
_TEMPERATURES = (2.0, 10.0)


@dataclass(frozen=True)
class Subject:
    """What is to be mitigated: the model, what it said of the pool, and the attacks (``names``) that decide on it at ``margin``."""

    model: LoadedModel
    pool: Pool
    splits: Splits
    names: tuple[str, ...]
    margin: float
    seed: int


def suggest(subject: Subject, *, progress: Callable[[str], None] = lambda _: None) -> tuple[Mitigation, ...]:
    """Measure every mitigation that fits this model, best first.

    Best: within the margin before over it; then what changes the model before what only trims its answers; then what costs least
    accuracy on the non-members. Those over the margin come by attack AUC. What cannot be trained or asked is left out.
    """
    measured = [*_of_answers(subject, progress), *_of_recipe(subject, progress)]
    return tuple(sorted(measured, key=lambda one: _rank(one, subject.margin)))


def _rank(mitigation: Mitigation, margin: float) -> tuple[float, ...]:
    if exceeds(mitigation.attack_auc, margin):
        return (1, mitigation.attack_auc)
    cost = 0.0 if mitigation.accuracy_change is None else -mitigation.accuracy_change
    return (0, not mitigation.retrains, cost, mitigation.attack_auc)


def _of_answers(subject: Subject, progress: Callable[[str], None]) -> Iterator[Mitigation]:
    if subject.pool.observations.kind != "classification":
        return
    progress("measuring mitigations of the answers")
    said = subject.pool.observations
    note = f"{LABELS_REMAIN}; {NO_REFERENCES}" if needy(subject.names) else LABELS_REMAIN
    changed = [(words, answer, note) for words, answer in _changed_answers(said)]
    changed += [(words, answer, f"{FIXED_NOISE}; {note}") for words, answer in _noisy_answers(said, subject.seed)]
    for description, answer, its_note in changed:
        pool = replace(subject.pool, observations=answer, references=None)
        yield _measured(description, pool, subject, note=its_note)


def _changed_answers(said: Observations) -> Iterator[tuple[str, Observations]]:
    for digits in (2, 1):
        yield f"answers rounded to {digits} digit{'s' if digits > 1 else ''}", answers.rounded(said, digits)
    for temperature in _TEMPERATURES:
        yield f"answers flattened by temperature {temperature:g}", answers.tempered(said, temperature)
    yield "the predicted class and its probability alone", answers.top_one(said)
    yield "the predicted label alone", answers.label_only(said)


def _noisy_answers(said: Observations, seed: int) -> Iterator[tuple[str, Observations]]:
    for scale in _NOISE:
        noisy = answers.noisy(said, scale, np.random.default_rng(seed))
        yield f"Gaussian noise of {scale:g} on the answers, drawn once per row", noisy


def _of_recipe(subject: Subject, progress: Callable[[str], None]) -> Iterator[Mitigation]:
    if not subject.model.parameters:
        return
    rows = int(np.count_nonzero(subject.pool.is_member))
    for family in recipe_changes(subject.model.parameters, training_rows=rows):
        steps = (_Recipe(change.description, change.values) for change in family)
        yield from _until_enough(steps, subject, progress)
    yield from _until_enough(_fewer_columns(subject), subject, progress)


@dataclass(frozen=True)
class _Recipe:
    """One way to train again: with ``changes`` to the parameters, without what ``left_out`` columns say, on ``columns``."""

    description: str
    changes: Changes = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def _fewer_columns(subject: Subject) -> Iterator[_Recipe]:
    features = inputs(subject.model, subject.pool.features, subject.splits)
    if features.shape[1] < _FEWEST_COLUMNS or subject.pool.observations.kind == "density":
        return
    members = subject.pool.is_member
    of_classes = subject.pool.observations.kind in ("classification", "label_only")
    ordered = most_telling_first(features[members], subject.pool.labels[members], of_classes=of_classes)
    for share in _SHARES_KEPT:
        kept = ordered[: len(ordered) // share]
        if kept:
            named = ", ".join(kept[:_COLUMNS_NAMED]) + (", …" if len(kept) > _COLUMNS_NAMED else "")
            words = f"fewer features: the {len(kept)} most telling of {len(ordered)} columns ({named})"
            yield _Recipe(words, columns=kept, left_out=ordered[len(kept) :])


def _until_enough(steps: Iterable[_Recipe], subject: Subject, progress: Callable[[str], None]) -> Iterator[Mitigation]:
    """Measure a family's steps, mild ones first, up to the first that is within the margin."""
    for recipe in steps:
        progress(f"measuring a mitigation: {recipe.description}")
        pool = _trained_again(subject, recipe)
        if pool is None:
            return
        found = _measured(recipe.description, pool, subject, note=RETRAIN)
        found = replace(found, retrains=True, changes=dict(recipe.changes), columns=recipe.columns)
        yield found
        if not exceeds(found.attack_auc, subject.margin):
            return


def _trained_again(subject: Subject, recipe: _Recipe) -> Pool | None:
    """Train the changed recipe on the members and ask it about all rows; None where that cannot be done."""
    pool, labels = subject.pool, subject.pool.labels
    features = held_constant(inputs(subject.model, pool.features, subject.splits), recipe.left_out)
    members = int(np.count_nonzero(pool.is_member))
    try:
        said = subject.model.refit(features, labels, train_rows=members, seed=subject.seed, changes=recipe.changes)
        if said is None or said.unknown_labels or said.kind != pool.observations.kind:
            return None
        again = replace(pool, observations=said, references=None)
        if pool.references is None or pool.references.origin != ReferenceOrigin.CLONE or not needy(subject.names):
            return again
        references = subject.model.references(
            features,
            labels,
            count=pool.references.count,
            seed=subject.seed,
            keep_posteriors=pool.references.posteriors is not None,
            changes=recipe.changes,
        )
        return replace(again, references=references)
    except (ModelUnusable, ObservationError):
        return None


def _measured(description: str, pool: Pool, subject: Subject, *, note: str) -> Mitigation:
    scored = {name: score(name, pool, seed=subject.seed) for name in _attacks(pool, subject)}
    aucs = {name: stats.attack_auc(one.members, one.non_members) for name, one in scored.items()}
    worst = max(aucs, key=lambda name: aucs[name])
    interval = _interval(scored, worst, subject.seed)
    return Mitigation(
        description=description,
        attack_auc=aucs[worst],
        accuracy_change=_accuracy_change(pool, subject.pool),
        note=note,
        ci_low=interval.low,
        ci_high=interval.high,
    )


def _attacks(pool: Pool, subject: Subject) -> tuple[str, ...]:
    """Name the attacks that decide, as far as they can be made on what is answered now."""
    kind = pool.observations.kind
    if kind != subject.pool.observations.kind:
        return KIND_ATTACKS[kind]
    if pool.references is not None:
        return subject.names
    left = tuple(name for name in subject.names if name not in needy(subject.names))
    return left or KIND_ATTACKS[kind][:1]


def _interval(scored: Mapping[str, Scored], worst: str, seed: int) -> stats.Interval:
    """Give the interval of the worst of several attacks, or its own where the choice cannot be accounted for."""
    one = scored[worst]
    chosen = None if one.scores.size > MOST_BOOTSTRAPPED_ROWS else interval_of_worst(scored, seed=seed)
    return chosen or stats.delong_interval(one.members, one.non_members)


def _accuracy_change(now: Pool, before: Pool) -> float | None:
    if now.observations.kind not in ("classification", "label_only"):
        return None
    after, first = (float(scores("correctness", pool.observations)[~pool.is_member].mean()) for pool in (now, before))
    return after - first
