"""``check`` and ``audit_removal`` for training scripts: each builds the real adapters and runs once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from mlflow_privacy_gate.checks.result import CheckResult
from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.policy import Policy, find_policy
from mlflow_privacy_gate.vocabulary import Isolation, KeyRole, ReasonCode

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mlflow_privacy_gate.checks.found_card import GivenCard
    from mlflow_privacy_gate.evidence.signing import Signer
    from mlflow_privacy_gate.models._interface import LoadedModel
    from mlflow_privacy_gate.registry._interface import Registry
    from mlflow_privacy_gate.removal import AuditResult
    from mlflow_privacy_gate.splits._interface import SplitSource
    from mlflow_privacy_gate.splits.access import SourceAccess

KEY_VARIABLE = "PRIVACY_GATE_SIGNING_KEY"
PASSWORD_VARIABLE = "PRIVACY_GATE_KEY_PASSWORD"  # noqa: S105 - the variable's name
KEY_FILE = "privacy-gate.key"


def check(
    model_uri: str,
    *,
    policy: str | Path | Policy | None = None,
    members: object = None,
    non_members: object = None,
    target: str | None = None,
    card: str | Path | None = None,
    evaluator: str | None = None,
    key: str | Path | None = None,
    dry_run: bool = False,
    subgroups: Sequence[str] = (),
    stop_early: bool = False,
    records: str | Path | None = None,
    suggest: bool = False,
    isolation: str = Isolation.IN_PROCESS,
    tracking_uri: str | None = None,
    registry_uri: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> CheckResult:
    """Test how well an attacker tells the model's training rows from held-out rows, judge it, and record card, tags and evidence.

    ``model_uri``: ``models:/name/version``, ``models:/name@alias``, ``models:/m-…`` or ``runs:/…/model``. ``policy``: a policy or its
    file; None looks at ``$PRIVACY_GATE_POLICY``, then ``./privacy-gate.yaml``, then takes the built-in. ``members`` and ``non_members``:
    tables (features and target), paths or URIs; None takes what was logged with the model. ``target``: the label's column where it
    cannot be found. ``card``: a Markdown file to read the author's claims from, beside the recorded card's
    (the stricter of both count), and to write the result to. ``evaluator``: who answers
    for this test, as the report is to name them; nobody is guessed. ``key``: a signing key file; None looks at
    ``$PRIVACY_GATE_SIGNING_KEY``, then for ``privacy-gate.key`` beside the policy. ``dry_run``: record nothing.

    ``subgroups``: columns to look at beside the classes. ``stop_early``: train no reference models once the verdict can no longer
    change. ``records``: a local ``.parquet`` file for how exposed each row is; it is personal data and never goes to MLflow.
    ``suggest``: where the model is over the margin, measure what each mitigation would do to it; ``mitigations`` of the result, best first.

    ``isolation``: ``in-process``, or ``child-process`` to open the model in a process of its own, without keys and credentials and within
    the policy's ``limits`` (the command line's way): for a model that this script did not train itself.

    Raises UsageError (also for a bad policy), CouldNotJudge when there is nothing to judge (never a pass), CouldNotLook when MLflow
    cannot be reached.
    """
    from mlflow_privacy_gate.checks.checking import Tools, Wishes, run_check
    from mlflow_privacy_gate.splits.caller import refuse_missing
    from mlflow_privacy_gate.splits.catalogue import split_sources

    refuse_missing(members=members, non_members=non_members)
    ground = _ground(policy, key, isolation, tracking_uri, registry_uri)

    def sources(model: LoadedModel) -> tuple[SplitSource, ...]:
        return split_sources(
            ground.access, members=members, non_members=non_members, target=target, input_columns=model.input_columns
        )

    tools = Tools(
        registry=ground.registry,
        open_model=ground.open_model,
        isolation=ground.isolation,
        split_sources=sources,
        signer=ground.signer,
        clock=_utc_now,
        progress=progress or (lambda _: None),
    )
    card_file = Path(card) if card is not None else None
    wishes = Wishes(
        card=_given_card(card_file) if card_file else None,
        evaluator=evaluator,
        dry_run=dry_run,
        subgroup_columns=tuple(subgroups),
        stop_early=stop_early,
        records=Path(records) if records is not None else None,
        suggest=suggest,
    )
    result = run_check(model_uri, ground.policy, tools, wishes)
    if card_file is not None and not dry_run:
        card_file.write_bytes(result.card.encode("utf-8"))
    return result


def audit_removal(
    model_uri: str,
    *,
    query: object,
    calibration_train: object,
    calibration_test: object,
    control: object = None,
    calibration_model: str | None = None,
    target: str | None = None,
    references: int = 16,
    policy: str | Path | Policy | None = None,
    key: str | Path | None = None,
    dry_run: bool = False,
    isolation: str = Isolation.IN_PROCESS,
    tracking_uri: str | None = None,
    registry_uri: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> AuditResult:
    """Ask whether a model still remembers a set of rows, as after an erasure request and a retraining without them, and record the report.

    ``query``: the rows in question. ``calibration_train`` and ``calibration_test``: other rows of the same source, the latter seen
    neither by the calibration model nor by this one. ``control``: rows that this model is known to be trained on; None takes what was
    logged with it. Each is a table with features and label, a path or a URI. ``calibration_model``: a model of the same recipe trained on
    ``calibration_train``, where this one cannot be trained again here. ``references``: how many reference models to train, at least 2.
    The others as in :func:`check`.

    The answer is the least favourable of EMA's and the one calibrated by reference models. Raises UsageError, CouldNotJudge where there is
    nothing to judge, CouldNotLook when MLflow cannot be reached.
    """
    from mlflow_privacy_gate.removal.auditing import Question, Tools, run_audit
    from mlflow_privacy_gate.splits.caller import load_table, refuse_missing
    from mlflow_privacy_gate.splits.catalogue import split_sources

    refuse_missing(query=query, calibration_train=calibration_train, calibration_test=calibration_test, control=control)
    ground = _ground(policy, key, isolation, tracking_uri, registry_uri)
    tools = Tools(
        registry=ground.registry,
        open_model=ground.open_model,
        isolation=ground.isolation,
        load_rows=lambda given, role: load_table(given, ground.access, role=role),
        record_sources=lambda model: split_sources(ground.access, target=target, input_columns=model.input_columns),
        signer=ground.signer,
        clock=_utc_now,
        progress=progress or (lambda _: None),
    )
    question = Question(
        query, calibration_train, calibration_test, control, calibration_model, target, references, dry_run
    )
    return run_audit(model_uri, question, ground.policy, tools)


@dataclass(frozen=True)
class _Ground:
    """What every test stands on: the policy in force, MLflow, what may be read, who signs, and how a model is opened."""

    policy: Policy
    registry: Registry
    access: SourceAccess
    isolation: Isolation
    open_model: Callable[[Path], AbstractContextManager[LoadedModel]]
    signer: Signer | None


def _ground(
    policy: str | Path | Policy | None,
    key: str | Path | None,
    isolation: str,
    tracking_uri: str | None,
    registry_uri: str | None,
) -> _Ground:
    from mlflow_privacy_gate.registry.mlflow_registry import MlflowRegistry
    from mlflow_privacy_gate.splits.access import SourceAccess

    where = _isolation(isolation)
    in_force = policy if isinstance(policy, Policy) else find_policy(policy, os.environ, Path.cwd())
    registry = MlflowRegistry(tracking_uri, registry_uri)
    return _Ground(
        policy=in_force,
        registry=registry,
        access=SourceAccess(registry, http_hosts=in_force.sources.http_hosts),
        isolation=where,
        open_model=model_opener(where, in_force, key, os.environ),
        signer=signer_for(in_force, key, os.environ),
    )


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


def model_opener(
    isolation: Isolation, policy: Policy, key: str | Path | None, environ: Mapping[str, str]
) -> Callable[[Path], AbstractContextManager[LoadedModel]]:
    """Give the way to open a model: here, or in a child process within the policy's limits that cannot find the signing key."""
    if isolation is Isolation.IN_PROCESS:
        from mlflow_privacy_gate.models.catalogue import in_process

        return in_process
    from mlflow_privacy_gate.models.isolated import isolated

    limits, hidden = policy.limits, _key_places(policy, key, environ)
    return lambda folder: isolated(folder, seconds=limits.seconds, memory_gb=limits.memory_gb, hidden=hidden)


def signer_for(
    policy: Policy, key: str | Path | None, environ: Mapping[str, str], *, role: KeyRole = KeyRole.TESTER
) -> Signer | None:
    """Find the signing key: ``key``, else ``$PRIVACY_GATE_SIGNING_KEY``, else ``privacy-gate.key`` beside the policy; None without one.

    A key is a file, or the URI of a key that a key management service holds (``awskms:…``, ``gcpkms:…``, ``azurekms:…``); its public
    half is then the policy's key of that role. ``keyless:`` signs through Sigstore as the policy's identity of that role. The key
    beside the policy is the tester's and serves no other role. UsageError when a
    key that was named, or that lies beside the policy, cannot be used.
    """
    from mlflow_privacy_gate.evidence.keyless_signer import is_keyless, keyless_signer
    from mlflow_privacy_gate.evidence.kms_signer import is_key_uri, kms_signer
    from mlflow_privacy_gate.evidence.signing import load_signer

    named = key or environ.get(KEY_VARIABLE)
    password = environ.get(PASSWORD_VARIABLE)
    if named and is_keyless(str(named)):
        return keyless_signer(str(named), policy.trusted_keys, role=role)
    if named and is_key_uri(str(named)):
        return kms_signer(str(named), policy.trusted_keys, role=role, password=password)
    beside = policy.folder / KEY_FILE if policy.folder and role is KeyRole.TESTER else None
    path = Path(named) if named else beside
    if path is None or (not named and not path.exists()):
        return None
    signer = load_signer(path, password=password.encode("utf-8") if password else None)
    roles = [one.role for one in policy.trusted_keys if one.key_id == signer.key_id]
    if policy.keys and role not in roles:
        standing = f"it has the role {roles[0]} there" if roles else "it does not stand there"
        raise UsageError(
            f"{path}: {policy.source_name} does not trust this key as {role} ({standing}), so nobody would believe what it signs; "
            f"use a key that stands there as {role}, or add this one (`mlflow-privacy-gate keys`)",
            code=ReasonCode.PG003,
        )
    return signer


def _key_places(policy: Policy, key: str | Path | None, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """List where a signing key may lie: as the caller and the environment name it, and beside the policy."""
    named = (Path(one) for one in (key, environ.get(KEY_VARIABLE)) if one)
    return (*named, *((policy.folder / KEY_FILE,) if policy.folder else ()))


def _isolation(isolation: str) -> Isolation:
    try:
        return Isolation(isolation)
    except ValueError as exc:
        ways = " or ".join(repr(str(way)) for way in Isolation)
        raise UsageError(f"isolation: expected {ways}, got {isolation!r}") from exc


def _given_card(path: Path) -> GivenCard:
    from mlflow_privacy_gate.checks.found_card import GivenCard

    try:
        return GivenCard(path.read_bytes().decode("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{path}: cannot read the card: {exc}") from exc
