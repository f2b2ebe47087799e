"""Officers' statements as cards and reports print them, from what counted in a decision."""

from __future__ import annotations

from mlflow_privacy_gate.cards.particulars import SignOff, WaiverInForce
from mlflow_privacy_gate.gate.officers import permitted
from mlflow_privacy_gate.gate.promotion import Decision
from mlflow_privacy_gate.vocabulary import Outcome


def shown_waivers(decision: Decision) -> tuple[WaiverInForce, ...]:
    """Give the waivers by which a promotion is allowed; none where it is refused in spite of them."""
    if decision.outcome is not Outcome.WAIVED:
        return ()
    return tuple(
        WaiverInForce(
            covers=tuple(str(code) for code in waiver.findings if code in permitted(waiver)),
            reason=waiver.reason,
            requested_by=waiver.requested_by,
            approved_by=waiver.approved_by,
            effective_until=waiver.effective_until,
            reference=waiver.reference,
            compensating_controls=waiver.compensating_controls,
        )
        for waiver in (verified.statement for verified in decision.waivers)
    )


def shown_sign_offs(decision: Decision) -> tuple[SignOff, ...]:
    """Give the sign-offs that count for a decision."""
    return tuple(
        SignOff(
            signed_by=verified.statement.signed_by,
            signed_at=verified.statement.stated_at,
            statement_sha256=verified.envelope_sha256,
            remark=verified.statement.remark,
        )
        for verified in decision.sign_offs
    )
