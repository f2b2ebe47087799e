"""What is no mistake in a policy and yet may not be what its author meant: each said with ``file:line``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mlflow_privacy_gate.policy.document import Path as Keys
from mlflow_privacy_gate.policy.document import dotted, read_document
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.policy.parsing import parse_policy, read_policy_file
from mlflow_privacy_gate.vocabulary import KeyRole


def lint(path: Path) -> tuple[Policy, tuple[str, ...]]:
    """Load a policy file and say what a reviewer should look at twice; PolicyError with every mistake where there is one."""
    data = read_policy_file(path)
    policy = parse_policy(data, path.name, folder=path.absolute().parent)
    document = read_document(data, path.name)
    return policy, tuple(
        f"{path.name}:{document.line(keys)}: {dotted(keys)}: {said}" for keys, said in _cautions(policy)
    )


def _cautions(policy: Policy) -> Iterator[tuple[Keys, str]]:
    if policy.mode is not Mode.ENFORCE:
        yield ("mode",), f"mode is {policy.mode}: promotions are not refused"
    guard = policy.guard
    if not guard.stages:
        yield ("guard", "stages"), "is empty: moving a version to any stage is free"
    if not guard.aliases:
        yield ("guard", "aliases"), "is empty: setting any alias is free"
    if not policy.trusts(KeyRole.TESTER):
        yield ("keys",), "no key of a tester stands in it, so no signed evidence can be believed"
