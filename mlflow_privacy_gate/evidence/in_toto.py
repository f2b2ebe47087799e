"""The in-toto Statement v1 around every predicate: its type, its one subject, and the strict reading of both.

Fields of the statement that this version does not know are ignored, as in-toto asks; what stands in the predicate is for its own
reader. Source: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlflow_privacy_gate.errors import UsageError
from mlflow_privacy_gate.evidence.wire import decode_field, encode, read_object, reject, required

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_PATH = "statement.predicate"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class About:
    """What a statement is about: a name for people, and the sha256 (64 hex digits) that identifies it."""

    name: str
    sha256: str


def to_in_toto(predicate_type: str, about: About, predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement (a JSON object) around a predicate."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": encode(about.name), "digest": {"sha256": about.sha256}}],
        "predicateType": predicate_type,
        "predicate": dict(predicate),
    }


def from_in_toto(statement: object, predicate_type: str) -> tuple[About, dict[str, Any]]:
    """Read the subject and the raw predicate of a parsed statement of that type; EvidenceRejected names the JSON path."""
    fields = read_object(statement, "statement")
    expect(fields, "_type", STATEMENT_TYPE, "statement")
    expect(fields, "predicateType", predicate_type, "statement")
    predicate = read_object(required(fields, "predicate", "statement"), PREDICATE_PATH)
    return _read_subject(required(fields, "subject", "statement")), dict(predicate)


def expect(fields: Mapping[str, Any], key: str, expected: str, path: str) -> None:
    """Refuse any other value of ``key`` than the expected one."""
    got = required(fields, key, path)
    if got != expected:
        reject(f"{path}.{key}", f"expected {expected!r}, got {str(got)[:80]!r}")


def read_sha256(fields: Mapping[str, Any], path: str) -> str:
    """Read ``digest.sha256`` in its one form, 64 hex digits in lower case."""
    digest = read_object(required(fields, "digest", path), f"{path}.digest")
    value = required(digest, "sha256", f"{path}.digest")
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        reject(f"{path}.digest.sha256", "expected 64 hex digits in lower case")
    return value


def check_sha256(name: str, value: str) -> None:
    """UsageError where a digest to be stated is not 64 hex digits in lower case."""
    if not _SHA256.fullmatch(value):
        raise UsageError(f"{name}: expected 64 hex digits in lower case, got {value[:80]!r}")


def _read_subject(value: object) -> About:
    path = "statement.subject"
    if not isinstance(value, list) or len(value) != 1:
        reject(path, "expected exactly one subject")
    subject = read_object(value[0], f"{path}[0]")
    name = decode_field(About, "name", required(subject, "name", f"{path}[0]"), f"{path}[0].name")
    return About(name, read_sha256(subject, f"{path}[0]"))
