"""Where the policy in force is found: by commands, which may look around, and by the store, which may not."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from mlflow_privacy_gate.errors import PolicyError
from mlflow_privacy_gate.policy.model import Policy
from mlflow_privacy_gate.policy.parsing import built_in_policy, load_policy, parse_policy, read_policy_file

POLICY_VARIABLE = "PRIVACY_GATE_POLICY"
POLICY_FILE = "privacy-gate.yaml"


def find_policy(option: str | Path | None, environ: Mapping[str, str], cwd: Path) -> Policy:
    """Find the policy of a command: ``--policy``, else ``$PRIVACY_GATE_POLICY``, else ``./privacy-gate.yaml``, else the built-in.

    PolicyError when the named file is missing or has mistakes; a file that was named is never passed over.
    """
    named = option or environ.get(POLICY_VARIABLE)
    if named:
        return load_policy(cwd / named)
    beside = cwd / POLICY_FILE
    return load_policy(beside) if beside.exists() or beside.is_symlink() else built_in_policy()


class PolicyFile:
    """The policy of a long-running server, read anew whenever its file has other bytes; safe to share between threads.

    The bytes themselves are compared, not times or sizes, which can stay the same while the text changes; a policy is a few kilobytes.
    ``path`` None stands for the built-in policy. Mistakes are told with the file's name alone, since clients get to read them.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = None if path is None else path.absolute()
        self._lock = threading.Lock()
        self._read: bytes | None = None
        self._outcome: Policy | PolicyError | None = None

    def current(self) -> Policy:
        """Give the policy as the file says now; PolicyError (PG901) while it is missing or has mistakes."""
        with self._lock:
            data = None if self.path is None else read_policy_file(self.path, self.path.name)
            if self._outcome is None or data != self._read:
                self._read, self._outcome = data, self._parse(data)
            outcome = self._outcome
        if isinstance(outcome, PolicyError):
            raise PolicyError(outcome.problems)
        return outcome

    def _parse(self, data: bytes | None) -> Policy | PolicyError:
        if self.path is None or data is None:
            return built_in_policy()
        try:
            return parse_policy(data, self.path.name, folder=self.path.parent)
        except PolicyError as error:
            return error


def server_policy_file(environ: Mapping[str, str]) -> PolicyFile:
    """Give the store's policy file: ``$PRIVACY_GATE_POLICY`` or the built-in, never the working folder's."""
    named = environ.get(POLICY_VARIABLE)
    return PolicyFile(Path(named) if named else None)


def server_policy(environ: Mapping[str, str]) -> Policy:
    """Read the store's policy once; PolicyError (PG901) when the named file is missing or has mistakes."""
    return server_policy_file(environ).current()
