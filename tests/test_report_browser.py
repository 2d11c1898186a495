"""The HTML page in a real headless Chromium: it opens without errors and without a request, and can be stepped through.

Deselected unless asked for (`-m browser`): it needs Debian's `chromium` and `chromium-driver`, and Selenium, which is
in the extra `browser`. `.ci/browser` installs them and runs this file.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from outlives.invariants.report.content import Run
from outlives.invariants.report.html import html
from report_cases import adjacent, chunk_end, green
from report_pages import full, hostile, long, run_of

pytestmark = pytest.mark.browser
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update")  # fmt: skip
RUNS: dict[str, Callable[[], Run]] = {
    "full": lambda: run_of(full()),
    "several": lambda: run_of(full(), chunk_end(), adjacent()),
    "long": lambda: run_of(long(2_000, requests=2)),
    "green": green,
    "hostile": hostile,
}


class Browser:
    """A driver, and the pages of the cases as files."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver = driver
        self._folder = folder
        for name, make in RUNS.items():
            (folder / f"{name}.html").write_text(html(make()), encoding="utf-8")

    def open(self, name: str, fragment: str = "") -> float:
        """Open a page; the seconds until it was loaded and laid out."""
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        begin = time.perf_counter()
        self.driver.get(f"{(self._folder / name).as_uri()}.html{fragment}")
        self.driver.execute_script("return document.body.offsetHeight")  # laid out
        return time.perf_counter() - begin

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith("data:")]

    def run(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def send(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def window(self, width: int, height: int, *, phone: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def media(self, **features: str) -> None:
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.send("Emulation.setEmulatedMedia", features=named)

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def step(self) -> str:
        """The number of the step that is shown; there is one."""
        panels = "[...document.querySelectorAll('#v1 .panel')]"
        (step,) = self.run(f"{panels}.filter(each => each.offsetHeight).map(each => each.dataset.step)")
        return str(step)


@pytest.fixture(scope="module")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or "chromedriver"))
    try:
        yield Browser(driver, tmp_path_factory.mktemp("pages"))
    finally:
        driver.quit()


@pytest.fixture
def browser(_started: Browser) -> Browser:
    _started.window(1280, 800)
    _started.media(prefers_color_scheme="light")
    _started.send("Emulation.setScriptExecutionDisabled", value=False)
    return _started


@pytest.mark.parametrize("name", RUNS)
def test_a_page_opens_without_errors_and_asks_for_nothing(browser: Browser, name: str) -> None:
    browser.open(name)
    assert browser.errors() == []
    (own,) = browser.requests()
    assert own.endswith(f"/{name}.html")


def test_it_opens_at_the_failing_step_on_the_first_screen(browser: Browser) -> None:
    browser.open("full")
    assert browser.step() == "9"
    strip = "document.querySelector('.panel.selected svg.large').getBoundingClientRect()"
    headline = "document.querySelector('h2').getBoundingClientRect()"
    assert browser.run(f"{headline}.top > 0 && {headline}.bottom < {strip}.top && {strip}.bottom < innerHeight")
    assert "released at step 5" in browser.run("document.querySelector('h2').textContent")


def test_keys_go_from_step_to_step(browser: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open("full")
    seen = []
    for key in (Keys.ARROW_LEFT, "k", Keys.ARROW_RIGHT, Keys.HOME, "j", Keys.ARROW_DOWN, Keys.END, Keys.ARROW_RIGHT):
        browser.press(key)
        seen.append(browser.step())
    assert seen == ["8", "7", "8", "0", "1", "2", "9", "9"]
    assert browser.run("location.hash") == "#v1-s9"
    assert browser.run("document.querySelector('[role=status]').textContent").startswith("Step 9 of 9")
    assert browser.run("document.querySelector('tr.current').dataset.step") == "9"
    assert browser.run("document.querySelectorAll('[aria-current=step]').length") == 2
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert browser.run(f"document.activeElement.className + ' ' + {outline}") == "stage solid"


def test_buttons_rows_and_links_go_to_steps(browser: Browser) -> None:
    browser.open("full")
    seen = []
    for selector in (
        "[data-go=previous]",
        "[data-go=first]",
        "[data-go='v1-s5']",
        "tr[data-step='7'] td",
        ".because a[href='#v1-s2']",
        "a.stop[href='#v1-s6'] text",
    ):
        browser.run(f'document.querySelector("{selector}").dispatchEvent(new MouseEvent("click", {{bubbles: true}}))')
        seen.append(browser.step())
    assert seen == ["8", "0", "5", "7", "2", "6"]


def test_a_link_opens_at_its_step(browser: Browser) -> None:
    browser.open("full", "#v1-s5")
    assert browser.step() == "5"
    browser.run("void (location.hash = '#v1-s3')")
    time.sleep(0.1)
    assert browser.step() == "3"


def test_the_keys_go_to_the_trace_that_is_looked_at(browser: Browser) -> None:
    browser.open("several", "#v3-s1")
    browser.press("j")
    assert browser.run("location.hash") == "#v3-s2"
    assert browser.step() == "9"  # of the first trace
    browser.run("void document.querySelector('#v1 .stage').focus({preventScroll: true})")
    browser.press("k")
    assert browser.step() == "8"


def test_without_script_everything_is_there_and_links_show_steps(browser: Browser) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.open("full", "#v1-s5")
    assert browser.step() == "5"
    assert browser.run("document.documentElement.className") == ""
    assert browser.run("[...document.querySelectorAll('tr[data-step] svg.strip')].every(each => each.clientHeight > 0)")
    assert browser.run("document.querySelectorAll('button:not([hidden])').length - "
                       "document.querySelectorAll('[hidden] button').length") == 0  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("width", [320, 360])
def test_a_phone_scrolls_no_page_sideways(browser: Browser, name: str, width: int) -> None:
    browser.window(width, 740, phone=True)
    browser.open(name)
    assert browser.run("document.documentElement.scrollWidth") == width
    stuck_out = (
        "[...document.querySelectorAll('main *, header *')].filter(each => each.getBoundingClientRect().right > "
        "innerWidth + 1 && !each.closest('.scroll, .definitions, .spoken, thead, .skip'))"
        ".map(each => each.outerHTML.slice(0, 90))"
    )
    assert browser.run(stuck_out) == []


def test_dark_and_light_are_what_the_reader_asks_for(browser: Browser) -> None:
    colours = []
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        browser.open("full")
        colours.append(browser.run("[document.body, document.querySelector('.strip text')].map((each, at) => "
                                   "getComputedStyle(each)[at ? 'fill' : 'backgroundColor'])"))  # fmt: skip
        assert browser.errors() == []
    assert colours[0] == ["rgb(255, 255, 255)", "rgb(87, 96, 106)"]
    assert colours[1] == ["rgb(13, 17, 23)", "rgb(154, 164, 175)"]


def test_nothing_moves_where_that_is_not_wanted(browser: Browser) -> None:
    browser.media(prefers_reduced_motion="reduce")
    browser.open("full")
    assert browser.run("getComputedStyle(document.querySelector('.stop rect')).transitionDuration") == "0s"


def test_a_trace_of_2000_steps_opens_within_two_seconds(browser: Browser) -> None:
    assert browser.open("long") < 2
    assert browser.step() == "2000"
    assert browser.run("document.querySelectorAll('tr.gap').length") == 2


def test_hostile_names_execute_nowhere(browser: Browser) -> None:
    browser.open("hostile")
    assert browser.run("window.ran") is None
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert browser.run("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert "<script>window.ran=1</script>" in browser.run("document.querySelector('h2').textContent")
    # Were it markup, the policy of the page would still stop it.
    browser.run("void document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran=1\">')")
    browser.run(
        "void document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran=1'}))"
    )
    time.sleep(0.2)
    assert browser.run("window.ran") is None
    assert len([error for error in browser.errors() if "Content Security Policy" in error]) >= 2


def test_the_command_can_be_copied(browser: Browser) -> None:
    browser.open("full")
    browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.run("void document.querySelector('button.copy').click()")
    time.sleep(0.2)
    assert browser.run("document.querySelector('button.copy').textContent") in ("Copied", "Selected: press Ctrl-C")


def test_it_prints_with_every_step_and_in_light(browser: Browser) -> None:
    browser.media(prefers_color_scheme="dark")
    browser.open("full")
    browser.send("Emulation.setEmulatedMedia", media="print",
                 features=[{"name": "prefers-color-scheme", "value": "dark"}])  # fmt: skip
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('.buttons')).display") == "none"
    assert browser.run("document.querySelectorAll('tr[data-step]').length") == 10
    assert browser.run("[...document.querySelectorAll('tr[data-step]')].every(row => row.offsetHeight > 0)")
    browser.send("Emulation.setEmulatedMedia", media="")
    assert len(browser.send("Page.printToPDF", printBackground=True)["data"]) > 10_000
