"""Stand-ins behind the ports of a check: a registry that can be stopped at any write, models of known answers, splits in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlflow_privacy_gate.attacks.observations import Observations
from mlflow_privacy_gate.attacks.recipe_changes import NO_CHANGES, Changes, Parameter
from mlflow_privacy_gate.attacks.references import References
from mlflow_privacy_gate.checks.checking import Tools
from mlflow_privacy_gate.errors import CouldNotLook, PromotionRefused
from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.rowset import rowset_digest
from mlflow_privacy_gate.evidence.signing import Signer
from mlflow_privacy_gate.evidence.subject import DatasetInput, ResolvedModel
from mlflow_privacy_gate.models._interface import LoadedModel, ModelNotes
from mlflow_privacy_gate.policy import Policy
from mlflow_privacy_gate.registry._interface import Publication
from mlflow_privacy_gate.splits._interface import Split, Splits
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, VERDICT_TAG, Isolation, SplitOrigin

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
TARGET = "label"


class Stopped(BaseException):
    """The process was killed here: like SIGKILL, nothing may catch it."""


@dataclass
class FakeRegistry:
    """A registry of one version, in memory. Every change of what it holds is one write, named in ``writes``.

    ``stop_before`` kills the process before the write of that number (the first is 1); ``fail_at`` makes that write fail as a server does
    that cannot be reached.
    """

    folder: Path
    name: str | None = "credit"
    version: str | None = "1"
    run_id: str | None = "run-1"
    lineage_note: str | None = None
    description: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    stop_before: int | None = None
    fail_at: int | None = None
    stage: str = "None"
    aliases: tuple[str, ...] = ()
    refusal: str | None = None
    known: KnownTests | None = None
    workspace: str = "default"

    def resolve(self, model_uri: str) -> ResolvedModel:
        return ResolvedModel(
            uri=model_uri,
            artifact_uri=self.folder.as_uri(),
            name=self.name,
            version=self.version,
            run_id=self.run_id,
            description=self.description,
            tags=dict(self.tags),
            stage=self.stage,
            aliases=self.aliases,
            lineage_note=self.lineage_note,
            workspace=self.workspace,
        )

    @contextmanager
    def open_model(self, model: ResolvedModel) -> Iterator[Path]:
        yield self.folder

    def dataset_inputs(self, model: ResolvedModel) -> tuple[DatasetInput, ...]:
        return ()

    def logged_models(self, model: ResolvedModel) -> tuple[str, ...]:
        return ()

    def read_artifact(self, model: ResolvedModel, path: str) -> bytes | None:
        return self.artifacts.get(path)

    def download_artifacts(self, artifact_uri: str) -> AbstractContextManager[Path]:
        raise AssertionError("no test with this fake downloads anything")

    def withdraw(self, model: ResolvedModel) -> None:
        for tag in (VERDICT_TAG, ATTESTATION_TAG):
            if tag in self.tags:
                self._write(f"delete {tag}", partial(self.tags.pop, tag))

    def publish(self, model: ResolvedModel, publication: Publication) -> None:
        if self.run_id is not None:
            for path, content in publication.artifacts.items():
                self._write(path, partial(self.artifacts.update, {path: content}))
            self._write("metrics", lambda: self.metrics.update(publication.metrics))
        if not model.versioned:
            return
        if publication.description is not None:
            self._write("description", lambda: setattr(self, "description", publication.description))
        for key, value in publication.tags.items():
            self._write(key, partial(self.tags.update, {key: value}))
        self._write(VERDICT_TAG, lambda: self.tags.update({VERDICT_TAG: publication.verdict}))

    def annotate(self, model: ResolvedModel, *, artifacts: Mapping[str, bytes], tags: Mapping[str, str]) -> None:
        for path, content in artifacts.items():
            self._write(path, partial(self.artifacts.update, {path: content}))
        for key, value in tags.items():
            self._write(key, partial(self.tags.update, {key: value}))

    def write_card(self, model: ResolvedModel, *, path: str, card: bytes, description: str | None) -> None:
        self._write(path, partial(self.artifacts.update, {path: card}))
        if description is not None:
            self._write("description", lambda: setattr(self, "description", description))

    def versions(self, name: str | None = None) -> Iterator[ResolvedModel]:
        yield self.resolve(f"models:/{self.name}/{self.version}")

    def set_stage(self, model: ResolvedModel, stage: str) -> None:
        self._promote(f"stage {stage}", lambda: setattr(self, "stage", stage))

    def set_alias(self, model: ResolvedModel, alias: str) -> None:
        self._promote(f"alias {alias}", lambda: setattr(self, "aliases", (*self.aliases, alias)))

    def known_tests(self, model_digest: str, policy: Policy) -> KnownTests | None:
        return self.known

    def describe(self) -> str:
        return "a registry in memory"

    def _promote(self, what: str, change: Callable[[], object]) -> None:
        if self.refusal is not None:
            raise PromotionRefused(self.refusal)
        self._write(what, change)

    def _write(self, what: str, change: Callable[[], object]) -> None:
        number = len(self.writes) + 1
        if number == self.stop_before:
            raise Stopped(f"before write {number}: {what}")
        if number == self.fail_at:
            raise CouldNotLook(f"could not write {what}")
        self.writes.append(what)
        change()


@dataclass
class FakeModel:
    """A model that answers as its kind says; ``asked`` counts the rows it was shown."""

    notes: ModelNotes = field(default_factory=lambda: ModelNotes(flavour="fake"))
    input_columns: tuple[str, ...] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    asked: int = 0

    def observe(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        self.asked += len(features)
        return self.answer(features, labels)

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        raise NotImplementedError

    def references(
        self,
        features: pd.DataFrame,
        labels: pd.Series[Any],
        *,
        count: int,
        seed: int,
        keep_posteriors: bool = False,
        changes: Changes = NO_CHANGES,
        progress: Callable[[int, int], None] | None = None,
    ) -> References | None:
        return None

    def refit(
        self,
        features: pd.DataFrame,
        labels: pd.Series[Any],
        *,
        train_rows: int,
        seed: int,
        changes: Changes = NO_CHANGES,
    ) -> Observations | None:
        return None

    def reproduced(self, features: pd.DataFrame, labels: pd.Series[Any], *, train_rows: int) -> bool:
        return False


def by_probability(probability: Sequence[float] | np.ndarray[Any, Any], labels: pd.Series[Any]) -> Observations:
    """Observe a two-class model (classes 0 and 1) that gives each row's own label this probability."""
    own = np.asarray(probability, dtype=np.float64)
    is_one = labels.to_numpy() == 1
    return Observations.from_probabilities(
        np.column_stack([np.where(is_one, 1 - own, own), np.where(is_one, own, 1 - own)]), labels, [0, 1]
    )


@dataclass
class PerfectlyLeakyModel(FakeModel):
    """Surer of every member's label than of any other row's."""

    members: frozenset[float] = frozenset()

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        known = features["a"].isin(self.members).to_numpy()
        return by_probability(np.where(known, 0.99, 0.6), labels)


class ConstantModel(FakeModel):
    """Says one half of every row."""

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        return by_probability(np.full(len(features), 0.5), labels)


class FairModel(FakeModel):
    """Answers by the row alone, the same way for members and others."""

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        return by_probability(1 / (1 + np.exp(-features["a"].to_numpy())), labels)


@dataclass
class RandomAnswerModel(FakeModel):
    """Gives another answer every time it is asked."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        return by_probability(self.rng.uniform(0.2, 0.8, len(features)), labels)


@dataclass
class WaveringModel(FakeModel):
    """Answers by the row; before the ``steady_from``th asking it adds noise to the rows whose first number is ``below`` this."""

    below: float = np.inf
    scale: float = 0.1
    steady_from: int = 1_000
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    askings: int = 0

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        own = 1 / (1 + np.exp(-features["a"].to_numpy()))
        if self.askings < self.steady_from:
            noise = self.rng.uniform(0.5 * self.scale, self.scale, len(own)) * np.where(own > 0.5, -1, 1)
            own += np.where(features["a"] < self.below, noise, 0.0)
        self.askings += 1
        return by_probability(own, labels)


@dataclass
class MemorisedLabelsModel(FakeModel):
    """Shows labels only: the right one for every member, a wrong one for everybody else."""

    members: frozenset[float] = frozenset()

    def answer(self, features: pd.DataFrame, labels: pd.Series[Any]) -> Observations:
        known = features["a"].isin(self.members).to_numpy()
        right = labels.to_numpy()
        return Observations.from_predicted_labels(np.where(known, right, 1 - right), labels, [0, 1])


def rows(count: int, *, seed: int = 0) -> pd.DataFrame:
    """Give labelled rows of one source: two numbers, and a label (0 or 1) that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    frame: pd.DataFrame = pd.DataFrame(
        {"a": rng.normal(size=count), "b": rng.normal(size=count), TARGET: rng.integers(0, 2, size=count)}
    )
    return frame


def splits(members: pd.DataFrame, non_members: pd.DataFrame, **changes: Any) -> Splits:
    """Give splits as a manifest would: whole, and as they were logged."""
    found = Splits(
        members=Split(members, rowset_digest(members)),
        non_members=Split(non_members, rowset_digest(non_members)),
        target=TARGET,
        origin=SplitOrigin.MANIFEST,
        as_logged=True,
    )
    return replace(found, **changes)


@dataclass
class FakeSplits:
    """A place that knows these splits, or none."""

    found: Splits | None
    origin: SplitOrigin = SplitOrigin.MANIFEST

    def find(self, model: ResolvedModel) -> Splits | None:
        return self.found


def tools(
    registry: FakeRegistry, model: LoadedModel, found: Splits | None, *, signer: Signer | None = None, **changes: Any
) -> Tools:
    """Put a check together from stand-ins; the clock stands still."""
    built = Tools(
        registry=registry,
        open_model=lambda _: nullcontext(model),
        isolation=Isolation.IN_PROCESS,
        split_sources=lambda _: (FakeSplits(found),),
        signer=signer,
        clock=lambda: NOW,
    )
    return replace(built, **changes)
