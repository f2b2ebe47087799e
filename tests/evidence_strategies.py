"""Hypothesis strategies for evidence: any that a test could have produced."""

from __future__ import annotations

from datetime import timezone

from hypothesis import strategies as st

from mlflow_privacy_gate.evidence.facts import (
    AttackFacts,
    CardClaims,
    DataFacts,
    DifferentialPrivacyClaim,
    Evidence,
    Metric,
    NotRun,
    PolicyReference,
    PrivacyBudgetFacts,
    RecomputedEpsilon,
    SplitFacts,
    SubgroupFacts,
    ToolFacts,
    ValidityFacts,
)
from mlflow_privacy_gate.vocabulary import ATTACKS, Membership, ReasonCode, SplitOrigin

_TEXT = st.text(max_size=12)
_NUMBER = st.floats(allow_nan=False, allow_infinity=False)
_COUNT = st.integers(0, 2**70)
_SHA256 = st.text("0123456789abcdef", min_size=64, max_size=64)
_TIME = st.datetimes(timezones=st.just(timezone.utc))


def _maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


def _several(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


_METRIC = st.builds(
    Metric,
    id=_TEXT,
    value=_maybe(_NUMBER),
    ci_low=_maybe(_NUMBER),
    ci_high=_maybe(_NUMBER),
    upper=_maybe(_NUMBER),
    ci_method=_maybe(_TEXT),
    note=_maybe(_TEXT),
)
_ATTACK = st.builds(
    AttackFacts,
    id=st.sampled_from(sorted(ATTACKS)),
    formula=_TEXT,
    metrics=st.lists(_METRIC, max_size=3, unique_by=lambda metric: metric.id).map(tuple),
    rows_left_out=_COUNT,
    seed=_maybe(_COUNT),
    references=_COUNT,
    references_origin=_maybe(_TEXT),
    notes=_several(_TEXT),
)
_SIDE = st.builds(
    DataFacts,
    role=st.sampled_from(("members", "non_members")),
    rows=_COUNT,
    rows_used=_COUNT,
    digest=_SHA256.map("rowset-sha256/v1:{}".format),
    unknown_labels=_COUNT,
    source=_maybe(_TEXT),
    mlflow_name=_maybe(_TEXT),
    mlflow_digest=_maybe(_TEXT),
)
_SPLITS = st.builds(
    SplitFacts,
    origin=st.sampled_from(SplitOrigin),
    membership=st.sampled_from(Membership),
    manifest_sha256=_maybe(_SHA256),
    as_logged=_maybe(st.booleans()),
    as_logged_note=_maybe(_TEXT),
    group=_maybe(_TEXT),
    group_overlap=_maybe(_COUNT),
    shared_rows=_COUNT,
    shared_rows_expected=_NUMBER,
    used_for_tuning=_maybe(st.booleans()),
)
_VALIDITY = st.builds(
    ValidityFacts,
    blind_auc=_maybe(_NUMBER),
    blind_ci_low=_maybe(_NUMBER),
    blind_columns=_several(_TEXT),
    tie_share=_maybe(_NUMBER),
    positive_control_auc=_maybe(_NUMBER),
    positive_control_ci_low=_maybe(_NUMBER),
    unstable_rows=_maybe(_COUNT),
    asked_again_rows=_maybe(_COUNT),
    smallest_detectable_auc=_maybe(_NUMBER),
    holds_training_rows=_maybe(_TEXT),
)
_CLAIM = st.builds(
    DifferentialPrivacyClaim,
    epsilon=_NUMBER,
    delta=_NUMBER,
    unit=_maybe(_TEXT),
    accountant=_maybe(_TEXT),
    sampling_rate=_maybe(_NUMBER),
    noise_multiplier=_maybe(_NUMBER),
    steps=_maybe(_COUNT),
)
_CARD = st.builds(
    CardClaims,
    personal_data=_maybe(st.booleans()),
    data_categories=_several(_TEXT),
    max_attack_auc=_maybe(_NUMBER),
    differential_privacy=_maybe(_CLAIM),
)
_BUDGET = st.builds(
    PrivacyBudgetFacts,
    recomputed=_several(
        st.builds(RecomputedEpsilon, method=_TEXT, epsilon=_maybe(_NUMBER), accountant=_TEXT, version=_TEXT)
    ),
    epsilon_lower_bound=_maybe(_NUMBER),
    level=_maybe(_NUMBER),
    attack=_maybe(_TEXT),
    tail=_maybe(_TEXT),
    rows_members=_maybe(_COUNT),
    rows_non_members=_maybe(_COUNT),
    seed=_maybe(_COUNT),
)
_SUBGROUP = st.builds(
    SubgroupFacts,
    column=_TEXT,
    group=_TEXT,
    rows_members=_COUNT,
    rows_non_members=_COUNT,
    auc=_maybe(_NUMBER),
    ci_low=_maybe(_NUMBER),
    ci_high=_maybe(_NUMBER),
    holm_p=_maybe(_NUMBER),
    note=_maybe(_TEXT),
)
_TOOL = st.builds(
    ToolFacts,
    name=_TEXT,
    version=_TEXT,
    python=_TEXT,
    mlflow=_maybe(_TEXT),
    libraries=st.dictionaries(_TEXT, _TEXT, max_size=3),
    isolation=st.sampled_from(("in-process", "child-process")),
)

EVIDENCE = st.builds(
    Evidence,
    model_uri=_TEXT,
    model_digest=_SHA256,
    kind=st.sampled_from(("classification", "label_only", "regression", "density")),
    tested_at=_TIME,
    expires_at=_TIME,
    nonce=_TEXT,
    outcome=st.sampled_from(("pass", "fail", "inconclusive")),
    reason_codes=st.lists(st.sampled_from([str(code) for code in ReasonCode]), unique=True, max_size=4).map(tuple),
    attacks=st.lists(_ATTACK, max_size=3, unique_by=lambda attack: attack.id).map(tuple),
    data=st.lists(_SIDE, max_size=2, unique_by=lambda side: side.role).map(tuple),
    splits=_SPLITS,
    validity=_VALIDITY,
    card=_CARD,
    tool=_TOOL,
    policy=st.builds(PolicyReference, name=_TEXT, sha256=_SHA256),
    registered_model=_maybe(_TEXT),
    version=_maybe(_TEXT),
    run_id=_maybe(st.text(min_size=1, max_size=12)),
    gating=_several(_TEXT),
    privacy_budget=_maybe(_BUDGET),
    subgroups=_several(_SUBGROUP),
    not_run=_several(st.builds(NotRun, id=_TEXT, reason=_TEXT)),
    limitations=_several(_TEXT),
)
