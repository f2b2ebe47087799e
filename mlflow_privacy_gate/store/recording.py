"""What goes into the ledger: believed attestations and officers' statements, each once, and every decision."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.envelope import open_envelope, strict_base64
from mlflow_privacy_gate.evidence.facts import Evidence
from mlflow_privacy_gate.evidence.ledger import Entry, EntryKind, Result
from mlflow_privacy_gate.evidence.officer_statements import attached, verify_statement
from mlflow_privacy_gate.evidence.officers import Exemption, SignOff, Waiver
from mlflow_privacy_gate.evidence.statement import read_statement
from mlflow_privacy_gate.evidence.verification import verify
from mlflow_privacy_gate.gate import Decision
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.registry.ledger._interface import LedgerTurn
from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG, Outcome

_KINDS: Mapping[type, EntryKind] = {
    SignOff: EntryKind.SIGN_OFF,
    Waiver: EntryKind.WAIVER,
    Exemption: EntryKind.EXEMPTION,
}


@dataclass(frozen=True)
class Asker:
    """Who asks: the account (``unauthenticated`` where there is none) and the workspace."""

    actor: str
    workspace: str


Who = Callable[[], Asker]


@dataclass(frozen=True)
class Recorder:
    """Writes rows about one registered model in one turn."""

    ledger: LedgerTurn
    asker: Asker
    policy: Policy | None
    now: datetime

    def papers(self, name: str, version: str | None, tags: Mapping[str, str]) -> None:
        """Record the attestation and the statements among these tags that are believed now and that the ledger does not hold yet."""
        papers = attached(tags)
        envelope = self._unrecorded(tags.get(ATTESTATION_TAG))
        evidence = _believed(envelope, self._policy(), self.now) if envelope else None
        if envelope and evidence:
            self._paper(
                EntryKind.ATTESTATION,
                (name, version),
                envelope,
                evidence.reason_codes,
                digest=evidence.model_digest,
                splits=_splits(evidence),
            )
        for kind, texts in ((SignOff, papers.sign_offs), (Waiver, papers.waivers), (Exemption, papers.exemptions)):
            for text in texts:
                self._statement(kind, (name, version), text)

    def decision(self, decision: Decision, *, result: Result | None = None) -> None:
        """Record a decision, as it came out unless ``result`` says otherwise."""
        target, evidence = decision.target, decision.evidence
        self.ledger.append(
            Entry(
                at=self.now,
                kind=EntryKind.DECISION,
                actor=_clean(self.asker.actor),
                workspace=_clean(self.asker.workspace),
                name=_clean(target.name),
                result=result or _result(decision),
                version=_clean(target.version),
                model_digest=target.model_digest,
                split_digests=_splits(evidence) if evidence else (),
                target=_clean(f"{target.route} {target.value}"),
                mode=str(decision.mode),
                policy_sha256=self.policy.sha256 or None if self.policy else None,
                envelope_sha256=decision.envelope_sha256,
                codes=decision.reason_codes,
            )
        )

    def _policy(self) -> Policy:
        assert self.policy is not None  # evidence is only recorded where a policy says whose signature counts
        return self.policy

    def _unrecorded(self, tag: str | bytes | None) -> bytes | None:
        """Return an envelope's JSON, None where it can be none or was recorded before."""
        try:
            content = strict_base64(tag, "tag") if isinstance(tag, str) else tag
        except EvidenceRejected:
            return None
        return None if content is None or self.ledger.holds(hashlib.sha256(content).hexdigest()) else content

    def _statement(
        self, kind: type[SignOff | Waiver | Exemption], about: tuple[str, str | None], text: str | bytes
    ) -> None:
        envelope = self._unrecorded(text)
        if envelope is None:
            return
        try:
            found = verify_statement(kind, envelope, keys=self._policy().trusted_keys, now=self.now).statement
        except EvidenceRejected:
            return  # anyone may write a tag: what nobody believes would only fill the ledger
        codes = tuple(map(str, found.findings)) if isinstance(found, Waiver) else ()
        digest = found.model_digest if isinstance(found, Exemption) else None
        self._paper(_KINDS[kind], about, envelope, codes, digest=digest)

    def _paper(
        self,
        kind: EntryKind,
        about: tuple[str, str | None],
        envelope: bytes,
        codes: tuple[str, ...],
        *,
        digest: str | None = None,
        splits: tuple[str, ...] = (),
    ) -> None:
        entry = Entry(
            at=self.now,
            kind=kind,
            actor=_clean(self.asker.actor),
            workspace=_clean(self.asker.workspace),
            name=_clean(about[0]),
            result=Result.RECORDED,
            version=about[1],
            model_digest=digest,
            split_digests=splits,
            policy_sha256=self._policy().sha256 or None,
            envelope_sha256=hashlib.sha256(envelope).hexdigest(),
            codes=codes,
        )
        self.ledger.append(entry, envelope.decode("utf-8"))


def newest_of(envelopes: Sequence[bytes]) -> tuple[str, ...]:
    """Give the newest of the tests that the ledger holds, as it would stand in a tag; empty where there is none."""
    tested = [(read_statement(open_envelope(envelope).payload).tested_at, envelope) for envelope in envelopes]
    return (base64.b64encode(max(tested)[1]).decode("ascii"),) if tested else ()


def _believed(envelope: bytes, policy: Policy, now: datetime) -> Evidence | None:
    """Give the evidence of an envelope that is believed now, whatever bytes it is about and however old it is."""
    try:
        claimed = read_statement(open_envelope(envelope).payload).model_digest
        return verify(
            envelope,
            keys=policy.trusted_keys,
            allow_unsigned=policy.evidence.unsafe_allow_unsigned,
            model_digest=claimed,
            now=now,
            allow_expired=True,
        ).evidence
    except EvidenceRejected:
        return None


def _result(decision: Decision) -> Result:
    if decision.mode is Mode.OFF:
        return Result.NOT_JUDGED
    if not decision.allowed:
        return Result.REFUSED
    if decision.blocking:
        return Result.WOULD_REFUSE
    return Result.WAIVED if decision.outcome is Outcome.WAIVED else Result.ALLOWED


def _splits(evidence: Evidence) -> tuple[str, ...]:
    return tuple(side.digest for side in sorted(evidence.data, key=lambda side: side.role))


def _clean(text: str) -> str:
    """Keep what UTF-8 can hold: a name that came in over HTTP may hold half a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")
