"""A browser on the pages of `f1 serve`, which runs in its own process.

Without a browser these tests are skipped; in CI they fail.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from f1_pipelines.serve.run import listen

KEY = "only-for-this-test"
TIMEOUT_S = 120.0  # long, because the machine may be busy
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000")


class Window:
    """A browser on the server's pages."""

    def __init__(self, driver: webdriver.Chrome, url: str):
        self.driver, self.url = driver, url

    def open(self, path: str = "") -> None:
        self.driver.get(f"{self.url}/ui/{path}")
        self.until(lambda: self.driver.execute_script("return window.did_handshake === true"))

    def all(self, mark: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, f'[data-mark="{mark}"]')

    def text(self, mark: str) -> str:
        elements = self.all(mark)
        return elements[0].text if elements else ""

    def click(self, mark: str) -> None:
        self.driver.execute_script("arguments[0].click()", self.until(lambda: self.all(mark))[0])

    def rows(self, mark: str) -> list[list[str]]:
        """The shown cells of a table, by row."""
        return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in self.driver.find_elements(
            By.CSS_SELECTOR, f'[data-mark="{mark}"] tbody tr')]

    def until(self, condition: Callable[[], object]) -> object:
        """Call `condition` until its result is true, and return it. Elements that change meanwhile are read again."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                if result := condition():
                    return result
            except (StaleElementReferenceException, IndexError):
                pass
            assert time.monotonic() < end, self.driver.find_element(By.TAG_NAME, "body").text[:2000]
            time.sleep(0.1)

    def choose(self, mark: str, label: str) -> None:
        """Choose an option of a select."""
        self.driver.execute_script("arguments[0].closest('.q-field').querySelector('.q-field__control').click()",
                                   self.until(lambda: self.all(mark))[0])
        option = self.until(lambda: next((option for option in self.driver.find_elements(
            By.CSS_SELECTOR, "[role=option]") if option.text == label), None))
        self.driver.execute_script("arguments[0].click()", option)
        self.until(lambda: not self.driver.find_elements(By.CSS_SELECTOR, "[role=option]"))

    def errors(self) -> list[str]:
        """Errors in the browser's log since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[str]:
    """Run `f1 serve` on the warehouse in a folder, without Dagster; yields its address."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "F1_WAREHOUSE": str(folder / "f1.duckdb"), "F1_DAGSTER_URL": "http://127.0.0.1:9",
                   "F1_API_KEY": "", **settings}
    log = folder / "serve.log"
    with log.open("w") as output, subprocess.Popen(
            [sys.executable, "-m", "f1_pipelines", "serve", "--port", str(port)], cwd=log.parent, env=environment,
            stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


@pytest.fixture(scope="session")
def server(sample_seasons) -> Iterator[str]:
    with serving(sample_seasons, F1_API_KEY=KEY) as url:
        yield url


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            requests.get(url, timeout=5)
            return
        except requests.RequestException:
            time.sleep(0.2)
    pytest.fail(f"the server does not answer: {log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    chromium, chromedriver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and chromedriver):
        missing = pytest.fail if os.environ.get("F1_BROWSER_REQUIRED") else pytest.skip
        missing("needs a browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver)) as running:
        yield running


@pytest.fixture
def window(server, driver) -> Iterator[Window]:
    window = Window(driver, server)
    driver.get("about:blank")  # the page of an ended server would log more errors
    window.errors()
    yield window
    assert window.errors() == []


@pytest.fixture
def window_on(driver) -> Iterator[Callable[[Path], Window]]:
    """`window_on(folder)`: the browser on another server, with the warehouse in that folder."""
    with ExitStack() as servers:
        yield lambda folder: Window(driver, servers.enter_context(serving(folder)))
