"""Which stages, aliases and model names count as production, in whatever letters they are written."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from mlflow_privacy_gate.gate.lookalikes import folded, may_look_like, seen
from mlflow_privacy_gate.policy.model import Policy


def guarded_stage(policy: Policy, stage: str) -> bool:
    """Whether moving a version to this stage is a promotion; letter case makes no difference, as in MLflow."""
    return any(folded(stage) == folded(guarded) for guarded in policy.guard.stages)


def guarded_alias(policy: Policy, alias: str) -> bool:
    """Whether setting this alias is a promotion: it, or what it looks like, matches one of the policy's globs."""
    return _matches(alias, policy.guard.aliases)


def guarded_name(policy: Policy, name: str) -> bool:
    """Whether every version of a registered model of this name is a promotion: it, or what it looks like, matches a glob."""
    return _matches(name, policy.guard.registered_models)


def _matches(text: str, globs: Iterable[str]) -> bool:
    return any(_alike(text, glob) for glob in globs)


def _alike(text: str, glob: str) -> bool:
    # Several readings, so that folding can only add a match: `[!x]*` guards what merely looks like an x as well.
    if fnmatchcase(text, glob) or fnmatchcase(folded(text), folded(glob)):
        return True
    if fnmatchcase(seen(folded(text)), seen(folded(glob))):
        return True
    return not (text.isascii() and glob.isascii()) and may_look_like(text, glob)
