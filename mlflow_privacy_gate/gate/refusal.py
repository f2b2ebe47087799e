"""The refusal as the person who asked reads it: in MLflow's alias dialog, in a terminal, in a client's exception.

Plain text in short lines; the first line stands alone. It says what was refused, then every finding with its numbers, then what would
allow it, and last where the evidence is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mlflow_privacy_gate.evidence.verification import VerifiedEvidence
from mlflow_privacy_gate.gate.promotion import PromotionTarget, Route, blocking
from mlflow_privacy_gate.policy.model import Mode, Policy
from mlflow_privacy_gate.vocabulary import REASONS, Effect, Finding

LINE = 96
NAME_LIMIT = 120


def refusal_text(
    target: PromotionTarget,
    findings: Sequence[Finding],
    *,
    mode: Mode,
    policy: Policy | None = None,
    verified: VerifiedEvidence | None = None,
) -> str:
    """Write the refusal; in mode ``warn`` it says what would have been refused."""
    against = blocking(findings)
    others = [finding for finding in findings if finding not in against]
    reasons = "; ".join(dict.fromkeys(f"{REASONS[finding.code].title} ({finding.code})" for finding in against))
    verb = "would have refused" if mode is Mode.WARN else "refused"
    lines = [f"Privacy gate {verb} {_asked(target)}: {reasons}."]
    if mode is Mode.WARN:
        lines.append("It was allowed, because the policy's mode is warn.")
    lines += ["", "Found:", *_items(f"{finding.code}: {finding.message}" for finding in against)]
    lines += _items(said_beside(finding) for finding in others)
    lines += ["", "What would allow it:", *_items(dict.fromkeys(f"{finding.remedy}." for finding in against))]
    lines += ["", *_wrapped(_evidence(target, verified), "")]
    if policy is not None:
        lines += _wrapped(f"Policy: {policy.source_name} (sha256 {policy.sha256[:16]}), mode {policy.mode}.", "")
    return "\n".join(lines)


def said_beside(finding: Finding) -> str:
    """Say a finding that does not stand against the promotion, and why it does not."""
    return f"{finding.code} ({'waived' if finding.effect is Effect.WAIVED else 'warning'}): {finding.message}"


def off_notice(policy: Policy, target: PromotionTarget) -> str:
    """Say that nothing was judged, since the policy switches the gate off."""
    return (
        f"Privacy gate is off ({policy.source_name}: mode off): {_asked(target)} was allowed, and nothing was judged."
    )


def _asked(target: PromotionTarget) -> str:
    name, value = _inline(target.name), _inline(target.value)
    version = f"{name} version {_inline(target.version)}"
    return {
        Route.STAGE: f"stage {value} for {version}",
        Route.ALIAS: f"alias {value} for {version}",
        Route.CREATE: f"{version} as a new version of a guarded model",
        Route.COPY: f"the copy of a version into the guarded model {value}",
        Route.RENAME: f"the guarded name {value} for {version}",
    }[target.route]


def _evidence(target: PromotionTarget, verified: VerifiedEvidence | None) -> str:
    place = _inline(target.evidence_location) if target.evidence_location else "no place is known"
    if verified is None:
        return f"Evidence: {place}." if target.evidence_location else "Evidence: none that is believed."
    signer = f"signed by {_inline(verified.key_id)}" if verified.key_id else "unsigned"
    tested = f"{verified.evidence.tested_at:%Y-%m-%d %H:%M} UTC"
    return f"Evidence: {place}; tested {tested}, {signer}, envelope sha256 {verified.envelope_sha256[:16]}."


def _items(texts: Iterator[str] | dict[str, None]) -> list[str]:
    return [line for text in texts for line in _wrapped(text, "- ")]


def _wrapped(text: str, bullet: str) -> list[str]:
    clean = "".join(character if character.isprintable() else " " for character in text)
    return textwrap.wrap(
        clean,
        LINE,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _inline(text: str) -> str:
    """Keep a name on its line: no control or formatting characters, and a length that fits."""
    clean = "".join(character if character.isprintable() else "?" for character in text)
    return clean if len(clean) <= NAME_LIMIT else f"{clean[: NAME_LIMIT - 1]}…"
