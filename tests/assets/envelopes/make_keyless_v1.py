"""Sign the statement of ``full.dsse.json`` as a pipeline's identity, at a Sigstore instance of our own; run once, the files are then kept.

Run with ``PYTHONPATH=tests`` and the extra ``[keyless]``. The instance's keys are thrown away: its trust root must never stand in a policy.
"""

from __future__ import annotations

from pathlib import Path

from sigstore_fakes import IDENTITY, ISSUER, FakeSigstore, oidc_token

from mlflow_privacy_gate.evidence.envelope import open_envelope, sign
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keyless_signer import KeylessSigner
from mlflow_privacy_gate.vocabulary import KeyRole


def main(folder: Path) -> None:
    """Write the envelope and the trust root it verifies under."""
    sigstore = FakeSigstore()
    root = sigstore.trust_root(folder).rename(folder / "keyless-root.json")
    pipeline = TrustedIdentity("pipeline", KeyRole.TESTER, IDENTITY, ISSUER, root)
    signer = KeylessSigner(pipeline, lambda: sigstore.context(folder), oidc_token)
    statement = open_envelope((folder / "full.dsse.json").read_bytes()).payload
    (folder / "keyless.dsse.json").write_bytes(sign(statement, signer))
    (folder / "sigstore-root.json").unlink()


if __name__ == "__main__":
    main(Path(__file__).parent / "v1")
