"""A removal audit as an in-toto statement of its own predicate type, and back: the bytes that are signed.

The subject is the model's bytes. The predicate holds the other facts under their own names in camelCase, written and read as all facts are
(:mod:`mlflow_privacy_gate.evidence.wire`); an unknown field is refused. A removal statement opens no gate: it is no membership test.
"""

from __future__ import annotations

import json
from typing import Any

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import strict_json
from mlflow_privacy_gate.evidence.in_toto import PREDICATE_PATH, About, from_in_toto, to_in_toto
from mlflow_privacy_gate.evidence.removal import RemovalEvidence
from mlflow_privacy_gate.evidence.wire import decode, encode, refuse_unknown

PREDICATE_TYPE = "https://github.com/mlflow-privacy-gate/mlflow-privacy-gate/privacy-removal/v1"
_SUBJECT = ("modelUri", "modelDigest")


def removal_statement_bytes(evidence: RemovalEvidence) -> bytes:
    """Return the statement as the UTF-8 JSON bytes that are signed; UsageError where a fact cannot be stated."""
    predicate: dict[str, Any] = encode(evidence)
    name, digest = (predicate.pop(key) for key in _SUBJECT)
    content = to_in_toto(PREDICATE_TYPE, About(name, digest), predicate)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_removal_statement(payload: bytes) -> RemovalEvidence:
    """Read an audit from the very bytes that were verified; EvidenceRejected names the JSON path of what does not fit.

    PG006 for a required field that is missing, PG002 for anything of the wrong type or form, and for an answer that the measurements
    contradict.
    """
    about, predicate = from_in_toto(strict_json(payload, "statement"), PREDICATE_TYPE)
    refuse_unknown({key: value for key, value in predicate.items() if key in _SUBJECT}, PREDICATE_PATH)
    fields = {**predicate, _SUBJECT[0]: about.name, _SUBJECT[1]: about.sha256}
    try:
        return decode(RemovalEvidence, fields, PREDICATE_PATH)
    except UsageError as exc:
        raise EvidenceRejected(f"{PREDICATE_PATH}: {exc.message}") from exc
