"""Every error this package raises, as one tree.

::

    PrivacyGateError
    ├── UsageError                    a call or an option that cannot be meant (exit 2)
    │   └── PolicyError               privacy-gate.yaml, keys: all mistakes with file and line (exit 2, PG901)
    ├── CouldNotJudge                 the test could not be made: never a pass (exit 3, PG111 or nearer)
    │   ├── SplitsUnavailable         members or non-members cannot be had, or are not those that were logged (PG104)
    │   ├── ModelUnusable             the model cannot be opened, or its answers cannot be used
    │   ├── ObservationError          NaN, wrong shape, empty or one-sided input
    │   └── CardError                 a model card that cannot be read or safely spliced
    ├── EvidenceRejected              an envelope that is not believed (exit 1, PG0xx)
    ├── PromotionRefused              a decision that says no (exit 1)
    ├── CouldNotLook                  no answer from a server or store; try again (exit 4, PG007)
    └── InternalError                 a fault of ours (exit 4, PG909)

A message says where, what was got and expected, and what to do. Foreign exceptions are translated where they enter, and whatever they
quote, no message holds the user and password of a URI.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlflow_privacy_gate.vocabulary import ReasonCode

# What stands between :// and the last @ before the path.
_USER_AND_PASSWORD = re.compile(r"(?<=://)[^\s/'\"]*@")


class PrivacyGateError(Exception):
    """Something the gate says no to, with the exit code a command should end with."""

    exit_code: int = 4
    code: ReasonCode | None = None

    def __init__(self, message: str, *, code: ReasonCode | None = None) -> None:
        self.message = _USER_AND_PASSWORD.sub("", message)
        super().__init__(self.message)
        if code is not None:
            self.code = code


class UsageError(PrivacyGateError):
    """A call, option or file that cannot be meant."""

    exit_code = 2


class PolicyError(UsageError):
    """A policy that cannot be used; ``problems`` holds every mistake, each with ``file:line``."""

    code = ReasonCode.PG901

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class CouldNotJudge(PrivacyGateError):
    """The test could not be made, so nothing may be concluded; never a pass."""

    exit_code = 3
    code = ReasonCode.PG111


class SplitsUnavailable(CouldNotJudge):
    """Members or non-members cannot be had, or are not the ones that were logged."""

    code = ReasonCode.PG104


class ModelUnusable(CouldNotJudge):
    """The model cannot be opened, or what it answers cannot be used."""


class ObservationError(CouldNotJudge):
    """Scores, probabilities or labels with NaN, of the wrong shape, empty or one-sided."""


class CardError(CouldNotJudge):
    """A model card that cannot be read or cannot be changed without touching the author's text."""


class EvidenceRejected(PrivacyGateError):
    """An envelope that is not believed; ``code`` says at which step, ``remedy`` what would help here (None: what helps with the code)."""

    exit_code = 1
    code = ReasonCode.PG002

    def __init__(self, message: str, *, code: ReasonCode | None = None, remedy: str | None = None) -> None:
        super().__init__(message, code=code)
        self.remedy = remedy


class PromotionRefused(PrivacyGateError):
    """A promotion that was refused; the message is the refusal as a person reads it."""

    exit_code = 1


class CouldNotLook(PrivacyGateError):
    """A server or store could not be reached, so it is not known what it holds; a retry may help."""

    exit_code = 4
    code = ReasonCode.PG007


class InternalError(PrivacyGateError):
    """A fault of this package."""

    exit_code = 4
    code = ReasonCode.PG909
