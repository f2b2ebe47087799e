"""Headless Chromium for tests of what a person sees; a test that asks for it is skipped, aloud, where Chromium is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver

WIDTH, HEIGHT = 1280, 1000
_FLAGS = (
    "headless=new",
    "no-sandbox",
    "disable-gpu",
    "disable-dev-shm-usage",
    "disable-background-networking",
    "disable-quic",
    "no-first-run",
    "disable-component-update",
    "disable-sync",
    "hide-scrollbars",
)


@contextmanager
def chromium(folder: Path, *, width: int = WIDTH, height: int = HEIGHT) -> Iterator[webdriver.Chrome]:
    """Run a browser with its profile in ``folder``; the page is ``width`` CSS pixels wide."""
    binary, driver_binary = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver_binary is None:
        pytest.skip("Chromium or chromedriver is missing (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"window-size={width},{height}", f"user-data-dir={folder / 'profile'}"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_binary))
    try:
        yield driver
    finally:
        driver.quit()
