"""The gated registry store: ``privacy-gate:<any registry uri>``."""

from __future__ import annotations

from mlflow_privacy_gate.store.opening import open_gated_store

__all__ = ["open_gated_store"]
