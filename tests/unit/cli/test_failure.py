"""A command that was stopped says what would help here, else what helps with the code, else where to look."""

from __future__ import annotations

import json

import pytest

from mlflow_privacy_gate.cli.failure import failure_of
from mlflow_privacy_gate.errors import EvidenceRejected, PrivacyGateError, UsageError
from mlflow_privacy_gate.vocabulary import REASONS, ReasonCode


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (EvidenceRejected("other rows", code=ReasonCode.PG004, remedy="hand in the rows"), "hand in the rows"),
        (EvidenceRejected("other bytes", code=ReasonCode.PG004), REASONS[ReasonCode.PG004].remedy),
        (UsageError("no such file"), "correct the call as the message says (`gate verify --help`)"),
    ],
    ids=["its own", "the code's", "the help"],
)
def test_the_nearest_remedy_is_given(error: PrivacyGateError, remedy: str) -> None:
    assert json.loads(failure_of(error, "gate verify").as_json())["error"]["remedy"] == remedy
