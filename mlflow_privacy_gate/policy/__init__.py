"""The policy: what is guarded, what is allowed, and the pure judgement of evidence under it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow_privacy_gate.policy.judging import Verdict, judge
    from mlflow_privacy_gate.policy.linting import lint
    from mlflow_privacy_gate.policy.location import PolicyFile, find_policy, server_policy, server_policy_file
    from mlflow_privacy_gate.policy.margin import Margin, margin_in_force
    from mlflow_privacy_gate.policy.model import Mode, Policy
    from mlflow_privacy_gate.policy.parsing import built_in_policy, load_policy, parse_policy
    from mlflow_privacy_gate.policy.rendering import effective_yaml, policy_key_yaml, starter_policy

_ROOM = "mlflow_privacy_gate.policy"
_EXPORTS = {
    "Margin": f"{_ROOM}.margin",
    "Mode": f"{_ROOM}.model",
    "Policy": f"{_ROOM}.model",
    "PolicyFile": f"{_ROOM}.location",
    "Verdict": f"{_ROOM}.judging",
    "built_in_policy": f"{_ROOM}.parsing",
    "effective_yaml": f"{_ROOM}.rendering",
    "find_policy": f"{_ROOM}.location",
    "judge": f"{_ROOM}.judging",
    "lint": f"{_ROOM}.linting",
    "load_policy": f"{_ROOM}.parsing",
    "margin_in_force": f"{_ROOM}.margin",
    "parse_policy": f"{_ROOM}.parsing",
    "policy_key_yaml": f"{_ROOM}.rendering",
    "server_policy": f"{_ROOM}.location",
    "server_policy_file": f"{_ROOM}.location",
    "starter_policy": f"{_ROOM}.rendering",
}

__all__ = [
    "Margin",
    "Mode",
    "Policy",
    "PolicyFile",
    "Verdict",
    "built_in_policy",
    "effective_yaml",
    "find_policy",
    "judge",
    "lint",
    "load_policy",
    "margin_in_force",
    "parse_policy",
    "policy_key_yaml",
    "server_policy",
    "server_policy_file",
    "starter_policy",
]


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
