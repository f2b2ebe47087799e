"""The audit of a data removal: does a model still remember a set of rows, after it was trained again without them?"""

from mlflow_privacy_gate.removal.result import AuditResult

__all__ = ["AuditResult"]
