"""The check: pull a logged model and its splits, attack, judge, publish."""

from mlflow_privacy_gate.checks.result import CheckResult

__all__ = ["CheckResult"]
