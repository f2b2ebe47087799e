"""A policy written as YAML: the effective one for ``policy show``, and a commented one to start from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import yaml

from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.vocabulary import KeyRole, StrEnum

_FLAGS = (("margin", "unsafe_above_default"), ("evidence", "unsafe_allow_unsigned"))


class _Dumper(yaml.SafeDumper):
    """Texts of several lines (PEM) stand as blocks."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(StrEnum, lambda dumper, word: _text(dumper, str(word)))
_Dumper.add_representer(datetime, lambda dumper, moment: _text(dumper, moment.isoformat()))


def effective_yaml(policy: Policy) -> str:
    """Write every key as it is in force, preset included; parsing the text gives the same policy again."""
    values = policy.model_dump()
    for section, flag in _FLAGS:
        if not values[section][flag]:
            del values[section][flag]
    values["keys"] = [{name: value for name, value in key.items() if value is not None} for key in values["keys"]]
    for path in policy.loosened:
        *sections, key = path.split(".")
        holder: dict[str, Any] = values[sections[0]] if sections else values
        holder[f"unsafe_{key}"] = holder.pop(key)
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=False)


def starter_policy(public_key_pem: str, key_id: str) -> str:
    """Write the policy that ``init`` leaves: the built-in one with one tester key, and a comment at every key.

    ``public_key_pem`` is SPKI PEM, ``key_id`` the name under which the policy lists it.
    """
    return _STARTER.replace("KEYS\n", policy_key_yaml(public_key_pem, key_id, KeyRole.TESTER))


def policy_key_yaml(public_key_pem: str, key_id: str, role: KeyRole) -> str:
    """Write the lines that list a public key (SPKI PEM) in one role, as they stand under ``keys:``."""
    pem = "".join(f"      {line}\n" for line in public_key_pem.strip().splitlines())
    return f"  - id: {_quoted(key_id)}\n    role: {role}\n    public_key: |\n{pem}"


def _quoted(text: str) -> str:
    return str(yaml.safe_dump(text, default_style='"', width=10_000, allow_unicode=True)).strip()


_STARTER = """\
# Policy of mlflow-privacy-gate. The server reads the file that PRIVACY_GATE_POLICY names, and reads it again when it changes.
# `mlflow-privacy-gate policy lint` finds mistakes, `policy show` prints every key that is in force.
version: 1

# standard: attacks on the model's answers. thorough: also 16 reference models. sensitive: also a margin of 0.52, on its upper bound.
# The keys below may tighten a preset. Loosening one needs `unsafe_` before the key.
preset: standard

# enforce: refuse. warn: allow, and say what would have been refused. off: judge nothing. warn and off are said in every decision.
mode: enforce

# What counts as production. Aliases and names are globs; letter case and look-alike letters make no difference.
guard:
  stages: [Production]
  aliases: [production, prod, champion]
  registered_models: []

# The highest attack AUC allowed (0.5 is chance). Cards and data categories can lower it, never raise it.
# 0.55 is the rule's own, credited to the Agent Wranglers machine learning playbook (CC BY 4.0):
# https://agentwranglers.se/playbook/machine-learning/people-affected-by-the-model/training-data-extraction-test
margin:
  default: 0.55
  categories: {health: 0.52, genetic: 0.52, biometric: 0.52, children: 0.52}
  tpr_at_fpr: {}                # for example {0.01: 0.03}

# point: the measured AUC must be within the margin. upper: its one-sided 95 % upper bound as well.
decide_on: point

attacks:
  gating: [confidence, loss, entropy, modified_entropy]
  report: []                    # measured and shown, without a say
  references: 0                 # reference models; calibrated, lira_offline and rmia need them (16 is usual)
  reference_origins: [clone]    # also training_function, logged_models: these are the author's word
  seed: 0

# What the test itself must fulfil.
validity:
  min_rows_per_side: 100        # the margin may ask for more: 181 at 0.55, 1,128 at 0.52
  max_overlap: 0.001            # share of rows that may stand on both sides
  max_blind_auc: 0.55           # how well the splits may be told apart without the model
  split_origins: [manifest, dataset_inputs, caller]

# Whether a model that shows labels only may be judged by the label-only attack: inconclusive or allow.
label_only: inconclusive

evidence:
  max_age_days: 90
  verify_artifacts: true        # the stored bytes are compared with the tested ones at every promotion

# Whose signature counts. Roles: tester (checks), privacy-officer (waivers, sign-offs). Keep the private half out of reach of
# the models' authors. `not_after: 2027-12-31` ends a key.
keys:
KEYS

waivers:
  max_days: 30

sign_off:
  required: false               # true: every promotion needs a privacy officer's signed statement on its test

personal_data:
  undeclared_means: personal    # a card that declares nothing is taken to hold personal data

deny: [controlled_access]       # data categories that are refused whatever the score

sources:
  http_hosts: []                # hosts that splits may be fetched from
  max_rows: 1000000             # rows taken a side

# What loading and scoring one model may use.
limits:
  seconds: 900
  memory_gb: 8

ledger: null                    # null: a table in the registry's database
templates: null                 # a folder with templates of your own
"""
