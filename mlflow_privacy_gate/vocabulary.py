"""The words of this project: outcomes, reason codes, attack names, tag names. No behaviour, no imports of ours."""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:

    class StrEnum(str, enum.Enum):
        """``enum.StrEnum`` for Python 3.10."""

        __str__ = str.__str__


RULE_NAME = "Agent Wranglers MLO-41"
# The rule whose 0.55 this project applies; CC BY 4.0, so its link stands wherever the margin does.
RULE_URL = (
    "https://agentwranglers.se/playbook/machine-learning/people-affected-by-the-model/training-data-extraction-test"
)
RULE_CREDIT_HTML = f'<a href="{RULE_URL}">Agent Wranglers machine learning playbook</a>'
RULE_MARGIN = 0.55


class Outcome(StrEnum):
    """What a policy says of a model; only ``pass`` is a pass."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    WAIVED = "waived"


EXIT_CODES: Mapping[Outcome, int] = MappingProxyType(
    {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 3, Outcome.WAIVED: 0}
)


class RemovalAnswer(StrEnum):
    """What an audit of data removal may say of a set of rows; none of these words proves anything."""

    NOT_MEMORISED = "not memorised"
    INCONCLUSIVE = "inconclusive"
    NOT_RULED_OUT = "memorisation not ruled out"


# From the most to the least favourable, with the exit code of ``audit-removal``.
REMOVAL_EXIT_CODES: Mapping[RemovalAnswer, int] = MappingProxyType(
    {RemovalAnswer.NOT_MEMORISED: 0, RemovalAnswer.INCONCLUSIVE: 3, RemovalAnswer.NOT_RULED_OUT: 1}
)


class Effect(StrEnum):
    """What a finding does to a verdict or a decision."""

    WARN = "warn"
    INCONCLUSIVE = "inconclusive"
    BROKEN = "broken"  # the test itself is broken: inconclusive, and outranks a fail
    FAIL = "fail"
    REFUSE = "refuse"  # at the gate only: the evidence is not believed, or something else is missing
    WAIVED = "waived"  # at the gate only: it stands, and a signed waiver permits this promotion in spite of it


class ReasonCode(StrEnum):
    """Stable codes of findings; documented one by one in the README."""

    PG001 = "PG001"
    PG002 = "PG002"
    PG003 = "PG003"
    PG004 = "PG004"
    PG005 = "PG005"
    PG006 = "PG006"
    PG007 = "PG007"
    PG008 = "PG008"
    PG101 = "PG101"
    PG102 = "PG102"
    PG103 = "PG103"
    PG104 = "PG104"
    PG105 = "PG105"
    PG106 = "PG106"
    PG107 = "PG107"
    PG108 = "PG108"
    PG109 = "PG109"
    PG110 = "PG110"
    PG111 = "PG111"
    PG201 = "PG201"
    PG202 = "PG202"
    PG203 = "PG203"
    PG205 = "PG205"
    PG301 = "PG301"
    PG302 = "PG302"
    PG303 = "PG303"
    PG401 = "PG401"
    PG402 = "PG402"
    PG403 = "PG403"
    PG404 = "PG404"
    PG901 = "PG901"
    PG902 = "PG902"
    PG909 = "PG909"


@dataclass(frozen=True)
class Reason:
    """What a code means: a title, what it does, what would lift it, and whether a waiver may cover it."""

    title: str
    effect: Effect
    remedy: str
    waivable: bool = True


REASONS: Mapping[ReasonCode, Reason] = MappingProxyType(
    {
        ReasonCode.PG001: Reason(
            "no evidence found",
            Effect.REFUSE,
            "run `mlflow-privacy-gate check` on this version",
            waivable=False,  # a waiver names the evidence that it is about
        ),
        ReasonCode.PG002: Reason(
            "bad or missing signature",
            Effect.REFUSE,
            "check again with a signing key that the policy trusts (`--key`)",
            waivable=False,
        ),
        ReasonCode.PG003: Reason(
            "no trusted key of that role",
            Effect.REFUSE,
            "sign with a key that the policy lists in that role; where it lists none, run `mlflow-privacy-gate init` and let the server "
            "read that policy (PRIVACY_GATE_POLICY)",
            waivable=False,
        ),
        ReasonCode.PG004: Reason(
            "evidence is for other bytes",
            Effect.REFUSE,
            "the stored model differs from the tested one: find out why, then check the version again",
            waivable=False,
        ),
        ReasonCode.PG005: Reason("evidence expired or not yet valid", Effect.REFUSE, "check the version again"),
        ReasonCode.PG006: Reason(
            "evidence lacks what the policy requires",
            Effect.REFUSE,
            "check the version again under the policy in force",
        ),
        ReasonCode.PG007: Reason(
            "could not look",
            Effect.REFUSE,
            "try again when the store or artifact location can be reached",
            waivable=False,  # bytes that nobody has seen may be any bytes
        ),
        ReasonCode.PG008: Reason(
            "older than what the ledger knows", Effect.REFUSE, "use the newest test of these bytes, or check again"
        ),
        ReasonCode.PG101: Reason(
            "the splits differ without the model",
            Effect.BROKEN,
            "draw members and non-members at random from one source (see the columns named), retrain, check again",
        ),
        ReasonCode.PG102: Reason(
            "a group is on both sides",
            Effect.INCONCLUSIVE,
            "split by group, so that no person or site is on both sides",
        ),
        ReasonCode.PG103: Reason(
            "rows shared by both splits", Effect.BROKEN, "use non-members that the model was not trained on"
        ),
        ReasonCode.PG104: Reason(
            "the splits are not the run's",
            Effect.BROKEN,
            "hand in the very splits that were logged, whole, or log them with `log_splits`",
        ),
        ReasonCode.PG105: Reason("too few rows", Effect.INCONCLUSIVE, "use more rows on each side"),
        ReasonCode.PG106: Reason("coarse or constant scores", Effect.WARN, "read the label-only result beside it"),
        ReasonCode.PG107: Reason("tuning used the non-members", Effect.WARN, "keep a split that tuning never saw"),
        ReasonCode.PG108: Reason(
            "an earlier test of these bytes failed, on other splits or under a stricter claim",
            Effect.INCONCLUSIVE,
            "test on the splits that failed, with its rows and its claims, or have a privacy officer sign a waiver that names that test",
        ),
        ReasonCode.PG109: Reason(
            "the positive control was not caught",
            Effect.BROKEN,
            "the test could not see a leak that is there: more rows",
        ),
        ReasonCode.PG110: Reason(
            "the model answers otherwise when asked again",
            Effect.INCONCLUSIVE,
            "let it predict without sampling, dropout or noise, log it again and check that version",
        ),
        ReasonCode.PG111: Reason(
            "the test could not be made",
            Effect.INCONCLUSIVE,
            "mend the model, rows or card that the message names, and check again",
        ),
        ReasonCode.PG201: Reason(
            "attack AUC over the margin",
            Effect.FAIL,
            "retrain so that it memorises less and check the new version; until then treat the model as personal data",
        ),
        ReasonCode.PG202: Reason(
            "TPR at low FPR over its limit", Effect.FAIL, "find and protect the exposed rows, retrain and check again"
        ),
        ReasonCode.PG203: Reason("a subgroup over the margin", Effect.FAIL, "retrain with that group protected"),
        ReasonCode.PG205: Reason(
            "the differential privacy claim is contradicted", Effect.FAIL, "correct the claim, or the training"
        ),
        ReasonCode.PG301: Reason(
            "sign-off missing",
            Effect.REFUSE,
            "have a privacy officer sign off (`mlflow-privacy-gate sign-off`)",
            waivable=False,  # whoever may sign the waiver may as well sign off
        ),
        ReasonCode.PG302: Reason(
            "waiver expired or out of scope",
            Effect.REFUSE,
            "have a new waiver signed (`mlflow-privacy-gate waive`)",
            waivable=False,
        ),
        ReasonCode.PG303: Reason(
            "four eyes needed", Effect.REFUSE, "someone else than the requester must approve", waivable=False
        ),
        ReasonCode.PG401: Reason(
            "exemption without a statement",
            Effect.INCONCLUSIVE,
            "remove `personal_data: false` from the card, or have a privacy officer sign the exemption",
        ),
        ReasonCode.PG402: Reason(
            "denied data category", Effect.FAIL, "models on this category may not be promoted", waivable=False
        ),
        ReasonCode.PG403: Reason(
            "the artifact itself holds training rows", Effect.WARN, "treat the file as a copy of those rows"
        ),
        ReasonCode.PG404: Reason(
            "the card's own margin cannot be used",
            Effect.INCONCLUSIVE,
            "lower `max_attack_auc` on the card to the policy's margin, or remove it, and check again",
        ),
        ReasonCode.PG901: Reason(
            "the policy cannot be used",
            Effect.REFUSE,
            "mend the policy file the server names (`mlflow-privacy-gate policy lint`)",
            waivable=False,
        ),
        ReasonCode.PG902: Reason(
            "the ledger or registry database failed",
            Effect.REFUSE,
            "try again when the database answers",
            waivable=False,
        ),
        ReasonCode.PG909: Reason(
            "internal fault of the gate", Effect.REFUSE, "report it with the server's log", waivable=False
        ),
    }
)


@dataclass(frozen=True)
class Finding:
    """One thing found, in words with its numbers, under a stable code.

    ``effect`` and ``remedy`` are the code's own unless a verdict or decision says otherwise. ``value`` and ``limit`` are the plain
    numbers behind the sentence (an AUC or a rate: a fraction in [0, 1]; or a count), where there are any.
    """

    code: ReasonCode
    message: str
    attack: str | None = None
    value: float | None = None
    limit: float | None = None
    effect_override: Effect | None = None
    remedy_override: str | None = None

    @property
    def effect(self) -> Effect:
        """What this finding does."""
        return self.effect_override or REASONS[self.code].effect

    @property
    def remedy(self) -> str:
        """What would lift this finding."""
        return self.remedy_override or REASONS[self.code].remedy


class Need(StrEnum):
    """What an attack must be given."""

    PROBABILITIES = "probabilities"
    LABELS_ONLY = "predicted labels"
    PREDICTIONS = "regression predictions"
    LOG_LIKELIHOOD = "log-likelihood"
    REFERENCE_LIKELIHOOD = "reference log-likelihood"
    REFERENCES = "reference models"
    FEATURES = "features"


@dataclass(frozen=True)
class AttackWords:
    """How an attack is named and cited; ``formula`` is its id with version, as it stands in evidence."""

    formula: str
    needs: frozenset[Need]
    source: str
    title: str


def _words(formula: str, title: str, source: str, *needs: Need) -> AttackWords:
    return AttackWords(formula, frozenset(needs), source, title)


_P, _REF = Need.PROBABILITIES, Need.REFERENCES
ATTACKS: Mapping[str, AttackWords] = MappingProxyType(
    {
        "confidence": _words("confidence/v1", "confidence in the true label", RULE_NAME, _P),
        "loss": _words("loss/v1", "logit-scaled loss", "Yeom et al. 2018; Carlini et al. 2022", _P),
        "entropy": _words("entropy/v1", "negative prediction entropy", "Salem et al. 2019", _P),
        "modified_entropy": _words("modified_entropy/v1", "negative modified entropy", "Song and Mittal 2021", _P),
        "margin_gap": _words("margin_gap/v1", "gap to the next class", "hinge; Song and Mittal 2021", _P),
        "correctness": _words("correctness/v1", "correct label (weaker)", "Yeom et al. 2018", Need.LABELS_ONLY),
        "error": _words("error/v1", "negative standardised error", "Yeom et al. 2018", Need.PREDICTIONS),
        "likelihood": _words("likelihood/v1", "log-likelihood", "Yeom et al. 2018", Need.LOG_LIKELIHOOD),
        "likelihood_ratio": _words(
            "likelihood_ratio/v1",
            "log-likelihood ratio",
            "Carlini et al. 2022",
            Need.LOG_LIKELIHOOD,
            Need.REFERENCE_LIKELIHOOD,
        ),
        "likelihood_ratio_z": _words(
            "likelihood_ratio_z/v1",
            "log-likelihood ratio in standard deviations of the references",
            "Carlini et al. 2022",
            Need.LOG_LIKELIHOOD,
            Need.REFERENCE_LIKELIHOOD,
        ),
        "calibrated": _words("calibrated/v1", "loss calibrated by reference models", "Watson et al. 2022", _P, _REF),
        "lira_offline": _words("lira_offline/v1", "offline LiRA, one-sided", "Carlini et al. 2022", _P, _REF),
        "lira_offline_two_sided": _words(
            "lira_offline_two_sided/v1", "offline LiRA, two-sided", "Carlini et al. 2022 (code)", _P, _REF
        ),
        "lira_online": _words("lira_online/v1", "online LiRA", "Carlini et al. 2022", _P, _REF),
        "rmia": _words("rmia/v1", "relative membership inference", "Zarifzadeh et al. 2024", _P, _REF),
        "shadow": _words("shadow/v1", "shadow models", "Shokri et al. 2017; Salem et al. 2019", _P, _REF),
        "shadow_protocol": _words(
            "shadow_protocol/v1", "a forest on losses, cross-validated", "Shokri et al. 2017", _P
        ),
        "quantile": _words("quantile/v1", "quantile regression on loss", "Bertran et al. 2023", _P, Need.FEATURES),
    }
)

# The score-only attacks that fit what a model of each kind can say. A classifier that gives probabilities is judged by those that the
# policy names; the others, which can make none of these, by the ones that stand here.
KIND_ATTACKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "classification": ("confidence", "loss", "entropy", "modified_entropy", "margin_gap", "correctness"),
        "label_only": ("correctness",),
        "regression": ("error",),
        "density": ("likelihood", "likelihood_ratio"),
    }
)

# Other ways in which a model may leak, which this project does not try and every card names as not run.
NOT_RUN_EVER = ("extraction", "regurgitation", "inversion", "reconstruction", "attribute_inference")


class DataCategory(StrEnum):
    """Data categories a card may declare; any other word is allowed and only lowers the margin if the policy lists it."""

    HEALTH = "health"
    GENETIC = "genetic"
    BIOMETRIC = "biometric"
    CHILDREN = "children"
    CONTROLLED_ACCESS = "controlled_access"


class SplitOrigin(StrEnum):
    """Where the splits of a test came from."""

    MANIFEST = "manifest"
    DATASET_INPUTS = "dataset_inputs"
    CALLER = "caller"


class Membership(StrEnum):
    """How it is known that the members are members."""

    REPRODUCED = "reproduced"
    DECLARED = "declared"


class ReferenceOrigin(StrEnum):
    """How reference models were made: a clone of the logged recipe, the manifest's training function, or other logged models."""

    CLONE = "clone"
    TRAINING_FUNCTION = "training_function"
    LOGGED_MODELS = "logged_models"


class Isolation(StrEnum):
    """Where a model's own code runs: in the process that may hold the signing key, or in a child process without keys."""

    IN_PROCESS = "in-process"
    CHILD_PROCESS = "child-process"


class KeyRole(StrEnum):
    """What a key may sign."""

    TESTER = "tester"
    PRIVACY_OFFICER = "privacy-officer"


TAG_PREFIX = "privacy_gate."
METRIC_PREFIX = "privacy_gate/"
ARTIFACT_FOLDER = "privacy_gate"
MANIFEST_ARTIFACT = "privacy_gate/splits.json"
DEFAULT_WORKSPACE = "default"  # MLflow's own word, also where it knows no workspaces
ATTESTATION_TAG = "privacy_gate.attestation"
ATTESTATION_ARTIFACT = "privacy_gate/attestation.dsse.json"
VERDICT_TAG = "privacy_gate.verdict"
# Officers' statements: one tag each, with the first twelve digits of the envelope's sha256 after a further dot.
WAIVER_TAG = "privacy_gate.waiver"
SIGN_OFF_TAG = "privacy_gate.signoff"
EXEMPTION_TAG = "privacy_gate.exemption"
# The newest removal audit in one line; its report and envelope lie in a folder of their own for each query.
REMOVAL_TAG = "privacy_gate.removal_audit"
REMOVAL_FOLDER = "privacy_gate/removal"
# Where a model's card is looked for among the artifacts, in this order.
CARD_PATHS = ("README.md", "model_card.md")
# On a run's dataset input: the logged model that this dataset belongs to.
DATASET_MODEL_TAG = "privacy_gate.model_id"

# MLflow limits, tried on 3.17.2.
REGISTRY_TAG_LIMIT = 100_000
ENVELOPE_LIMIT_BYTES = 74_900


def tpr_metric_id(fpr: float) -> str:
    """Return the id under which the TPR at that FPR (a fraction) stands in evidence: ``tpr_at_fpr_0.01``."""
    return f"tpr_at_fpr_{float(fpr)!r}"


def severity_word(attack_auc: float, margin: float) -> str:
    """Return the report's word for an attack AUC: within the margin, over it, concerning (> 0.60), likely memorisation (> 0.70)."""
    if attack_auc <= margin:
        return "within margin"
    if attack_auc > 0.70:
        return "likely memorisation"
    if attack_auc > 0.60:
        return "concerning"
    return "over the margin"
