"""The ruling on one promotion. Read it top to bottom: this is why a version was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from mlflow_privacy_gate.errors import EvidenceRejected
from mlflow_privacy_gate.evidence.ledger import KnownTests
from mlflow_privacy_gate.evidence.officer_statements import Attached, VerifiedStatement, exemptions_in_force
from mlflow_privacy_gate.evidence.officers import Waiver
from mlflow_privacy_gate.evidence.verification import VerifiedEvidence, no_key_remedy, verify
from mlflow_privacy_gate.gate.history import history
from mlflow_privacy_gate.gate.officers import Promotable, answering, weigh
from mlflow_privacy_gate.gate.promotion import Decision, PromotionTarget, blocking
from mlflow_privacy_gate.gate.refusal import off_notice, refusal_text
from mlflow_privacy_gate.policy.judging import Verdict, judge, outcome_of
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.vocabulary import Effect, Finding, KeyRole, Outcome, ReasonCode


def decide(
    policy: Policy,
    attestations: Sequence[bytes | str],
    waivers: Sequence[bytes | str],
    sign_offs: Sequence[bytes | str],
    exemptions: Sequence[bytes | str] = (),
    *,
    target: PromotionTarget,
    now: datetime,
    known: KnownTests | None = None,
) -> Decision:
    """Allow one promotion at ``now`` only for evidence that is believed, that is of these bytes, and that is judged a pass.

    What is judged otherwise is allowed only where a privacy officer's waiver in force permits every finding that stands against it, and
    is then shown as waived, never as a pass. Everything handed in is a raw envelope (JSON bytes, or their base64 text) that nobody has
    checked; ``now`` is timezone-aware. ``known`` is what the ledger holds about these bytes; None where it cannot be reached from here, and
    then nothing is said of earlier tests: the store, which writes, always hands it in.
    """
    if policy.mode is Mode.OFF:
        return Decision(True, target, (), None, None, None, policy.mode, off_notice(policy, target))
    believed, doubts = _believe(policy, attestations, target, now)
    if not believed or target.model_digest is None:
        return _ruled(policy, target, doubts)
    keys, digest = policy.trusted_keys, target.model_digest
    exempting, unheard = exemptions_in_force(
        exemptions, keys=keys, model_digest=digest, workspace=target.workspace, now=now
    )
    judged = [(verified, judge(policy, verified.evidence, now=now, exempted=bool(exempting))) for verified in believed]
    newest, verdict = max(judged, key=_newest_then_worst)
    papers, asked = Attached(tuple(waivers), tuple(sign_offs)), Promotable(newest.envelope_sha256, target, now)
    answers: tuple[VerifiedStatement[Waiver], ...] = ()
    if known is not None:
        verdict, answers = _remembering(policy, newest, verdict, known, answering(policy, papers, asked))
    found = [_with_reasons(finding, unheard) for finding in verdict.findings]
    weighed = weigh(policy, found, papers, asked)
    permitting = tuple(dict.fromkeys((*answers, *weighed.waivers)))
    # What else was handed in and not believed cannot help, and cannot hurt newer evidence that is: it is told, no more.
    findings = (*weighed.findings, *(replace(doubt, effect_override=Effect.WARN) for doubt in doubts))
    ruling = _ruled(policy, target, findings, verdict, newest, waived=bool(permitting))
    return replace(ruling, waivers=permitting, sign_offs=weighed.sign_offs, exemptions=exempting)


def refuse(target: PromotionTarget, findings: Sequence[Finding]) -> Decision:
    """Refuse a promotion that could not be decided at all (no usable policy, no database): nothing can soften that."""
    refusal = refusal_text(target, findings, mode=Mode.ENFORCE)
    return Decision(False, target, tuple(findings), None, None, None, Mode.ENFORCE, refusal)


def hopeless(policy: Policy, *, has_evidence: bool) -> bool:
    """Whether a promotion is refused whatever the bytes are, so that they need not be read: nothing to believe, or nobody."""
    return not has_evidence or not _believes_anybody(policy)


def _believe(
    policy: Policy, attestations: Sequence[bytes | str], target: PromotionTarget, now: datetime
) -> tuple[list[VerifiedEvidence], list[Finding]]:
    """Verify every envelope against the bytes as they are now; give those that are believed, and a finding for all that stands against."""
    doubts = []
    if not _believes_anybody(policy):
        name = policy.source_name or "the policy"
        doubts.append(
            Finding(
                ReasonCode.PG003,
                f"No tester key stands in {name}, so no evidence can be believed.",
                remedy_override=no_key_remedy(policy.trusted_keys, KeyRole.TESTER),
            )
        )
    if not attestations:
        doubts.append(
            Finding(
                ReasonCode.PG001, "This version has no evidence: it was not checked, or its evidence was taken away."
            )
        )
    if target.model_digest_problem or (target.model_digest is None and not doubts):
        problem = target.model_digest_problem or "no reason is known"
        doubts.append(Finding(ReasonCode.PG007, f"The stored model could not be read: {problem}."))
    if doubts or target.model_digest is None:
        return [], doubts
    believed = []
    for envelope in dict.fromkeys(attestations):
        try:
            believed.append(
                verify(
                    envelope,
                    keys=policy.trusted_keys,
                    allow_unsigned=policy.evidence.unsafe_allow_unsigned,
                    model_digest=target.model_digest,
                    now=now,
                    allow_expired=True,  # its age is judged with everything else, where a waiver can be heard
                )
            )
        except EvidenceRejected as rejection:
            code = rejection.code or ReasonCode.PG002
            message = f"The evidence is not believed: {rejection.message}."
            doubts.append(Finding(code, message, remedy_override=rejection.remedy))
    return believed, doubts


def _believes_anybody(policy: Policy) -> bool:
    return policy.trusts(KeyRole.TESTER) or policy.evidence.unsafe_allow_unsigned


def _remembering(
    policy: Policy,
    newest: VerifiedEvidence,
    verdict: Verdict,
    known: KnownTests,
    waivers: Sequence[VerifiedStatement[Waiver]],
) -> tuple[Verdict, tuple[VerifiedStatement[Waiver], ...]]:
    """Add to a verdict what the ledger holds against it; give the waivers that answer for an earlier fail."""
    named = {verified.statement.evidence_sha256 for verified in waivers}
    held = history(policy, newest, known, answerable=named)
    if not held.findings:
        return verdict, ()
    findings = (*verdict.findings, *held.findings)
    used = tuple(verified for verified in waivers if verified.statement.evidence_sha256 in held.answered)
    return replace(verdict, findings=findings, outcome=outcome_of(findings)), used


def _with_reasons(finding: Finding, unheard: Sequence[str]) -> Finding:
    """Say with a missing exemption why those that were handed in are none."""
    if finding.code is not ReasonCode.PG401 or not unheard:
        return finding
    return replace(finding, message=f"{finding.message.rstrip('.')}; {'; '.join(unheard)}.")


def _newest_then_worst(judged: tuple[VerifiedEvidence, Verdict]) -> tuple[datetime, bool]:
    """Order by the time of the test; of two made at one moment, the one that does not pass counts."""
    verified, verdict = judged
    return verified.evidence.tested_at, verdict.outcome is not Outcome.PASS


def _ruled(
    policy: Policy,
    target: PromotionTarget,
    findings: Sequence[Finding],
    verdict: Verdict | None = None,
    verified: VerifiedEvidence | None = None,
    *,
    waived: bool = False,
) -> Decision:
    stated = verdict is not None and (verdict.outcome is Outcome.PASS or waived)
    passed = stated and not blocking(findings)
    return Decision(
        allowed=passed or policy.mode is Mode.WARN,
        target=target,
        findings=tuple(findings),
        verdict=verdict,
        evidence=verified.evidence if verified else None,
        envelope_sha256=verified.envelope_sha256 if verified else None,
        mode=policy.mode,
        refusal="" if passed else refusal_text(target, findings, mode=policy.mode, policy=policy, verified=verified),
    )
