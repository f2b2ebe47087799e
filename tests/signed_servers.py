"""What the tests on both databases share: the signer that their policies trust, and what those guard."""

from __future__ import annotations

from evidence_builder import fresh_signer

SIGNER = fresh_signer()
GUARD = "guard: {stages: [Production], aliases: [production, prod, champion], registered_models: ['live-*']}"
