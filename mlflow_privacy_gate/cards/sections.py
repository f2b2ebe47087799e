"""The sections of a card and report in plain words: who, what, on which data, how far the test could see."""

from __future__ import annotations

from mlflow_privacy_gate.cards import numbers
from mlflow_privacy_gate.cards.mitigations import WITHIN, MitigationRow
from mlflow_privacy_gate.cards.particulars import Particulars
from mlflow_privacy_gate.cards.rows import NOT_JUDGED, NOT_MEASURED, FieldRow
from mlflow_privacy_gate.evidence.facts import DataFacts, Evidence, ValidityFacts
from mlflow_privacy_gate.policy.judging import Verdict
from mlflow_privacy_gate.vocabulary import Effect, Membership, Outcome, ReasonCode, SplitOrigin, severity_word

_ORIGINS = {
    SplitOrigin.MANIFEST: "the manifest that the training run logged (log_splits)",
    SplitOrigin.DATASET_INPUTS: "the dataset inputs of the training run",
    SplitOrigin.CALLER: "handed in by whoever ran the test",
}
_MEMBERSHIP = {
    Membership.REPRODUCED: "reproduced: trained again on the members with its seed, the model gives the logged model's answers",
    Membership.DECLARED: "declared by whoever logged or handed in the splits; not reproduced by a refit",
}
_NOT_LOGGED = "nothing was logged to compare with"
_NOT_RUN = "this check was not run"
_NOT_IN_RECORD = "this view was made from the recorded evidence, which does not hold it"


def in_short(verdict: Verdict) -> tuple[str, ...]:
    """Say in words without statistics what was found."""
    if verdict.attack_auc is None:
        return (_opening(verdict), "No attack that decides could be measured.")
    picture = (
        f"Shown one row the model was trained on and one it was not, the strongest attack ({verdict.attack}) picks the training row in "
        f"{_of_100(verdict.attack_auc)} such pairs; a coin would pick it in 50."
    )
    doubt = (
        (" As the test could not decide, do not rely on this number.",)
        if verdict.outcome is Outcome.INCONCLUSIVE
        else ()
    )
    return (_opening(verdict), "".join((picture, *doubt)))


def severity(verdict: Verdict) -> str:
    """Give the word for the attack AUC; a test that could not decide has none, since its number may mean nothing."""
    if verdict.attack_auc is None:
        return NOT_MEASURED
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return NOT_JUDGED
    return severity_word(verdict.attack_auc, verdict.margin)


def _of_100(auc: float) -> str:
    if auc < 1 and round(auc * 100) == 100:
        return "more than 99 of 100"
    return f"about {round(auc * 100)} of 100" if auc < 1 else "all"


def next_steps(verdict: Verdict, outcome: Outcome, tried: tuple[MitigationRow, ...]) -> tuple[str, ...]:
    """Say in words without statistics what to do now; ``outcome`` is ``waived`` where a waiver is in force.

    ``tried``: the mitigations that were measured, best first.
    """
    if outcome is Outcome.PASS:
        return (
            "Nothing has to be done before the date until which this result is valid; then the version is checked again.",
            "Check every new version, also one that was trained again on the same rows.",
        )
    opening = {
        Outcome.FAIL: "Do not promote this version.",
        Outcome.WAIVED: "Promote this version only as the waiver says, and replace it before the waiver ends.",
    }.get(outcome, "Do not promote this version: only a stated pass is a pass.")
    blocking = [finding for finding in verdict.findings if finding.effect is not Effect.WARN]
    remedies = dict.fromkeys(finding.remedy for finding in blocking)
    return (
        opening,
        *(f"{remedy[:1].upper()}{remedy[1:]}." for remedy in remedies),
        *(_best_of(best) for best in tried[:1]),
        "Handle every copy of the model like the personal data it was trained on, until a version of it passes.",
    )


def _best_of(best: MitigationRow) -> str:
    if not best.helps:
        return "Nothing that was tried on this model made it harder to tell who was in the training data; see the mitigations."
    enough = "" if best.effect == WITHIN else " It is not enough by itself."
    return f"Of what was tried on this model, this helped most: {best.description} ({best.text}).{enough}"


def _opening(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.PASS:
        return "The attacks that were run told training rows from held-out rows no better than the margin allows."
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return "The test could not decide, so it counts as not passed; the findings say why."
    if any(finding.code is ReasonCode.PG201 for finding in verdict.findings):
        return (
            "The test failed. Whoever can ask this model about a record can tell, better than the margin allows, "
            "whether that record was used to train it."
        )
    return "The test failed; the findings say why."


def confidence(verdict: Verdict) -> str:
    """Print the rule's own number, or why there is none."""
    if verdict.confidence_auc is None:
        return f"{NOT_MEASURED} (the model gives no class probabilities)"
    return numbers.plain(verdict.confidence_auc, limit=verdict.margin)


def identity(evidence: Evidence, extra: Particulars) -> tuple[FieldRow, ...]:
    """Which exact model, trained on whose data, tested by whom."""
    unregistered, unstated = "the model is not registered", "the card does not say"
    author = extra.author
    return (
        FieldRow("Model", evidence.registered_model, unregistered),
        FieldRow("Version", evidence.version, unregistered),
        FieldRow("Model URI", evidence.model_uri),
        FieldRow("Model digest (sha256)", evidence.model_digest),
        FieldRow("Training run", evidence.run_id, "the model names no run"),
        FieldRow("Training data", _stated(author.training_data) or _logged_name(evidence), "neither logged nor stated"),
        FieldRow("Cohort", _stated(author.cohort), unstated),
        FieldRow("Use agreement", _stated(author.use_agreement), unstated),
        FieldRow("Release context", _stated(author.release_context), f"{unstated}, and never inferred"),
        FieldRow("Data categories", ", ".join(evidence.card.data_categories) or "none declared on the card"),
        FieldRow("Personal data", _yes_no(evidence.card.personal_data), "the card does not say"),
        FieldRow("Evaluator", extra.evaluator, _NOT_IN_RECORD if extra.from_record else "nobody was named"),
    )


def _stated(words: str | None) -> str | None:
    return None if words is None else f"{words} (as the card's author states)"


def _logged_name(evidence: Evidence) -> str | None:
    members = evidence.side("members")
    return f"{members.mlflow_name} (the name it was logged under)" if members and members.mlflow_name else None


def data(evidence: Evidence) -> tuple[FieldRow, ...]:
    """The rows used, and where the splits came from."""
    splits = evidence.splits
    return (
        *_side("Members (training rows)", evidence.side("members")),
        *_side("Non-members (held-out rows)", evidence.side("non_members")),
        FieldRow("Where the splits came from", _ORIGINS[splits.origin]),
        FieldRow("Membership", _MEMBERSHIP[splits.membership]),
        FieldRow("Same rows as logged", _yes_no(splits.as_logged), splits.as_logged_note or _NOT_LOGGED),
    )


def _side(label: str, side: DataFacts | None) -> tuple[FieldRow, ...]:
    if side is None:
        return (FieldRow(label, None, "this side is missing from the evidence"),)
    used = f"{numbers.count(side.rows_used)} of {numbers.count(side.rows)} rows used"
    if side.unknown_labels:
        used += f"; {numbers.count(side.unknown_labels)} with a label unknown to the model"
    return (
        FieldRow(label, used),
        FieldRow(f"{label}: source", side.source, "no source was logged"),
        FieldRow(f"{label}: digest", side.digest),
    )


def validity(evidence: Evidence) -> tuple[FieldRow, ...]:
    """The checks of the test itself."""
    splits, facts = evidence.splits, evidence.validity
    tuning = {True: "yes: tuning saw them", False: "no"}
    return (
        FieldRow("Splits told apart without the model (blind AUC)", _blind(facts), _NOT_RUN),
        FieldRow(
            "Rows on both sides, dropped from both",
            f"{numbers.count(splits.shared_rows)} (duplication alone predicts about {splits.shared_rows_expected:,.0f})",
        ),
        FieldRow("Groups on both sides", _optional_count(splits.group_overlap), "no group column was named"),
        FieldRow(
            "Non-members used for tuning",
            None if splits.used_for_tuning is None else tuning[splits.used_for_tuning],
            "not logged",
        ),
        FieldRow("Share of tied scores", _optional(facts.tie_share), _NOT_RUN),
        FieldRow("Positive control (AUC of a reference model that does leak)", _control(facts), "no reference models"),
        FieldRow("Rows answered otherwise when asked again", _optional_count(facts.unstable_rows), _NOT_RUN),
        FieldRow(
            "Training rows inside the artifact itself", facts.holds_training_rows, "nothing of the kind was noted"
        ),
    )


def _blind(facts: ValidityFacts) -> str | None:
    if facts.blind_auc is None:
        return None
    low = f", lower bound {numbers.plain(facts.blind_ci_low)}" if facts.blind_ci_low is not None else ""
    columns = f"; most telling columns: {', '.join(facts.blind_columns)}" if facts.blind_columns else ""
    return f"{numbers.plain(facts.blind_auc)}{low}{columns}"


def _control(facts: ValidityFacts) -> str | None:
    if facts.positive_control_auc is None:
        return None
    low = facts.positive_control_ci_low
    return numbers.plain(facts.positive_control_auc) + (
        f", lower bound {numbers.plain(low)}" if low is not None else ""
    )


def reach(evidence: Evidence, extra: Particulars) -> tuple[FieldRow, ...]:
    """What helps to read the result: rows per parameter and the gap between training and held-out accuracy."""
    members = evidence.side("members")
    per_parameter = None
    if members is not None and extra.parameters:
        per_parameter = (
            f"{numbers.plain(members.rows / extra.parameters)} ({numbers.count(extra.parameters)} parameters)"
        )
    gap = None
    if extra.accuracy_members is not None and extra.accuracy_non_members is not None:
        difference = numbers.headroom(extra.accuracy_members, extra.accuracy_non_members)
        sides = numbers.plain(extra.accuracy_members), numbers.plain(extra.accuracy_non_members)
        gap = f"{difference} ({sides[0]} on members, {sides[1]} on non-members)"
    uncounted, unmeasured = "the parameters cannot be counted", "accuracy was not measured on both sides"
    return (
        FieldRow("Training rows per parameter", per_parameter, _NOT_IN_RECORD if extra.from_record else uncounted),
        FieldRow("Train-test gap (accuracy)", gap, _NOT_IN_RECORD if extra.from_record else unmeasured),
    )


def environment(evidence: Evidence) -> tuple[FieldRow, ...]:
    """What it takes to measure the same again."""
    tool = evidence.tool
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(tool.libraries.items()))
    seeds = ", ".join(f"{attack.id} {attack.seed}" for attack in evidence.attacks if attack.seed is not None)
    references = ", ".join(
        f"{attack.id} {attack.references} ({attack.references_origin or 'origin unknown'})"
        for attack in evidence.attacks
        if attack.references
    )
    return (
        FieldRow("Python", tool.python),
        FieldRow("MLflow", tool.mlflow, "not recorded"),
        FieldRow("Libraries", libraries or None, "not recorded"),
        FieldRow("Model isolated in", tool.isolation),
        FieldRow("Seeds", seeds or "none: no attack that was run draws at random"),
        FieldRow("Reference models", references or "none: no attack that was run uses them"),
    )


def provenance(evidence: Evidence, verdict: Verdict, extra: Particulars) -> tuple[FieldRow, ...]:
    """By which tool, under which policy, signed by whom."""
    tool = evidence.tool
    return (
        FieldRow("Margin in force", f"{numbers.exact(verdict.margin)}, from {verdict.margin_source}"),
        FieldRow("Policy at the test", f"{evidence.policy.name}, sha256 {evidence.policy.sha256}"),
        FieldRow("Tool", f"{tool.name} {tool.version}"),
        FieldRow(
            "Signed by key", extra.signer, "the evidence is unsigned; a gate that requires signatures stays closed"
        ),
        FieldRow("Attestation (sha256)", extra.attestation_sha256, "no attestation was written"),
        FieldRow(
            "Tests of these bytes so far", _optional_count(extra.tests_so_far), "the ledger cannot be read from here"
        ),
    )


def power(evidence: Evidence) -> str:
    """Say what the test could not have seen."""
    detectable = evidence.validity.smallest_detectable_auc
    used = [side.rows_used for side in evidence.data]
    if detectable is None or not used:
        return "How small a leak this test could have seen was not worked out."
    return (
        f"With {numbers.count(min(used))} rows a side, a leak below AUC {numbers.plain(detectable)} "
        "would be missed more often than one time in five."
    )


def _yes_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _optional(value: float | None) -> str | None:
    return None if value is None else numbers.plain(value)


def _optional_count(value: int | None) -> str | None:
    return None if value is None else numbers.count(value)
