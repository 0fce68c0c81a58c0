"""The pages on what is stored, in a real browser: they say what the API and the warehouse say, on a phone too."""
from __future__ import annotations

import csv
import shutil

import pytest
import requests
from selenium.webdriver.common.by import By

from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.warehouse.database import WarehouseFile

pytestmark = [pytest.mark.xdist_group("serve-stored"), pytest.mark.timeout(280)]
PATHS = ("", "predict", "compare", "evidence", "operations")


def test_a_prediction_is_the_one_of_the_api(window):
    told = requests.post(f"{window.url}/predict", json={"weekend": "2026-japan"}, timeout=60).json()
    window.open("predict?weekend=2026-japan")
    window.until(lambda: window.rows("ranking"))
    shown = window.rows("ranking")
    assert [cells[1] for cells in shown] == [car["name"] for car in told["ranking"]]
    assert shown[0][3].strip() == f"{100 * told['ranking'][0]['p_win']:.1f} %"
    assert window.text("hits").startswith(f"{told['exact_matches']} of {len(told['ranking'])} places exact")
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


def test_pictures_beside_the_warehouse_are_shown(window, stored):
    picture = PROJECT_ROOT / "docs" / "images" / "race.png"
    (stored / "pictures" / "stories").mkdir(parents=True)
    shutil.copy(picture, stored / "pictures" / "stories" / "a race.png")
    window.open("evidence")
    window.until(lambda: window.driver.execute_script(
        "return [...document.querySelectorAll('[data-mark=picture] img')].some(image => image.naturalWidth > 100)"))
    reply = requests.get(f"{window.url}/ui/pictures/stories/a%20race.png", timeout=60)
    assert reply.content == picture.read_bytes()
    assert requests.get(f"{window.url}/ui/pictures/%2e%2e/f1.duckdb", timeout=60).status_code == 404


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
    assert not window.driver.find_elements(By.CSS_SELECTOR, "body.body--light")
    assert window.errors() == []


def test_a_newcomer_without_a_warehouse_sees_a_race_and_is_told_what_to_do(window_on, tmp_path):
    window = window_on(tmp_path)
    window.driver.get(window.url)
    window.until(lambda: window.text("head").startswith("Lap 0/"))
    assert window.driver.current_url == f"{window.url}/ui/"
    window.click("to-the-flag")
    window.until(lambda: window.text("head").startswith("Flag"))
    for path in PATHS[1:]:
        window.open(path)
        window.until(lambda: "make demo" in window.text("notice"))
    assert "F1_API_KEY" in window.text("no-key")
    assert window.errors() == []


def test_a_page_that_is_not_there_is_said_not_to_be(window):
    assert requests.get(f"{window.url}/ui/nowhere", timeout=60).status_code == 404
