"""What a person sees in MLflow's own pages: description, card and report, drawn by a real server and read in a real browser."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from browser import WIDTH, chromium
from card_cases import dark_corners
from evidence_builder import write_policy
from live_server import LiveServer, live_server
from mlflow import MlflowClient
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mlflow_privacy_gate as privacy_gate
from mlflow_privacy_gate.cards import html_report
from mlflow_privacy_gate.evidence.signing import generate_key
from mlflow_privacy_gate.vocabulary import RULE_URL

pytestmark = [
    pytest.mark.server,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
]

ROWS = 200
CARD = """\
---
license: mit
privacy_gate:
  training_data: Drawn rows
  release_context: internal
---

# A model | with a pipe in its heading

Words of the author.
"""
CORNERS = dark_corners()
# What no page may show: markers, HTML or Markdown that was meant to be drawn, template syntax.
RAW = re.compile(r"\[//\]|<a |</|\|-+\||\*\*|\{\{|&\w+;|^\s*\|", re.MULTILINE)


@dataclass(frozen=True)
class Checked:
    """A version that was checked, by the ids its pages are found under."""

    name: str
    run_id: str
    experiment: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    policy = write_policy(folder / "privacy-gate.yaml", generate_key(folder / "privacy-gate.key"))
    with live_server(folder, policy=policy) as running:
        yield running


@pytest.fixture(scope="module")
def versions(server: LiveServer) -> Iterator[dict[str, Checked]]:
    logging.getLogger("alembic").setLevel(logging.WARNING)
    before = mlflow.get_tracking_uri(), mlflow.get_registry_uri()
    mlflow.set_tracking_uri(server.url)
    mlflow.set_registry_uri(server.url)
    try:
        experiment = mlflow.create_experiment("pages")
        models = {"leaky": RandomForestClassifier(bootstrap=False, random_state=0), "quiet": LogisticRegression(C=1e-3)}
        yield {name: checked(name, estimator, experiment, server) for name, estimator in models.items()}
    finally:
        mlflow.set_tracking_uri(before[0])
        mlflow.set_registry_uri(before[1])


def checked(name: str, estimator: object, experiment: str, server: LiveServer) -> Checked:
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.normal(size=(2 * ROWS, 6)), columns=list("abcdef"))
    frame = features.assign(label=(features["a"] + rng.normal(size=2 * ROWS) * 2 > 0).astype("int64"))
    members, non_members = frame.iloc[:ROWS], frame.iloc[ROWS:]
    with mlflow.start_run(experiment_id=experiment) as run:
        estimator.fit(members.drop(columns="label"), members["label"])  # type: ignore[attr-defined]
        mlflow.sklearn.log_model(
            estimator, name="model", registered_model_name=name, serialization_format="cloudpickle"
        )
        mlflow.log_text(CARD, "README.md")
        privacy_gate.log_splits(members, non_members, target="label", store_rows=True)
    assert server.policy is not None
    privacy_gate.check(
        f"models:/{name}/1", policy=server.policy, key=server.folder / "privacy-gate.key", evaluator="Team B"
    )
    return Checked(name, run.info.run_id, experiment)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("browser")) as driver:
        yield driver


def shown(browser: Chrome, address: str, words: str, picture: Path) -> str:
    """Open a page, wait until it shows ``words``, and give all its text."""
    browser.get("about:blank")  # a change of the fragment alone loads nothing
    browser.get(address)
    WebDriverWait(browser, 60).until(lambda page: words in page.find_element(By.TAG_NAME, "body").text)
    browser.save_screenshot(str(picture))
    return str(browser.find_element(By.TAG_NAME, "body").text)


def artifact(server: LiveServer, version: Checked, path: str) -> str:
    return f"{server.url}/#/experiments/{version.experiment}/runs/{version.run_id}/artifacts/{path}"


def header_of(table: WebElement) -> list[str]:
    cells = table.find_elements(By.CSS_SELECTOR, "th, [role='columnheader']")
    return [cell.text.strip() for cell in cells]


@pytest.mark.parametrize(("name", "word"), [("leaky", "FAIL"), ("quiet", "PASS")])
def test_the_version_page_shows_the_description_with_its_tables_drawn(
    server: LiveServer, versions: dict[str, Checked], browser: Chrome, tmp_path: Path, name: str, word: str
) -> None:
    address = f"{server.url}/#/models/{name}/versions/1"
    text = shown(browser, address, "Membership inference test", tmp_path / "version.png")
    description = text[text.index("Membership inference test") : text.index("Tags")]
    assert f"{word}: attack AUC" in description
    assert not RAW.search(description)
    attacks = next(t for t in browser.find_elements(By.TAG_NAME, "table") if header_of(t)[:2] == ["Attack", "AUC"])
    assert header_of(attacks) == ["Attack", "AUC", "95 % interval", "Margin", "Headroom", "Result"]
    assert len(attacks.find_elements(By.CSS_SELECTOR, "tbody tr")) == 5
    for row in attacks.find_elements(By.CSS_SELECTOR, "tbody tr"):
        assert space_between(browser, *row.find_elements(By.TAG_NAME, "td")[1:3]) >= 4
    (credit,) = browser.find_elements(By.CSS_SELECTOR, f"a[href='{RULE_URL}']")
    assert credit.text == "Agent Wranglers machine learning playbook"
    browser.execute_script("arguments[0].scrollIntoView()", attacks)
    browser.save_screenshot(str(tmp_path / "version_table.png"))
    if "Shortened" in description:
        assert leads_to_its_run(browser, browser.find_element(By.LINK_TEXT, "the training run"), versions[name])


def leads_to_its_run(browser: Chrome, link: WebElement, version: Checked) -> bool:
    """Follow a link into the new tab that MLflow opens, and come back."""
    first = browser.current_window_handle
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", link)
    link.click()
    WebDriverWait(browser, 60).until(lambda page: len(page.window_handles) > 1)
    browser.switch_to.window(browser.window_handles[-1])
    try:
        page = f"/#/experiments/{version.experiment}/runs/{version.run_id}"
        return bool(WebDriverWait(browser, 60).until(lambda opened: page in opened.current_url))
    finally:
        browser.close()
        browser.switch_to.window(first)


def space_between(browser: Chrome, left: WebElement, right: WebElement) -> float:
    """Give the empty pixels between the words of two neighbouring cells."""
    script = """
        const ends = cell => {
            const range = document.createRange();
            const node = cell.firstChild;
            range.setStart(node, 0);
            range.setEnd(node, node.textContent.trimEnd().length);
            return range.getBoundingClientRect();
        };
        return ends(arguments[1]).left - ends(arguments[0]).right;
    """
    return float(browser.execute_script(script, left, right))


def test_the_card_is_drawn_in_the_artifact_preview(
    server: LiveServer, versions: dict[str, Checked], browser: Chrome, tmp_path: Path
) -> None:
    text = shown(browser, artifact(server, versions["leaky"], "README.md"), "To verify:", tmp_path / "card.png")
    assert "A model | with a pipe in its heading" in text
    assert "Words of the author." in text
    body = text[text.index("Words of the author.") :]
    assert "FAIL: attack AUC" in body
    assert not RAW.search(body)
    tables = browser.find_elements(By.CSS_SELECTOR, "table, [role='table']")
    assert ["Attack", "AUC", "95 % interval", "Margin", "Headroom", "Result"] in [header_of(t) for t in tables]
    (credit,) = browser.find_elements(By.CSS_SELECTOR, f"a[href='{RULE_URL}']")
    browser.execute_script("arguments[0].scrollIntoView()", tables[0])
    browser.save_screenshot(str(tmp_path / "card_table.png"))
    browser.find_element(By.CSS_SELECTOR, "[data-component-id='mlflow.assistant.chat_panel.close']").click()
    WebDriverWait(browser, 20).until(lambda page: words_cut_off(page) == [])
    browser.execute_script("arguments[0].scrollIntoView()", credit)
    browser.save_screenshot(str(tmp_path / "card_end.png"))


def words_cut_off(browser: Chrome) -> list[str]:
    """Give the column heads that MLflow's table shows with three dots at their end."""
    script = """
        return [...document.querySelectorAll('[role=columnheader] *')].filter(
            one => one.scrollWidth > one.clientWidth).map(one => one.textContent);
    """
    return list(browser.execute_script(script))


def test_the_report_opens_in_the_artifact_preview_and_fits_it(
    server: LiveServer, versions: dict[str, Checked], browser: Chrome, tmp_path: Path
) -> None:
    shown(browser, artifact(server, versions["leaky"], "privacy_gate/report.html"), "report.html", tmp_path / "x.png")
    frame = WebDriverWait(browser, 60).until(lambda page: page.find_element(By.TAG_NAME, "iframe"))
    browser.switch_to.frame(frame)
    try:
        WebDriverWait(browser, 60).until(lambda page: "What to do next" in page.find_element(By.TAG_NAME, "body").text)
        text = browser.find_element(By.TAG_NAME, "body").text
        assert scrolls_sideways(browser) is False
        assert len(browser.find_elements(By.TAG_NAME, "svg")) >= 3
    finally:
        browser.switch_to.default_content()
    browser.save_screenshot(str(tmp_path / "report_preview.png"))
    assert "FAIL" in text
    assert "Drawn rows (as the card's author states)" in text
    assert "Evaluator Team B" in text
    assert not RAW.search(text)


def scrolls_sideways(browser: Chrome) -> bool:
    script = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
    return bool(browser.execute_script(script))


@pytest.mark.parametrize(("name", "word"), [("leaky", "FAIL"), ("quiet", "PASS")])
def test_the_report_is_readable_at_1280_pixels_and_its_first_screen_says_what_to_do(
    server: LiveServer, versions: dict[str, Checked], browser: Chrome, tmp_path: Path, name: str, word: str
) -> None:
    browser.get(stored_report(server, versions[name]).as_uri())
    browser.save_screenshot(str(tmp_path / "first_screen.png"))
    assert browser.execute_script("return window.innerWidth") == WIDTH
    assert not scrolls_sideways(browser)
    box = browser.find_element(By.CSS_SELECTOR, "section.verdict")
    height = browser.execute_script("return window.innerHeight")
    assert box.location["y"] + box.size["height"] < height
    assert word in box.text
    assert "What to do next" in box.text
    wide = [table for table in browser.find_elements(By.CSS_SELECTOR, ".wide") if sideways(browser, table)]
    assert wide == []


def sideways(browser: Chrome, element: WebElement) -> bool:
    script = "return arguments[0].scrollWidth > arguments[0].clientWidth"
    return bool(browser.execute_script(script, element))


def stored_report(server: LiveServer, version: Checked) -> Path:
    (path,) = server.artifacts.rglob(f"{version.run_id}/artifacts/privacy_gate/report.html")
    return path


def test_the_report_prints_to_pages_of_a4(
    server: LiveServer, versions: dict[str, Checked], browser: Chrome, tmp_path: Path
) -> None:
    browser.get(stored_report(server, versions["leaky"]).as_uri())
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    pdf = base64.b64decode(printed["data"])
    (tmp_path / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF-")
    sizes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert 3 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 12
    assert {(round(float(width)), round(float(height))) for width, height in sizes} <= {(595, 842), (596, 842)}


@pytest.fixture(scope="module")
def corners(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("corners")
    pages = {name: folder / f"{number}.html" for number, name in enumerate(CORNERS)}
    for name, page in pages.items():
        page.write_text(html_report(CORNERS[name]), encoding="utf-8")
    return pages


@contextmanager
def page_of(browser: Chrome, page: Path, *, width: int = WIDTH, media: str = "screen") -> Iterator[None]:
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
    try:
        browser.get(page.as_uri())
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("name", CORNERS)
@pytest.mark.parametrize("width", [WIDTH, 800])
def test_no_report_runs_out_of_its_page(
    corners: dict[str, Path], browser: Chrome, tmp_path: Path, name: str, width: int
) -> None:
    with page_of(browser, corners[name], width=width):
        browser.save_screenshot(str(tmp_path / "corner.png"))
        assert not scrolls_sideways(browser)
        assert [
            table.text for table in browser.find_elements(By.CSS_SELECTOR, ".wide") if sideways(browser, table)
        ] == []


@pytest.mark.parametrize("name", CORNERS)
def test_no_two_words_of_a_plot_lie_upon_each_other_or_beyond_it(
    corners: dict[str, Path], browser: Chrome, name: str
) -> None:
    script = """
        return [...document.querySelectorAll('svg')].flatMap(plot => {
            const edge = plot.getBoundingClientRect();
            const words = [...plot.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
            const beyond = words.filter(([_, box]) =>
                box.left < edge.left || box.right > edge.right || box.top < edge.top || box.bottom > edge.bottom);
            const upon = words.filter(([_, one], at) => words.slice(at + 1).some(([_, other]) =>
                one.left < other.right && other.left < one.right && one.top + 2 < other.bottom && other.top + 2 < one.bottom));
            return [...beyond, ...upon].map(([words]) => words);
        });
    """
    with page_of(browser, corners[name]):
        assert browser.execute_script(script) == []


@pytest.mark.parametrize("name", CORNERS)
def test_in_print_tables_rows_figures_and_the_signature_are_kept_whole(
    corners: dict[str, Path], browser: Chrome, name: str
) -> None:
    script = """
        const kept = (name, value) => [...document.querySelectorAll(arguments[0])].filter(
            one => getComputedStyle(one)[name] !== value).map(one => one.textContent.slice(0, 60));
        return kept(arguments[1], arguments[2]);
    """
    with page_of(browser, corners[name], media="print"):
        whole = "table:not(.long), tr, figure, .verdict, .signature, footer"
        assert browser.execute_script(script, whole, "breakInside", "avoid") == []
        assert browser.execute_script(script, "h2, h3, caption, thead, tr.column", "breakAfter", "avoid") == []
        assert browser.execute_script(script, "thead", "display", "table-header-group") == []


def test_a_long_description_is_kept_whole_and_ours_is_shortened(
    server: LiveServer, versions: dict[str, Checked]
) -> None:
    client, words = MlflowClient(), "Words of the author. " * 200
    client.update_model_version("quiet", "1", words)
    privacy_gate.check("models:/quiet/1", policy=server.policy, key=server.folder / "privacy-gate.key")
    description = client.get_model_version("quiet", "1").description
    assert description is not None
    assert description.startswith(words.rstrip())
    assert "**PASS**" in description
    assert 4_700 < len(description) <= 5_000
