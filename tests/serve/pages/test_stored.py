"""The pages about stored data in a real browser: they agree with the API and the warehouse, and fit a phone."""
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


def test_the_prediction_page_agrees_with_the_api(window):
    prediction = requests.post(f"{window.url}/predict", json={"weekend": "2026-japan"}, timeout=60).json()
    window.open("predict?weekend=2026-japan")
    window.until(lambda: window.rows("ranking"))
    rows = window.rows("ranking")
    assert [cells[1] for cells in rows] == [car["name"] for car in prediction["ranking"]]
    assert rows[0][3].strip() == f"{100 * prediction['ranking'][0]['p_win']:.1f} %"
    assert window.text("hits").startswith(
        f"{prediction['exact_matches']} of {len(prediction['ranking'])} positions exact")
    assert prediction["model"] in window.text("model")
    assert [notice.text.split("\n")[-1] for notice in window.all("notice")] == prediction["notices"]


def test_the_prediction_page_opens_with_the_next_race(window):
    window.open("predict")
    window.until(lambda: window.text("event") == "Miami Grand Prix 2026")
    assert not window.all("hits")
    window.choose("stage", "practice")
    window.until(lambda: "data up to: practice" in window.text("model"))


def test_the_comparison_page_agrees_with_the_api(window):
    window.open("compare?weekend=2026-japan")
    window.until(lambda: window.rows("means"))
    assert {"champion", "champion_ewc", "grid", "qualifying"} <= {cells[0] for cells in window.rows("means")}
    window.choose("a", "grid")
    comparison = requests.get(f"{window.url}/compare", params={"weekend": "2026-japan", "a": "grid", "b": "result"},
                              timeout=60).json()
    window.until(lambda: window.text("between") ==
                 f"Rank correlation of the two: {comparison['spearman_between']:.2f}")
    assert window.all("slopes")


def test_tables_can_be_downloaded_and_missing_ones_are_named(window, stored, tmp_path):
    window.open("evidence")
    assert "strategy.leaderboard: no data yet" in window.until(
        lambda: " ".join(element.text for element in window.all("not-yet")))
    with WarehouseFile(stored / "f1.duckdb").read() as connection:
        [(rows,)] = connection.execute("SELECT count(*) FROM ranking.evaluation_summary").fetchall()
    window.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    window.click("download-ranking.evaluation_summary")
    file = tmp_path / "ranking.evaluation_summary.csv"
    window.until(file.exists)
    with file.open(newline="") as lines:
        downloaded = list(csv.DictReader(lines))
    assert len(downloaded) == rows
    assert {"predictor", "spearman", "delta_low"} <= set(downloaded[0])


def test_figures_in_the_pictures_folder_are_shown(window, stored):
    picture = PROJECT_ROOT / "docs" / "images" / "race.png"
    (stored / "pictures" / "stories").mkdir(parents=True)
    shutil.copy(picture, stored / "pictures" / "stories" / "a race.png")
    window.open("evidence")
    window.until(lambda: window.driver.execute_script(
        "return [...document.querySelectorAll('[data-mark=picture] img')].some(image => image.naturalWidth > 100)"))
    reply = requests.get(f"{window.url}/ui/pictures/stories/a%20race.png", timeout=60)
    assert reply.content == picture.read_bytes()
    assert requests.get(f"{window.url}/ui/pictures/%2e%2e/f1.duckdb", timeout=60).status_code == 404


def test_operations_show_that_dagster_is_missing_and_require_the_key(window):
    window.open("operations")
    window.until(lambda: "does not answer" in window.text("dagster"))
    assert "2026-japan" in window.text("newest")
    window.until(lambda: window.all("key"))[0].send_keys("guessed")
    window.click("before-the-race")
    window.until(lambda: "missing or wrong" in window.driver.find_element(By.TAG_NAME, "body").text)


@pytest.mark.parametrize("width", [390, 1400])
def test_every_page_fits_without_errors_and_loads_nothing_from_other_hosts(window, width):
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
    try:
        for path in PATHS:
            window.open(path)
            window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, ".q-card canvas, .q-card table"))
            page_width, resources = window.driver.execute_script(
                "return [document.documentElement.scrollWidth, "
                "performance.getEntriesByType('resource').map(entry => entry.name)]")
            assert page_width <= width, path
            assert [name for name in resources if not name.startswith((window.url, "data:"))] == []
            assert window.errors() == []
    finally:
        window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_theme_persists_across_pages(window):
    window.open()
    button = window.driver.find_element(By.CSS_SELECTOR, '[aria-label="Light or dark"]')
    button.click()
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, "body.body--light"))
    button.click()
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, "body.body--dark"))
    window.until(lambda: (window.driver.get_cookie("theme") or {}).get("value") == "dark")
    window.open("predict")
    window.until(lambda: window.driver.find_elements(By.CSS_SELECTOR, "body.body--dark"))
    assert not window.driver.find_elements(By.CSS_SELECTOR, "body.body--light")
    assert window.errors() == []


def test_without_a_warehouse_there_is_a_race_and_every_page_says_what_to_do(window_on, tmp_path):
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


def test_an_unknown_page_is_a_404(window):
    assert requests.get(f"{window.url}/ui/nowhere", timeout=60).status_code == 404
