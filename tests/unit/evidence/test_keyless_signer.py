"""Signing through Sigstore: as the policy's identity and no other, with the job's own credential, and nothing but a digest made public."""

from __future__ import annotations

import base64
import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from mlflow_privacy_gate.api import signer_for
from mlflow_privacy_gate.errors import CouldNotLook, UsageError
from mlflow_privacy_gate.evidence.identities import TrustedIdentity
from mlflow_privacy_gate.evidence.keyless_signer import KeylessSigner, is_keyless, keyless_signer, public_context
from mlflow_privacy_gate.evidence.kms_signer import is_key_uri
from mlflow_privacy_gate.policy import parse_policy
from mlflow_privacy_gate.vocabulary import KeyRole

MAIL, GOOGLE = "dana@clinic.example", "https://accounts.google.com"
OFFICER = TrustedIdentity("dana", KeyRole.PRIVACY_OFFICER, MAIL, GOOGLE)
POLICY = f"""\
version: 1
keys:
  - {{id: dana, role: privacy-officer, identity: {MAIL}, issuer: "{GOOGLE}"}}
"""


@pytest.fixture(autouse=True)
def _no_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "GITHUB_ACTIONS",
        "GITLAB_CI",
        "BUILDKITE",
        "CIRCLECI",
        "SIGSTORE_ID_TOKEN",
        "GOOGLE_SERVICE_ACCOUNT_NAME",
    ):
        monkeypatch.delenv(name, raising=False)


def test_keyless_is_neither_a_file_nor_a_key_service() -> None:
    for key in ("keyless:", "keyless:#dana"):
        assert is_keyless(key)
    for key in ("keyless", "keyless.key", "./keyless:", "awskms:alias/keyless:"):
        assert not is_keyless(key)
    assert not is_key_uri("keyless:")


def test_without_sigstore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "sigstore":
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"pip install 'mlflow-privacy-gate\[keyless\]'"):
        keyless_signer("keyless:", [OFFICER], role=KeyRole.PRIVACY_OFFICER)


@pytest.mark.parametrize(
    ("key", "role", "listed"),
    [
        ("keyless:", KeyRole.TESTER, "none"),
        ("keyless:#nobody", KeyRole.PRIVACY_OFFICER, "dana, theo"),
        ("keyless:", KeyRole.PRIVACY_OFFICER, "dana, theo"),
    ],
)
def test_it_must_be_clear_which_of_the_policys_identities_signs(key: str, role: KeyRole, listed: str) -> None:
    theo = TrustedIdentity("theo", KeyRole.PRIVACY_OFFICER, "theo@clinic.example", GOOGLE)
    with pytest.raises(UsageError, match=f"lists: {listed}"):
        keyless_signer(key, [OFFICER, theo], role=role)


def test_outside_a_pipeline_there_is_nothing_to_sign_with_and_that_is_said_before_any_work() -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    policy = parse_policy(POLICY)
    for key, environment in (("keyless:", {}), (None, {"PRIVACY_GATE_SIGNING_KEY": "keyless:#dana"})):
        with pytest.raises(UsageError, match="no OIDC credential was found"):
            signer_for(policy, key, environment, role=KeyRole.PRIVACY_OFFICER)


def _signer(identity: TrustedIdentity, sigstore: Any, folder: Path, token: str | None) -> KeylessSigner:
    return KeylessSigner(identity, lambda: sigstore.context(folder), lambda: token)


def _officer(sigstore: Any, folder: Path) -> TrustedIdentity:
    return TrustedIdentity("dana", KeyRole.PRIVACY_OFFICER, MAIL, GOOGLE, sigstore.trust_root(folder))


def test_what_is_signed_verifies_and_only_its_digest_is_made_public(tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore_fakes import FakeSigstore, oidc_token

    sigstore = FakeSigstore(MAIL, GOOGLE)
    identity = _officer(sigstore, tmp_path)
    signer = _signer(identity, sigstore, tmp_path, oidc_token(GOOGLE, email=MAIL))
    assert signer.key_id == identity.key_id
    assert identity.verifies(signer.sign(b"a secret statement"), b"a secret statement")
    [recorded] = sigstore.recorded
    assert set(json.loads(recorded)["spec"]) == {"data", "signature"}
    assert b"secret" not in recorded
    assert base64.b64encode(b"a secret statement")[:20] not in recorded


def test_a_certificate_for_somebody_else_is_found_out_before_anything_is_written(tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore_fakes import FakeSigstore, oidc_token

    sigstore = FakeSigstore("mallory@clinic.example", GOOGLE)
    signer = _signer(
        _officer(sigstore, tmp_path), sigstore, tmp_path, oidc_token(GOOGLE, email="mallory@clinic.example")
    )
    with pytest.raises(UsageError, match="not dana's, as the policy names it"):
        signer.sign(b"m")


def test_a_credential_of_another_issuer_makes_nothing_public(tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore_fakes import ISSUER, FakeSigstore, oidc_token

    sigstore = FakeSigstore(MAIL, GOOGLE)
    with pytest.raises(UsageError, match=ISSUER):
        _signer(_officer(sigstore, tmp_path), sigstore, tmp_path, oidc_token(ISSUER)).sign(b"m")
    assert sigstore.recorded == []


def test_a_credential_that_is_none_or_has_run_out_is_a_usage_error(tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore_fakes import FakeSigstore, oidc_token

    sigstore = FakeSigstore(MAIL, GOOGLE)
    for token in (None, "", "no token", oidc_token(GOOGLE, email=MAIL, exp=1)):
        with pytest.raises(UsageError, match="credential"):
            _signer(_officer(sigstore, tmp_path), sigstore, tmp_path, token).sign(b"m")
    assert sigstore.recorded == []


def test_an_instance_that_does_not_answer_is_could_not_look(tmp_path: Path) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore_fakes import FakeSigstore, oidc_token

    def dead() -> Any:
        raise ConnectionError("no route to host")

    officer = _officer(FakeSigstore(MAIL, GOOGLE), tmp_path)
    with pytest.raises(CouldNotLook, match="no route to host"):
        KeylessSigner(officer, dead, lambda: oidc_token(GOOGLE, email=MAIL)).sign(b"m")


def test_who_is_trusted_at_a_private_instance_is_never_written_into_the_public_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sigstore", reason="the extra [keyless] is not installed")
    from sigstore.models import ClientTrustConfig
    from sigstore_fakes import FakeSigstore, oidc_token

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    public = ClientTrustConfig.production(offline=True)
    private = _officer(FakeSigstore(MAIL, GOOGLE), tmp_path)
    signer = KeylessSigner(private, lambda: public_context(private, public), lambda: oidc_token(GOOGLE, email=MAIL))
    with pytest.raises(UsageError, match="another Sigstore instance than the public one"):
        signer.sign(b"m")
    pinned = tmp_path / "public-root.json"
    pinned.write_text(public.trusted_root._inner.to_json())
    for root in (pinned, None):
        identity = TrustedIdentity("dana", KeyRole.PRIVACY_OFFICER, MAIL, GOOGLE, root)
        assert public_context(identity, public) is not None
