"""Evidence as an in-toto statement, and back: the bytes that are signed.

in-toto Statement v1 with the predicate ``test-result/v0.1``. The predicate's own fields (``result``, ``configuration``, ``url``,
``passedTests`` …) are for readers who know in-toto only; everything measured stands in one extension object, ``privacyGate``. What
a reader of ``result`` alone must not get wrong: ``inconclusive`` is FAILED, so that whoever ignores the extension still denies.

Fields outside ``privacyGate`` that this version does not know are ignored, as in-toto asks. Unknown fields **inside** are refused: a
measurement that cannot be read cannot be called harmless. How single values are written: :mod:`mlflow_privacy_gate.evidence.wire`.

The statement around the predicate: :mod:`mlflow_privacy_gate.evidence.in_toto`. Source:
https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mlflow_privacy_gate.errors import EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.envelope import strict_json
from mlflow_privacy_gate.evidence.facts import Evidence, PolicyReference, ToolFacts
from mlflow_privacy_gate.evidence.in_toto import (
    PREDICATE_PATH,
    About,
    check_sha256,
    expect,
    from_in_toto,
    read_sha256,
    to_in_toto,
)
from mlflow_privacy_gate.evidence.wire import (
    camel_case,
    decode,
    decode_field,
    encode,
    read_object,
    refuse_unknown,
    reject,
    required,
)
from mlflow_privacy_gate.vocabulary import REASONS, Effect, Outcome, ReasonCode

PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
SCHEMA_VERSION = "1"
_OUTCOMES = (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE)
_PREDICATE = PREDICATE_PATH
_EXTENSION = f"{_PREDICATE}.privacyGate"
# What stands elsewhere in the statement; every other fact stands in ``privacyGate`` under its own name.
_ELSEWHERE = frozenset({"model_uri", "model_digest", "policy", "run_id", "tool"})
# May be missing in ``privacyGate``: their facts have a meaning when nothing is said.
_OPTIONAL = frozenset({"registered_model", "version", "subgroups", "privacy_budget"})


def to_statement(evidence: Evidence) -> dict[str, Any]:
    """Return the in-toto statement (a JSON object) of ``evidence``; UsageError when a fact cannot be stated."""
    _check_consistent(evidence)
    warned, failed = _by_effect(evidence.reason_codes)
    predicate: dict[str, Any] = {
        "result": _result(evidence.outcome, warned),
        "configuration": [{"name": evidence.policy.name, "digest": {"sha256": evidence.policy.sha256}}],
        "passedTests": [code for code in _examined(evidence) if code not in evidence.reason_codes],
        "warnedTests": warned,
        "failedTests": failed,
        "privacyGate": _extension(evidence),
    }
    if evidence.run_id is not None:
        predicate["url"] = f"runs:/{encode(evidence.run_id)}"
    return to_in_toto(PREDICATE_TYPE, About(evidence.model_uri, evidence.model_digest), predicate)


def from_statement(statement: object) -> Evidence:
    """Read evidence from a parsed statement.

    EvidenceRejected names the JSON path: PG006 for a required field that is missing, PG002 for anything of the wrong type or form,
    and for a ``result`` or test list that contradicts the measurements.
    """
    about, predicate = from_in_toto(statement, PREDICATE_TYPE)
    evidence = Evidence(
        model_uri=about.name,
        model_digest=about.sha256,
        policy=_read_policy(required(predicate, "configuration", _PREDICATE)),
        run_id=_read_run_id(predicate),
        **_read_extension(required(predicate, "privacyGate", _PREDICATE)),
    )
    try:
        _check_consistent(evidence)
    except UsageError as exc:
        raise EvidenceRejected(f"{_EXTENSION}: {exc.message}") from exc
    _check_result(predicate, evidence)
    return evidence


def statement_bytes(evidence: Evidence) -> bytes:
    """Return the statement as the UTF-8 JSON bytes that are signed."""
    return json.dumps(to_statement(evidence), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def read_statement(payload: bytes) -> Evidence:
    """Read evidence from the very bytes that were verified; EvidenceRejected as :func:`from_statement`."""
    return from_statement(strict_json(payload, "statement"))


def _extension(evidence: Evidence) -> dict[str, Any]:
    tool = evidence.tool
    environment = {"python": encode(tool.python), "library": encode(tool.libraries)}
    if tool.mlflow is not None:
        environment["mlflow"] = encode(tool.mlflow)
    extension: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "tool": {"name": encode(tool.name), "version": encode(tool.version)},
        "environment": environment,
        "isolation": encode(tool.isolation),
    }
    for field in _stated_fields():
        value = getattr(evidence, field.name)
        if value is not None:
            extension[camel_case(field.name)] = encode(value)
    extension["validity"]["unknownLabels"] = encode(_unknown_labels(evidence))
    return extension


def _read_extension(value: object) -> dict[str, Any]:
    fields = dict(read_object(value, _EXTENSION))
    expect(fields, "schemaVersion", SCHEMA_VERSION, _EXTENSION)
    del fields["schemaVersion"]
    arguments: dict[str, Any] = {"tool": _read_tool(fields)}
    validity = dict(read_object(required(fields, "validity", _EXTENSION), f"{_EXTENSION}.validity"))
    unknown_labels = required(validity, "unknownLabels", f"{_EXTENSION}.validity")
    del validity["unknownLabels"]
    fields["validity"] = validity
    for field in _stated_fields():
        key = camel_case(field.name)
        if field.name in _OPTIONAL and key not in fields:
            continue
        path = f"{_EXTENSION}.{key}"
        arguments[field.name] = decode_field(Evidence, field.name, required(fields, key, _EXTENSION), path)
        del fields[key]
    refuse_unknown(fields, _EXTENSION)
    total = str(sum(side.unknown_labels for side in arguments["data"]))
    if unknown_labels != total:
        reject(
            f"{_EXTENSION}.validity.unknownLabels", f"expected {total}, the sum over the data, got {unknown_labels!r}"
        )
    return arguments


def _read_tool(fields: dict[str, Any]) -> ToolFacts:
    """Take ``tool``, ``environment`` and ``isolation`` out of the extension's fields and put them together again."""
    stated: dict[str, Any] = {}
    for key in ("tool", "environment"):
        path = f"{_EXTENSION}.{key}"
        stated[key] = dict(read_object(required(fields, key, _EXTENSION), path))
        del fields[key]
    isolation = required(fields, "isolation", _EXTENSION)
    del fields["isolation"]
    environment = stated["environment"]
    libraries = required(environment, "library", f"{_EXTENSION}.environment")
    del environment["library"]
    for name in ("name", "version"):
        required(stated["tool"], name, f"{_EXTENSION}.tool")
    together = {"libraries": libraries, "isolation": isolation}
    for part, allowed in ((stated["tool"], {"name", "version"}), (environment, {"python", "mlflow"})):
        refuse_unknown({key: value for key, value in part.items() if key not in allowed}, f"{_EXTENSION}.tool")
        together.update(part)
    return decode(ToolFacts, together, f"{_EXTENSION}.tool")


def _read_policy(value: object) -> PolicyReference:
    path = f"{_PREDICATE}.configuration"
    if not isinstance(value, list) or len(value) != 1:
        reject(path, "expected exactly one entry, the policy")
    entry = read_object(value[0], f"{path}[0]")
    name = decode_field(PolicyReference, "name", required(entry, "name", f"{path}[0]"), f"{path}[0].name")
    return PolicyReference(name=name, sha256=read_sha256(entry, f"{path}[0]"))


def _read_run_id(predicate: Mapping[str, Any]) -> str | None:
    if "url" not in predicate:
        return None
    url = decode_field(Evidence, "model_uri", predicate["url"], f"{_PREDICATE}.url")
    prefix, _, run_id = url.partition("runs:/")
    if prefix or not run_id:
        reject(f"{_PREDICATE}.url", "expected runs:/<run id>")
    return str(run_id)


def _check_consistent(evidence: Evidence) -> None:
    """Refuse what would let two readers see two results: an outcome that no test has, or two entries under one name."""
    if evidence.outcome not in _OUTCOMES:
        raise UsageError(f"outcome: expected one of {', '.join(_OUTCOMES)}, got {evidence.outcome!r}")
    if evidence.run_id == "":
        raise UsageError("run_id: expected an id or None, got an empty text")
    for name, digest in (("model_digest", evidence.model_digest), ("policy.sha256", evidence.policy.sha256)):
        check_sha256(name, digest)
    _check_once("attacks", (attack.id for attack in evidence.attacks))
    for attack in evidence.attacks:
        _check_once(f"attacks[{attack.id}].metrics", (metric.id for metric in attack.metrics))
    _check_once("data", (side.role for side in evidence.data))
    _check_once("reasonCodes", evidence.reason_codes)


def _check_once(where: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(f"{where}: {twice[0][:80]!r} stands twice")


def _check_result(predicate: Mapping[str, Any], evidence: Evidence) -> None:
    """Hold the plain in-toto fields to the extension: who reads only them must not see a better result."""
    lists = {}
    for key in ("passedTests", "warnedTests", "failedTests"):
        codes = required(predicate, key, _PREDICATE)
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            reject(f"{_PREDICATE}.{key}", "expected a list of reason codes")
        lists[key] = codes
    # Compared as sets, so that a later version may move a code from warned to failed and old evidence still reads.
    stated = sorted([*lists["warnedTests"], *lists["failedTests"]])
    if stated != sorted(evidence.reason_codes) or set(lists["passedTests"]) & set(stated):
        reject(f"{_PREDICATE}.failedTests", "the test lists contradict privacyGate.reasonCodes")
    expected = _result(evidence.outcome, lists["warnedTests"])
    if required(predicate, "result", _PREDICATE) != expected:
        reject(f"{_PREDICATE}.result", f"expected {expected} for the outcome {evidence.outcome}")


def _result(outcome: str, warned: Iterable[str]) -> str:
    if outcome != Outcome.PASS:
        return "FAILED"
    return "WARNED" if tuple(warned) else "PASSED"


def _by_effect(codes: Iterable[str]) -> tuple[list[str], list[str]]:
    warned: list[str] = []
    failed: list[str] = []
    for code in codes:
        warns = code in ReasonCode.__members__ and REASONS[ReasonCode(code)].effect is Effect.WARN
        (warned if warns else failed).append(str(encode(code)))
    return warned, failed


def _examined(evidence: Evidence) -> list[str]:
    """Return the codes that this test looked into; a check that was not made must not be listed as passed."""
    splits, validity, budget = evidence.splits, evidence.validity, evidence.privacy_budget
    looked = {
        ReasonCode.PG101: validity.blind_auc is not None,
        ReasonCode.PG102: splits.group_overlap is not None,
        ReasonCode.PG103: bool(evidence.data),
        ReasonCode.PG104: splits.as_logged is not None,
        ReasonCode.PG105: bool(evidence.data),
        ReasonCode.PG106: validity.tie_share is not None,
        ReasonCode.PG107: splits.used_for_tuning is not None,
        ReasonCode.PG109: validity.positive_control_auc is not None,
        ReasonCode.PG110: validity.asked_again_rows is not None,
        ReasonCode.PG201: bool(evidence.attacks),
        ReasonCode.PG203: bool(evidence.subgroups),
        ReasonCode.PG205: budget is not None and budget.epsilon_lower_bound is not None,
    }
    return [str(code) for code, examined in looked.items() if examined]


def _unknown_labels(evidence: Evidence) -> int:
    return sum(side.unknown_labels for side in evidence.data)


def _stated_fields() -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(Evidence) if field.name not in _ELSEWHERE]
