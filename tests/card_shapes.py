"""Cards of the shapes that published ones have, written for the tests."""

from __future__ import annotations

PLAIN = """---
license: mit
language: en
---
# Credit risk

Predicts default within a year.
"""

COMMENTS_AND_FLOW_LISTS = """---
# kept by hand, do not sort
license: apache-2.0   # as the parent model
tags: [tabular, "credit: risk", 'x # no comment']
widget:
- text: |
    first line
    # not a comment

    last line
datasets:
  - bank/loans   # private mirror
privacy_gate:   # asked for by the privacy officer
  # lower than the house's margin
  max_attack_auc: 0.52   # since 2025
  data_categories: [health, "children"]
  personal_data: true
pipeline_tag: tabular-classification
---

Body with trailing spaces.{spaces}

- item
""".replace("{spaces}", "   ")

FULL_MODEL_INDEX = """---
license: mit
model-index:
- name: credit-risk
  results:
  # measured by the risk team
  - task:
      type: tabular-classification
      name: Tabular classification
    dataset:
      type: bank/loans
      name: Loans
      config: default
      split: test
    metrics:
    - type: accuracy
      value: 0.87   # five folds
      name: Accuracy
      args: {folds: 5}
    - {type: roc_auc, value: 0.91, name: ROC AUC}
  - task: {type: tabular-classification}
    dataset: {type: bank/loans, name: Loans 2025}
    metrics: [{type: f1, value: 0.61}]
# after the index
tags: [tabular]
---
# Credit risk
"""

INDENTED_RESULTS = """---
model-index:
  - name: credit-risk
    results:
      - task:
          type: tabular-classification
        dataset:
          name: Loans
          type: bank/loans
        metrics:
          - type: accuracy
            value: 0.87
---
Body.
"""

FLOW_EVERYTHING = """---
{license: mit, privacy_gate: {personal_data: true, data_categories: [health]}, "model-index": [{name: m, results: []}]}
---
Body.
"""

CLAIMS_IN_FLOW = """---
privacy_gate: {personal_data: true, # a comment
  differential_privacy: {epsilon: 3.0, delta: 1e-5, unit: person, accountant: rdp}}
---
Body.
"""

EMPTY_KEYS = """---
privacy_gate:
model-index: null
license: mit
---
Body.
"""

NO_FRONT_MATTER = "# A model\n\nSome words.\n\n---\n\nMore words, no line end"

EMPTY_FRONT_MATTER = "---\n---\nBody.\n"

COMMENT_ONLY_FRONT_MATTER = "---\n# to do\n---\nBody.\n"

NO_BODY = "---\nlicense: mit\n---"

BYTE_ORDER_MARK = "\ufeff---\nlicense: mit\n---\nBody.\n"

LITERAL_AT_END = "---\nlicense: mit\nnote: |+\n  words\n\n---\nBody.\n"

BLANK_BEFORE_CLOSE = "---\nlicense: mit\n\n---\nBody.\n"

OWN_MEMBERSHIP_RESULT = """---
model-index:
- name: other
  results:
  - task: {type: membership-inference, name: Our own red team}
    dataset: {type: x, name: x}
    metrics: [{type: auc, value: 0.5}]
---
Body.
"""

YAML_1_1_WORDS = "---\non: push\nno: yes\nversion: 1.10\nsince: 2024-01-01\nnothing: ~\nnan: .nan\n---\nBody.\n"

EMPTY_FLOW = "---\n{}\n---\nBody.\n"

LARGE = PLAIN + "".join(f"\nParagraph {n} of a long card, with `code` and a | pipe.\n" for n in range(3600))

SHAPES: dict[str, str] = {
    "plain": PLAIN,
    "comments and flow lists": COMMENTS_AND_FLOW_LISTS,
    "full model-index": FULL_MODEL_INDEX,
    "indented results": INDENTED_RESULTS,
    "flow everything": FLOW_EVERYTHING,
    "claims in flow": CLAIMS_IN_FLOW,
    "empty keys": EMPTY_KEYS,
    "no front matter": NO_FRONT_MATTER,
    "empty front matter": EMPTY_FRONT_MATTER,
    "comment only": COMMENT_ONLY_FRONT_MATTER,
    "no body": NO_BODY,
    "byte order mark": BYTE_ORDER_MARK,
    "literal at end": LITERAL_AT_END,
    "blank before close": BLANK_BEFORE_CLOSE,
    "own membership result": OWN_MEMBERSHIP_RESULT,
    "words of YAML 1.1": YAML_1_1_WORDS,
    "empty flow mapping": EMPTY_FLOW,
    "large": LARGE,
}
SHAPES |= {f"{name}, CRLF": text.replace("\n", "\r\n") for name, text in SHAPES.items() if name != "large"}

BROKEN: dict[str, tuple[str, str]] = {
    "tab": ("---\nlicense: mit\ntags:\n\t- a\n---\nBody.\n", "line 4"),
    "unclosed list": ("---\nlicense: mit\ntags: [a, b\nlanguage: en\n---\nBody.\n", "line 4"),
    "never closed": ("---\nlicense: mit\n\n# Body\n", "line 1"),
    "a list": ("---\n- a\n- b\n---\n", "line 2"),
    "our key twice": ("---\nprivacy_gate: {}\nlicense: mit\nprivacy_gate: {}\n---\n", "line 4"),
    "our key a word": ("---\nlicense: mit\nprivacy_gate: yes please\n---\n", "line 3"),
    "claim twice": ("---\nprivacy_gate:\n  personal_data: true\n  personal_data: false\n---\n", "line 4"),
    "alias": ("---\nbase: &b {personal_data: true}\nprivacy_gate: *b\n---\n", "line 3"),
    "model-index a mapping": ("---\nlicense: mit\nmodel-index: {name: m}\n---\n", "line 3"),
    "model without results": ("---\nmodel-index:\n- name: m\n---\n", "line 3"),
    "unknown tag": ("---\nlicense: !!python/object:os.system {}\n---\n", "line 2"),
    "control character": ("---\nlicense: mit\ntitle: a\x07b\n---\n", "line 3"),
}
