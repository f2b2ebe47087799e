"""What a person sees: MLflow's own alias dialog, in a real browser, says why a version was refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium
from evidence_builder import FAILING_AUCS, attestation, fresh_signer, passing_evidence, write_policy
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from registry_seed import seed_version
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions as condition
from selenium.webdriver.support.ui import WebDriverWait

from mlflow_privacy_gate.vocabulary import ATTESTATION_TAG

pytestmark = [pytest.mark.server, pytest.mark.browser]

SIGNER = fresh_signer()
# The README's picture: run this module with --basetemp=FOLDER and copy refusal.png from there.
PICTURE = Path(__file__).parents[2] / ".github" / "pictures" / "refusal.png"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    with live_server(folder, policy=write_policy(folder / "privacy-gate.yaml", SIGNER)) as running:
        yield running


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path, width=1400) as driver:
        yield driver


def test_the_alias_dialog_shows_the_refusal_with_its_numbers(
    server: LiveServer, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    client = MlflowClient(tracking_uri=server.url, registry_uri=server.url)
    seeded = seed_version(client, "tumours")
    tag = attestation(passing_evidence(seeded.digest, aucs=FAILING_AUCS, registered_model="tumours"), SIGNER)
    client.set_model_version_tag("tumours", "1", ATTESTATION_TAG, tag)
    browser.get(f"{server.url}/#/models/tumours/versions/1")
    wait = WebDriverWait(browser, 60)
    add = wait.until(
        condition.element_to_be_clickable(
            (
                By.XPATH,
                "//*[starts-with(normalize-space(text()), 'Aliases')]/following::button[normalize-space()='Add'][1]",
            )
        )
    )
    add.click()
    dialog = wait.until(condition.visibility_of_element_located((By.XPATH, "//*[@role='dialog']")))
    words = wait.until(lambda _: dialog.find_element(By.XPATH, ".//input[@role='combobox' or @type='search']"))
    words.send_keys("champion", Keys.ENTER)
    dialog.find_element(By.XPATH, ".//button[contains(normalize-space(), 'Save')]").click()
    wait.until(lambda _: "Privacy gate refused" in dialog.text)
    browser.save_screenshot(str(tmp_path / "refused.png"))
    dialog.find_element(By.CSS_SELECTOR, "[class*='modal-content']").screenshot(str(tmp_path / PICTURE.name))
    for words_of_the_reason in (
        "alias champion for tumours version 1",
        "PG201",
        "0.734",
        "0.55",
        "What would allow it",
    ):
        assert words_of_the_reason in dialog.text
    assert client.get_registered_model("tumours").aliases == {}


def test_the_readmes_picture_is_there_small_and_described() -> None:
    assert PICTURE.stat().st_size < 150_000
    readme = (PICTURE.parents[2] / "README.md").read_text(encoding="utf-8")
    ((words, path),) = re.findall(r"!\[(.*?)\]\((.*?)\)", readme)
    assert PICTURE.parents[2] / path == PICTURE
    assert "Privacy gate refused" in words
