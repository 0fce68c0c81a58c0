"""The pages in a real browser, served by a process of its own: races to the flag and by hand, predictions, comparisons.

The whole way of a newcomer: `f1 serve`, a browser, no network. Without a browser these are skipped, in CI they fail.
"""
from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from f1_pipelines.serve.run import listen
from f1_pipelines.sim.environment.commands import GRAMMAR
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.play import play
from f1_pipelines.warehouse.database import WarehouseFile

pytestmark = [pytest.mark.xdist_group("serve-stored"), pytest.mark.timeout(240)]
PATHS = ("", "predict", "compare", "evidence", "operations")
KEY = "only-for-this-test"
PATIENCE_S = 60.0  # the machine has other things to do
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
        found = self.all(mark)
        return found[0].text if found else ""

    def click(self, mark: str) -> None:
        self.driver.execute_script("arguments[0].click()", self.until(lambda: self.all(mark))[0])

    def rows(self, mark: str) -> list[list[str]]:
        """Cells of a table as they are shown."""
        return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in self.driver.find_elements(
            By.CSS_SELECTOR, f'[data-mark="{mark}"] tbody tr')]

    def until(self, there: Callable[[], object]) -> object:
        """What it returns once that is something; what changes under our hands is asked again."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if found := there():
                    return found
            except (StaleElementReferenceException, IndexError):
                pass
            assert time.monotonic() < end, self.driver.find_element(By.TAG_NAME, "body").text[:2000]
            time.sleep(0.1)

    def choose(self, mark: str, said: str) -> None:
        """Take an option of a select."""
        self.driver.execute_script("arguments[0].closest('.q-field').querySelector('.q-field__control').click()",
                                   self.until(lambda: self.all(mark))[0])
        option = self.until(lambda: next((option for option in self.driver.find_elements(
            By.CSS_SELECTOR, "[role=option]") if option.text == said), None))
        self.driver.execute_script("arguments[0].click()", option)
        self.until(lambda: not self.driver.find_elements(By.CSS_SELECTOR, "[role=option]"))

    def errors(self) -> list[str]:
        """What the browser complained of since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[str]:
    """`f1 serve` on the warehouse in that folder, with no Dagster beside it: the address."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "F1_WAREHOUSE": str(folder / "f1.duckdb"), "F1_DAGSTER_URL": "http://127.0.0.1:9",
                   "F1_API_KEY": "", **settings}
    log = folder / "serve.log"
    with log.open("w") as told, subprocess.Popen(
            [sys.executable, "-m", "f1_pipelines", "serve", "--port", str(port)], cwd=log.parent, env=environment,
            stdout=told, stderr=subprocess.STDOUT) as process:
        try:
            _wait_for(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
    assert "Traceback" not in log.read_text(), log.read_text()[-3000:]


@pytest.fixture(scope="module")
def server(stored) -> Iterator[str]:
    with serving(stored, F1_API_KEY=KEY) as url:
        yield url


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            requests.get(url, timeout=5)
            return
        except requests.RequestException:
            time.sleep(0.2)
    pytest.fail(f"the server does not answer: {log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
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
    yield window
    assert window.errors() == []


def test_a_race_runs_to_the_flag_as_it_does_without_a_browser(window):
    window.open("?family=late_safety_car&seed=3&policy=expert")
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    window.click("step")
    window.until(lambda: window.text("head").startswith("Lap 1/"))
    window.click("to-the-flag")
    head = window.until(lambda: window.text("head").startswith("Flag") and window.text("head"))
    real = play("late_safety_car", 3, "expert")
    assert f"P{real.info['position']} of {len(real.grid)}" in head
    assert head.endswith(f"score {real.score['score']:.3f}")
    assert all(window.text(part) == f"{value:.2f}" for part, value in real.score.items() if part != "score")
    order = [cells[1].split()[0] for cells in window.rows("tower")]
    last = {row["car"]: row["position"] for row in real.laps}
    assert order[:3] == [f"#{car}" for place in (1, 2, 3) for car in last if last[car] == place]
    assert "expert (scripted)" in window.text("who")
    called = [element.text for element in window.all("called")]
    assert called == [decision["command"] for decision in reversed(real.decisions)]


def test_it_runs_by_itself_until_it_is_paused(window):
    window.open("?family=dry_strategy_sprint&seed=1&policy=stay_out")
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    window.click("play")
    window.until(lambda: re.match(r"Lap [3-9]/", window.text("head")))
    window.click("play")
    time.sleep(1.0)  # a lap under way when it was paused
    paused = window.text("head")
    time.sleep(2.0)
    assert window.text("head") == paused


def test_three_laps_by_hand_are_what_the_environment_makes_of_them(window):
    calls = ("STAY_OUT", 'RADIO_DRIVER "Box lap 3 for hards"', "PIT_NOW hard")
    window.open("?family=dry_strategy_sprint&seed=5&policy=you")
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    window.click("STAY_OUT")
    window.until(lambda: window.text("head").startswith("Lap 1/"))
    window.choose("verb", "RADIO_DRIVER")
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, 'input[data-mark="argument"][maxlength]'))
    window.all("argument")[0].send_keys("Box lap 3 for hards")
    window.click("call")
    window.until(lambda: window.text("head").startswith("Lap 2/"))
    window.click("PIT_NOW-hard")
    window.until(lambda: window.text("head").startswith("Lap 3/"))
    environment = RaceEnvironment()
    environment.reset(5, "dry_strategy_sprint")
    steps = [environment.step(call) for call in calls]
    assert f"P{steps[-1].observation.position} of" in window.text("head")
    assert window.text("head").endswith(f"score so far {sum(step.reward for step in steps):.3f}")
    assert all(call in window.text("log") for call in calls)
    assert "you" in window.text("who")


def test_every_command_is_offered_with_what_it_takes(window):
    window.open("?policy=you")
    window.until(lambda: window.all("verb"))
    window.driver.execute_script("arguments[0].closest('.q-field').querySelector('.q-field__control').click()",
                                 window.all("verb")[0])
    window.until(lambda: {option.text for option in window.driver.find_elements(By.CSS_SELECTOR, "[role=option]")}
                 >= {"PIT_NOW", "DONE"})
    offered = set()
    for top in (0, 2000):  # the list draws what is in sight
        window.driver.execute_script("document.querySelector('.q-menu').scrollTop = arguments[0]", top)
        time.sleep(0.5)
        offered |= {option.text for option in window.driver.find_elements(By.CSS_SELECTOR, "[role=option]")}
    assert offered == set(GRAMMAR)
    window.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    for verb in ("PIT_NOW", "HOLD_GAP", "BRIEF_MEDIA", "DONE"):  # a word, a car, a text, nothing
        window.choose("verb", verb)
        window.until(lambda verb=verb: bool(window.all("argument")) == (GRAMMAR[verb] is not None))


def test_a_grand_prix_is_rebuilt_from_the_warehouse(window):
    window.open("?family=grand_prix&weekend=2026-japan&seed=1&policy=stay_out")
    window.until(lambda: window.text("head").startswith("Lap 0/53"))
    window.click("step")
    window.until(lambda: window.text("head").startswith("Lap 1/53"))
    assert len(window.rows("tower")) == 22
    assert "2026-japan" in window.text("who")


def test_a_prediction_is_the_one_of_the_api(window):
    told = requests.post(f"{window.url}/predict", json={"weekend": "2026-japan"}, timeout=60).json()
    window.open("predict?weekend=2026-japan")
    window.until(lambda: window.rows("ranking"))
    shown = window.rows("ranking")
    assert [cells[1] for cells in shown] == [car["name"] for car in told["ranking"]]
    assert shown[0][3].strip() == f"{100 * told['ranking'][0]['p_win']:.1f} %"
    assert window.text("hits").startswith(f"{told['exact_matches']} of {len(told['ranking'])} places hit")
    assert told["model"] in window.text("model")
    assert [notice.text.split("\n")[-1] for notice in window.all("notice")] == told["notices"]


def test_the_next_race_is_what_predict_opens_with(window):
    window.open("predict")
    window.until(lambda: window.text("event") == "Miami Grand Prix 2026")
    assert not window.all("hits")
    window.choose("stage", "practice")
    window.until(lambda: "known after: practice" in window.text("model"))


def test_a_comparison_is_the_one_of_the_api(window):
    window.open("compare?weekend=2026-japan")
    window.until(lambda: window.rows("means"))
    assert {"champion", "champion_ewc", "grid", "qualifying"} <= {cells[0] for cells in window.rows("means")}
    window.choose("a", "the grid")
    told = requests.get(f"{window.url}/compare", params={"weekend": "2026-japan", "a": "grid", "b": "result"},
                        timeout=60).json()
    window.until(lambda: window.text("between") == f"Between the two: {told['spearman_between']:.2f}")
    assert window.all("slopes")


def test_evidence_can_be_taken_along_and_what_is_missing_is_said(window, stored, tmp_path):
    window.open("evidence")
    assert "strategy.leaderboard: not there yet" in window.until(
        lambda: " ".join(element.text for element in window.all("not-yet")))
    with WarehouseFile(stored / "f1.duckdb").read() as connection:
        [(rows,)] = connection.execute("SELECT count(*) FROM ranking.evaluation_summary").fetchall()
    window.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    window.click("download-ranking.evaluation_summary")
    file = tmp_path / "ranking.evaluation_summary.csv"
    window.until(file.exists)
    with file.open(newline="") as told:
        taken = list(csv.DictReader(told))
    assert len(taken) == rows
    assert {"predictor", "spearman", "delta_low"} <= set(taken[0])


def test_operations_say_that_dagster_is_away_and_want_the_key(window):
    window.open("operations")
    window.until(lambda: "does not answer" in window.text("dagster"))
    assert "2026-japan" in window.text("newest")
    window.until(lambda: window.all("key"))[0].send_keys("guessed")
    window.click("before-the-race")
    window.until(lambda: "missing or wrong" in window.driver.find_element(By.TAG_NAME, "body").text)


@pytest.mark.parametrize("width", [390, 1400])
def test_every_page_fits_without_complaint_and_loads_nothing_from_elsewhere(window, width):
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    try:
        for path in PATHS:
            window.open(path)
            window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, ".q-card canvas, .q-card table"))
            wide, from_where = window.driver.execute_script(
                "return [document.documentElement.scrollWidth, "
                "performance.getEntriesByType('resource').map(entry => entry.name)]")
            assert wide <= width, path
            assert [name for name in from_where if not name.startswith((window.url, "data:"))] == []
            assert window.errors() == []
    finally:
        window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_light_or_dark_stays_from_page_to_page(window):
    window.open()
    turn = window.driver.find_element(By.CSS_SELECTOR, '[aria-label="Light or dark"]')
    turn.click()
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, "body.body--light"))
    turn.click()
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, "body.body--dark"))
    window.until(lambda: (window.driver.get_cookie("theme") or {}).get("value") == "dark")
    window.open("predict")
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, "body.body--dark"))


def test_a_newcomer_without_a_warehouse_sees_a_race_and_is_told_what_to_do(driver, tmp_path):
    with serving(tmp_path) as url:
        window = Window(driver, url)
        driver.get(url)
        window.until(lambda: window.text("head").startswith("Lap 0/"))
        assert driver.current_url == f"{url}/ui/"
        window.click("to-the-flag")
        window.until(lambda: window.text("head").startswith("Flag"))
        for path in PATHS[1:]:
            window.open(path)
            window.until(lambda: "make demo" in window.text("notice"))
        assert "F1_API_KEY" in window.text("no-key")
        assert window.errors() == []


def test_a_page_that_is_not_there_is_said_not_to_be(window):
    assert requests.get(f"{window.url}/ui/nowhere", timeout=60).status_code == 404
