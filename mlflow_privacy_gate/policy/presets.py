"""The presets, and which of their keys a policy file may only tighten.

A preset fixes how hard the test is. A file may tighten each of the keys in :data:`STRICTNESS`; it may loosen one only through the key's
unsafe form, which is the key with ``unsafe_`` before it (``validity: {unsafe_max_overlap: 0.01}``), so that a reviewer sees the word. Two
have names of their own: ``margin.unsafe_above_default: true`` for ``margin.default``, and ``evidence.unsafe_allow_unsigned: true``.
Mappings (``margin.categories``, ``margin.tpr_at_fpr``) are merged key by key and never lose one. All other keys (``guard``, ``mode``,
``label_only``, ``keys``, ``sources``, ``limits``, …) say where and how, not how hard, and are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from mlflow_privacy_gate.policy.model import Policy, PresetName

_REFERENCE_ATTACKS = ["calibrated", "lira_offline", "rmia"]
_STANDARD: Mapping[str, Any] = Policy().model_dump(mode="json")
_THOROUGH: Mapping[str, Any] = {
    **_STANDARD,
    "attacks": {
        **_STANDARD["attacks"],
        "references": 16,
        "gating": [*_STANDARD["attacks"]["gating"], *_REFERENCE_ATTACKS],
    },
}
_SENSITIVE: Mapping[str, Any] = {
    **_THOROUGH,
    "decide_on": "upper",
    "margin": {**_THOROUGH["margin"], "default": 0.52, "tpr_at_fpr": {0.01: 0.03}},
    # 3,569 rows a side see a leak at 0.52 with 90 % power; fewer would end inconclusive under `decide_on: upper` most of the time.
    "validity": {**_THOROUGH["validity"], "min_rows_per_side": 3600},
}

PRESETS: Mapping[PresetName, Mapping[str, Any]] = MappingProxyType(
    {PresetName.STANDARD: _STANDARD, PresetName.THOROUGH: _THOROUGH, PresetName.SENSITIVE: _SENSITIVE}
)

# Each rule answers: how does ``ours`` (the file's value) loosen ``preset``'s? None where it does not.
Rule = Callable[[Any, Any], "str | None"]


def _at_most(ours: Any, preset: Any) -> str | None:
    return f"{ours:g} is above the preset's {preset:g}" if ours > preset else None


def _at_least(ours: Any, preset: Any) -> str | None:
    return f"{ours:g} is below the preset's {preset:g}" if ours < preset else None


def _keeps(ours: Any, preset: Any) -> str | None:
    lost = [word for word in preset if word not in ours]
    return f"leaves out {', '.join(lost)} of the preset" if lost else None


def _adds_none(ours: Any, preset: Any) -> str | None:
    added = [word for word in ours if word not in preset]
    return f"admits {', '.join(added)} beyond the preset" if added else None


def _each_at_most(ours: Any, preset: Any) -> str | None:
    raised = [
        f"{key} {value:g} is above the preset's {preset[key]:g}"
        for key, value in ours.items()
        if value > preset.get(key, value)
    ]
    return "; ".join(raised) or None


def _stays_upper(ours: Any, preset: Any) -> str | None:
    return "the preset decides on the upper bound" if (ours, preset) == ("point", "upper") else None


STRICTNESS: Mapping[tuple[str, ...], Rule] = MappingProxyType(
    {
        ("margin", "default"): _at_most,
        ("margin", "categories"): _each_at_most,
        ("margin", "tpr_at_fpr"): _each_at_most,
        ("decide_on",): _stays_upper,
        ("attacks", "gating"): _keeps,
        ("attacks", "references"): _at_least,
        ("attacks", "reference_origins"): _adds_none,
        ("validity", "min_rows_per_side"): _at_least,
        ("validity", "max_overlap"): _at_most,
        ("validity", "max_blind_auc"): _at_most,
        ("validity", "split_origins"): _adds_none,
        ("evidence", "max_age_days"): _at_most,
        ("waivers", "max_days"): _at_most,
        ("deny",): _keeps,
    }
)
