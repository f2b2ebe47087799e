"""The policy as a frozen model: the keys of ``privacy-gate.yaml``, their types, limits and strict defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keys import Trusted, TrustedKey
from mlflow_privacy_gate.policy import values
from mlflow_privacy_gate.policy.values import DISTINCT, SOME, choice
from mlflow_privacy_gate.vocabulary import (
    ATTACKS,
    RULE_MARGIN,
    DataCategory,
    KeyRole,
    Need,
    ReferenceOrigin,
    SplitOrigin,
    StrEnum,
)


class PresetName(StrEnum):
    """How thorough the test must be."""

    STANDARD = "standard"
    THOROUGH = "thorough"
    SENSITIVE = "sensitive"


class Mode(StrEnum):
    """What a refusal does: refuse, only say so, or nothing at all."""

    ENFORCE = "enforce"
    WARN = "warn"
    OFF = "off"


class DecideOn(StrEnum):
    """Which number must be within the margin: the measured AUC, or its one-sided 95 % upper bound as well."""

    POINT = "point"
    UPPER = "upper"


class LabelOnly(StrEnum):
    """Whether a model that shows labels only may be judged by the label-only attack."""

    INCONCLUSIVE = "inconclusive"
    ALLOW = "allow"


class Undeclared(StrEnum):
    """What a card that says nothing about personal data means."""

    PERSONAL = "personal"


_CATEGORY_MARGINS = {
    str(category): 0.52
    for category in (DataCategory.HEALTH, DataCategory.GENETIC, DataCategory.BIOMETRIC, DataCategory.CHILDREN)
}


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Guard(_Section):
    """What counts as production: stages, alias globs, registered model name globs."""

    stages: Annotated[tuple[values.Stage, ...], DISTINCT] = ("Production",)
    aliases: Annotated[tuple[values.AliasGlob, ...], DISTINCT] = ("production", "prod", "champion")
    registered_models: Annotated[tuple[values.Glob, ...], DISTINCT] = ()


class MarginLimits(_Section):
    """The highest attack AUC allowed, per data category too, and limits on TPR at low FPR; all are fractions.

    The default of 0.55 is the rule's own (CC BY 4.0):
    <a href="https://agentwranglers.se/playbook/machine-learning/people-affected-by-the-model/training-data-extraction-test">Agent Wranglers machine learning playbook</a>
    """  # noqa: E501 - a link cannot be wrapped

    unsafe_above_default: values.Flag = False
    default: values.MarginFraction = RULE_MARGIN
    categories: values.CategoryMargins = Field(default_factory=lambda: values.FrozenMapping(dict(_CATEGORY_MARGINS)))
    tpr_at_fpr: values.TprLimits = Field(default_factory=lambda: values.FrozenMapping({}))

    @field_validator("default")
    @classmethod
    def _not_above_the_rule(cls, default: float, info: ValidationInfo) -> float:
        if default > RULE_MARGIN and not info.data.get("unsafe_above_default", True):
            raise PydanticCustomError(
                "policy_value",
                "{text}",
                {"text": f"{default:g} is above the rule's {RULE_MARGIN:g}; that needs `unsafe_above_default: true`"},
            )
        return default


class Attacks(_Section):
    """Which attacks decide, which are only reported, and how many reference models of which origin they need."""

    references: values.Count = 0
    gating: Annotated[tuple[values.AttackName, ...], DISTINCT, SOME] = (
        "confidence",
        "loss",
        "entropy",
        "modified_entropy",
    )
    report: Annotated[tuple[values.AttackName, ...], DISTINCT] = ()
    reference_origins: Annotated[tuple[Annotated[ReferenceOrigin, choice(ReferenceOrigin)], ...], DISTINCT, SOME] = (
        ReferenceOrigin.CLONE,
    )
    seed: values.Count = 0

    @field_validator("gating", "report")
    @classmethod
    def _with_references(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        needy = [name for name in names if Need.REFERENCES in ATTACKS[name].needs]
        if needy and info.data.get("references", 2) < 2:
            raise PydanticCustomError(
                "policy_value",
                "{text}",
                {"text": f"{', '.join(needy)} cannot run: `attacks.references` must be at least 2 (16 is usual)"},
            )
        return names


class Validity(_Section):
    """What the test itself must fulfil; overlap and blind AUC are fractions."""

    min_rows_per_side: values.PositiveCount = 100
    max_overlap: values.Fraction = 0.001
    max_blind_auc: values.MarginFraction = 0.55
    split_origins: Annotated[tuple[Annotated[SplitOrigin, choice(SplitOrigin)], ...], DISTINCT, SOME] = (
        SplitOrigin.MANIFEST,
        SplitOrigin.DATASET_INPUTS,
        SplitOrigin.CALLER,
    )


class EvidenceRules(_Section):
    """How old evidence may be in days, that the stored bytes are compared, and whether unsigned evidence is admitted."""

    max_age_days: values.PositiveCount = 90
    verify_artifacts: values.Always = True
    unsafe_allow_unsigned: values.Flag = False


class PolicyKey(_Section):
    """A public key (SPKI PEM), or a Sigstore identity with its issuer, that is trusted in one role until ``not_after``.

    ``trust_root`` is the file with the keys of the identity's Sigstore instance; none: the public one's, as sigstore keeps them.
    """

    id: values.Text
    role: Annotated[KeyRole, choice(KeyRole)]
    public_key: values.PublicKeyPem | None = None
    identity: values.Identity | None = None
    issuer: values.Issuer | None = None
    trust_root: values.Text | None = None
    not_after: values.Moment | None = None

    @model_validator(mode="after")
    def _key_or_identity(self) -> PolicyKey:
        of_an_identity = (self.identity, self.issuer, self.trust_root)
        sound = not any(of_an_identity) if self.public_key else bool(self.identity and self.issuer)
        if not sound:
            raise PydanticCustomError(
                "policy_value",
                "expected either `public_key`, or `identity` and `issuer` (with `trust_root` where it is needed)",
            )
        return self

    def trusted(self, folder: Path | None = None) -> Trusted:
        """This key or identity as the verifier takes it; a relative ``trust_root`` counts from ``folder``."""
        if self.public_key is not None:
            return TrustedKey(self.id, self.role, self.public_key, self.not_after)
        assert self.identity is not None
        assert self.issuer is not None
        root = None if self.trust_root is None else (folder or Path()) / self.trust_root
        return TrustedIdentity(self.id, self.role, self.identity, self.issuer, root, self.not_after)


class Waivers(_Section):
    """For how many days a waiver may hold at most."""

    max_days: values.PositiveCount = 30


class SignOffRules(_Section):
    """Whether a promotion needs a privacy officer's signed statement on the very test that lets it through (PG301)."""

    required: values.Flag = False


class PersonalData(_Section):
    """What it means when a card declares nothing."""

    undeclared_means: Annotated[Undeclared, choice(Undeclared)] = Undeclared.PERSONAL


class Sources(_Section):
    """Where data may be fetched from, and how many rows are taken a side."""

    http_hosts: Annotated[tuple[values.Text, ...], DISTINCT] = ()
    max_rows: values.PositiveCount = 1_000_000


class Limits(_Section):
    """What loading and scoring a model may use: seconds of wall clock and gigabytes of memory."""

    seconds: values.PositiveNumber = 900
    memory_gb: values.PositiveNumber = 8


class Policy(_Section):
    """What is guarded, how hard the test is, and whose signature counts; a frozen reading of one policy file.

    ``sha256`` (hex) is of the file's bytes, ``source_name`` its name without the path, ``folder`` where relative paths count from.
    ``loosened`` names the preset's keys that the file replaced by their ``unsafe_`` form. These four are no keys of the file.
    """

    version: values.FormatVersion = 1
    preset: Annotated[PresetName, choice(PresetName)] = PresetName.STANDARD
    mode: Annotated[Mode, choice(Mode)] = Mode.ENFORCE
    guard: Guard = Guard()
    margin: MarginLimits = MarginLimits()
    decide_on: Annotated[DecideOn, choice(DecideOn)] = DecideOn.POINT
    attacks: Attacks = Attacks()
    validity: Validity = Validity()
    label_only: Annotated[LabelOnly, choice(LabelOnly)] = LabelOnly.INCONCLUSIVE
    evidence: EvidenceRules = EvidenceRules()
    keys: tuple[PolicyKey, ...] = ()
    waivers: Waivers = Waivers()
    sign_off: SignOffRules = SignOffRules()
    personal_data: PersonalData = PersonalData()
    deny: Annotated[tuple[values.Category, ...], DISTINCT] = (str(DataCategory.CONTROLLED_ACCESS),)
    sources: Sources = Sources()
    limits: Limits = Limits()
    ledger: values.Text | None = None
    templates: values.Text | None = None

    sha256: str = Field(default="", exclude=True)
    source_name: str = Field(default="", exclude=True)
    folder: Path | None = Field(default=None, exclude=True)
    loosened: tuple[str, ...] = Field(default=(), exclude=True)

    @field_validator("keys")
    @classmethod
    def _one_key_one_role(cls, keys: tuple[PolicyKey, ...]) -> tuple[PolicyKey, ...]:
        problems = []
        for position, key in enumerate(keys):
            for earlier in keys[:position]:
                if key.id == earlier.id:
                    problems.append(f"two keys have the id {key.id!r}")
                if key.trusted().key_id == earlier.trusted().key_id:
                    what = "a key" if key.public_key else "an identity"
                    problems.append(
                        f"{earlier.id!r} and {key.id!r} are one {what.split()[1]}; {what} has one role and stands once"
                    )
        if problems:
            raise PydanticCustomError("policy_value", "{text}", {"text": "; ".join(problems)})
        return keys

    @property
    def trusted_keys(self) -> tuple[Trusted, ...]:
        """All keys and identities as the verifier takes them; it checks their role, and their validity in time."""
        return tuple(key.trusted(self.folder) for key in self.keys)

    def trusts(self, role: KeyRole) -> bool:
        """Whether any key stands in that role."""
        return any(key.role == role for key in self.keys)

    def locate(self, path: str) -> Path:
        """Give the place of a path named in the policy; a relative one counts from the policy file's folder."""
        return (self.folder / path) if self.folder is not None else Path(path)
