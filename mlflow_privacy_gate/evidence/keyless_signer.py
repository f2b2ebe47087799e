"""Signing without a key of one's own, through Sigstore: the pipeline proves who it is, and a key lives for this one signature.

Named ``keyless:`` where a key is named; a fragment says which of the policy's identities signs (``keyless:#pipeline``) where it lists
several in that role. The proof is the job's ambient OIDC credential (GitHub Actions, GitLab, Buildkite, CircleCI, Google Cloud); no
browser is ever opened. It is signed at the public instance and nowhere else. Its log keeps the sha256 of what was signed, the signature
and the certificate with the identity, for ever and for everyone; the statement itself does not leave. Installed with
``mlflow-privacy-gate[keyless]``.
Source: https://sigstore.github.io/sigstore-python/api/sign.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlflow_privacy_gate.errors import CouldNotLook, EvidenceRejected, UsageError
from mlflow_privacy_gate.evidence.identities import INSTALL, TrustedIdentity, bundle_bytes
from mlflow_privacy_gate.evidence.keys import Trusted
from mlflow_privacy_gate.vocabulary import KeyRole

SCHEME = "keyless:"


class KeylessSigner:
    """A :class:`~mlflow_privacy_gate.evidence.signing.Signer` whose signature is a Sigstore bundle.

    ``context`` gives the ``sigstore.sign.SigningContext`` to sign in, ``credential`` a fresh OIDC token (its text) that proves the
    identity, None where there is none. Both are asked anew for every signature: a token outlives a long test only by chance.
    """

    def __init__(
        self, identity: TrustedIdentity, context: Callable[[], Any], credential: Callable[[], str | None]
    ) -> None:
        self._identity = identity
        self._context = context
        self._credential = credential
        self.key_id: str = identity.key_id

    def sign(self, message: bytes) -> bytes:
        """Return the bundle over ``message``, verified as the gate will verify it.

        UsageError without a credential, or when it proves another identity than the policy's; CouldNotLook when Sigstore cannot be
        reached or says no.
        """
        from sigstore.oidc import IdentityToken

        raw = _proof(self._credential)
        try:
            token = IdentityToken(raw)
            issuer = token.federated_issuer
        except Exception as exc:  # of sigstore, of the token's parser
            raise UsageError(f"{SCHEME} the job's OIDC credential cannot be used: {exc}") from exc
        # Before anything stands in a public log: who it is exactly, only the certificate says.
        if issuer != self._identity.issuer:
            raise UsageError(
                f"{SCHEME} the job's credential is from {issuer}; "
                f"the policy's {self._identity.id} is vouched for by {self._identity.issuer}"
            )
        try:
            with self._context().signer(token) as signer:
                signature = bundle_bytes(signer.sign_artifact(message))
        except UsageError:
            raise
        except Exception as exc:  # of sigstore, TUF, the network
            raise CouldNotLook(f"Sigstore did not sign: {type(exc).__name__}: {exc}") from exc
        self._check(signature, message)
        return signature

    def _check(self, signature: bytes, message: bytes) -> None:
        try:
            fault = self._identity.fault(signature, message)
        except EvidenceRejected as exc:
            raise UsageError(f"{SCHEME} what was signed cannot be believed: {exc.message}; {exc.remedy}") from exc
        if fault is not None:
            raise UsageError(f"{SCHEME} what was signed is not {self._identity.id}'s, as the policy names it: {fault}")


def is_keyless(key: str) -> bool:
    """Whether ``--key`` asks for a signature through Sigstore rather than naming a file or a key service."""
    return key == SCHEME or key.startswith(f"{SCHEME}#")


def keyless_signer(key: str, trusted: Sequence[Trusted], *, role: KeyRole) -> KeylessSigner:
    """Open the signer for one of the policy's identities of ``role``; ``trusted`` is all that the policy lists.

    UsageError when sigstore is missing, it is not clear which identity is meant, or this job has no OIDC credential. Sigstore itself is not
    asked before the first signature.
    """
    identity = _meant(key, [one for one in trusted if isinstance(one, TrustedIdentity) and one.role == role], role)
    try:
        from sigstore.models import ClientTrustConfig
        from sigstore.oidc import detect_credential
    except ImportError as exc:
        raise UsageError(f"{key} signing through Sigstore needs `{INSTALL}`") from exc
    _proof(detect_credential)  # a long test that could not be signed in the end helps nobody
    return KeylessSigner(
        identity,
        context=lambda: public_context(identity, ClientTrustConfig.production()),
        credential=detect_credential,
    )


def public_context(identity: TrustedIdentity, config: Any) -> Any:
    """Give the ``SigningContext`` of the public instance, which ``config`` (a ``ClientTrustConfig``) describes.

    UsageError where the policy trusts this identity at another instance: its name has no business in a public log.
    """
    from sigstore.models import TrustedRoot
    from sigstore.sign import SigningContext

    if identity.trust_root is not None:
        authorities = TrustedRoot.from_file(str(identity.trust_root)).get_fulcio_certs()
        if not set(authorities) & set(config.trusted_root.get_fulcio_certs()):
            raise UsageError(
                f"{SCHEME} the policy trusts {identity.id} at another Sigstore instance than the public one "
                f"({identity.trust_root}), and this command signs at the public one only"
            )
    return SigningContext.from_trust_config(config)


def _proof(credential: Callable[[], str | None]) -> str:
    try:
        found = credential()
    except Exception as exc:  # of sigstore, of the platform's token service
        raise UsageError(f"{SCHEME} this job's OIDC credential cannot be had: {type(exc).__name__}: {exc}") from exc
    if not found:
        raise UsageError(
            f"{SCHEME} no OIDC credential was found here; run it in a CI job that may ask for one "
            "(GitHub Actions: `permissions: {id-token: write}`), or sign with a key"
        )
    return found


def _meant(key: str, candidates: Sequence[TrustedIdentity], role: KeyRole) -> TrustedIdentity:
    name = key.partition("#")[2]
    meant = [one for one in candidates if not name or one.id == name]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(one.id for one in candidates) or "none"
    raise UsageError(
        f"{key} which of the policy's {role} identities is it? Name one after `#`; the policy lists: {listed}"
    )
