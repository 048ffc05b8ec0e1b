"""report.html: model text is data whatever it holds, and in a real browser the page does what it says."""

import base64
import hashlib
import json
import os
import re
import shutil
import zlib

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from eval import html
from eval.html import VERDICTS, write_report
from eval.runs import read_run
from tests.fake_runs import write_run

HOSTILE = (
    "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    "{{ 7*7 }} \" onmouseover=\"document.title='run' <!-- ]]> &lt; \u202e\u2028 日本 👩‍👩‍👧"
)
MARKS = [True, False, False, True, False, True]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a run whose model text, ids, subjects, answers and names all try to be more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    bad = {"id": f"{HOSTILE}/1", "subject": HOSTILE, "prediction": HOSTILE, "gold": HOSTILE, "response": HOSTILE}
    lines = {1: bad, 2: {"prediction": None}}
    write_run(folder, MARKS, models=("hub/a", HOSTILE), subjects=["x", "y"], rate=0.5, trace=True, lines=lines)
    traces = list(read_run(folder).trace())
    traces[1] |= {"id": bad["id"], "prompt": HOSTILE}
    vote = next(token for token in traces[1]["tokens"] if "models" in token)
    vote |= {"bytes": HOSTILE.encode().hex(), "text": HOSTILE, "drafted": HOSTILE, "ensemble": [[HOSTILE, 0.75]]}
    vote |= {"verdict": "ensembled", "changed": True, "sharpened": None}
    vote["models"][0]["candidates"] = [[HOSTILE, 0.5], [None, 0.25]]
    (folder / "trace.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    return write_report(folder)


def packed(page) -> list[dict]:
    """What the page's script unpacks, a question each."""
    found = re.findall(r'<script type="application/octet-stream">([^<]*)</script>', page.read_text())
    return [json.loads(zlib.decompress(base64.b64decode(text))) for text in found]


def test_no_text_of_a_run_becomes_markup(page):
    text = page.read_text()
    assert text.count("<script") == len(MARKS) + 1  # one packed answer a question, and the page's own script
    assert "<img" not in text and "onerror=&#34;" in text


def test_the_policy_names_exactly_the_style_and_script_of_the_page(page):
    text = page.read_text()
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text


def test_the_page_names_nothing_outside_itself(page):
    assert not re.findall(r"https?:|<link|\bsrc=(?!x)|url\(", page.read_text())


def test_tokens_join_to_the_response(page):
    lines = list(read_run(page.parent).predictions.values())
    for number, (line, answer) in enumerate(zip(lines, packed(page), strict=True)):
        if number != 1:
            assert "".join(answer["texts"]) == line["response"]
        assert len(answer["verdicts"]) == line["tokens"]


def test_a_character_of_several_tokens_stands_at_its_last():
    tokens = [
        {"bytes": data.hex(), "verdict": "unanimous", "changed": False}
        for data in (b"a", b" \xf0\x9f", b"\x90", b"\x94", b"\xe2\x82")
    ]
    answer = html._traced({"prompt": "?", "tokens": tokens})
    assert answer["texts"] == ["a", " ", "", "🐔", "\ufffd"]
    assert answer["bytes"] == {1: "20f09f", 2: "90", 3: "94", 4: "e282"}


def test_legend_counts_every_token_once(page):
    lines = list(read_run(page.parent).predictions.values())
    shown = re.findall(r'data-letter="(.)".*?class="count">([\d,]+) ', page.read_text())
    assert sum(int(count.replace(",", "")) for _, count in shown) == sum(line["tokens"] for line in lines)
    assert [letter for letter, _ in shown] == list(VERDICTS)


def test_without_a_trace_the_answers_are_shown_all_the_same(tmp_path):
    page = write_report(write_run(tmp_path, [True]))
    assert "made without --trace" in page.read_text()
    assert packed(page)[0]["texts"] == [json.loads((tmp_path / "predictions.jsonl").read_text())["response"]]


def test_an_answer_of_no_tokens(tmp_path):
    empty = {"tokens": 0, "token_ids": [], "response": "", "finish_reason": "context"}
    folder = write_run(tmp_path, [False], trace=True, lines={0: empty})
    (folder / "trace.jsonl").write_text('{"id": "0", "subject": null, "prompt": "", "tokens": []}\n')
    assert packed(write_report(folder))[0]["texts"] == []


def test_a_run_of_repaired_golds_alone_has_no_accuracy_but_a_page(tmp_path):
    page = write_report(write_run(tmp_path, [True], lines={0: {"repaired": True}}))
    assert "<dt>accuracy with repaired golds</dt><dd>100.0%</dd>" in page.read_text()


def test_no_run_is_an_error_of_one_line(tmp_path, capsys):
    assert html.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium of the system; NEED_BROWSER=1 makes its absence a failure."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        wanted = "chromium and chromedriver (Debian: apt-get install chromium chromium-driver)"
        (pytest.fail if os.environ.get("NEED_BROWSER") else pytest.skip)(f"{wanted} are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1100,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


class Opened:
    """The page in a browser, in words of a reader."""

    def __init__(self, browser, page):
        self.browser = browser
        browser.get(page.as_uri())

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def visible_questions(self) -> int:
        return len(self.all(".question:not([hidden])"))

    def open_question(self, number):
        question = self.all(".question")[number]
        question.find_element(By.TAG_NAME, "summary").click()
        find = lambda _: question.find_elements(By.CSS_SELECTOR, ".response > .token")  # noqa: E731
        return WebDriverWait(self.browser, 20).until(find)

    def errors(self) -> list:
        return self.browser.get_log("browser")


@pytest.fixture
def opened(browser, page):
    return Opened(browser, page)


@pytest.mark.real
def test_browser_shows_hostile_text_and_runs_none_of_it(opened):
    tokens = opened.open_question(1)
    wanted = packed_text(opened)
    assert opened.one(".prompt").get_property("textContent") == HOSTILE
    assert [token.get_property("textContent") for token in tokens] == wanted
    assert HOSTILE in wanted
    hostile = tokens[wanted.index(HOSTILE)]
    opened.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", hostile)
    hostile.click()
    panel = opened.one("#panel")
    assert HOSTILE.replace(" ", "␣") in panel.get_property("textContent")
    assert opened.browser.title.startswith("UniTE+SAFE: ") and not opened.all("img")
    assert not opened.errors()


def packed_text(opened) -> list[str]:
    """The texts of question 1 as the page should show them: a token of part of a character is a chip."""
    line = opened.all(".question")[1].find_element(By.TAG_NAME, "script").get_property("textContent")
    return [text or "⋯" for text in json.loads(zlib.decompress(base64.b64decode(line)))["texts"]]


@pytest.mark.real
@pytest.mark.parametrize("how", ["hover", "tap", "keyboard"])
def test_browser_panel_shows_models_and_ensemble(opened, how):
    opened.open_question(0)
    panel, token = opened.one("#panel"), opened.one(".response [tabindex='0']")
    assert not panel.is_displayed()
    if how == "hover":
        ActionChains(opened.browser).move_to_element(token).perform()
    elif how == "tap":
        token.click()
    else:
        opened.all(".question")[0].find_element(By.TAG_NAME, "summary").send_keys(Keys.TAB)
        assert opened.browser.switch_to.active_element == token
    assert panel.is_displayed()
    titles = [title.text for title in opened.all("#panel h3")]
    assert titles[0].startswith("drafter ") and titles[1].startswith("verifier ") and titles[2].startswith("ensemble")
    assert "Drafted" in panel.text
    ActionChains(opened.browser).send_keys(Keys.ESCAPE).perform()
    assert not panel.is_displayed()


@pytest.mark.real
def test_browser_arrow_keys_step_through_the_ensembled_tokens(opened):
    opened.open_question(0)
    ensembled = opened.all(".response [tabindex]")
    ensembled[0].send_keys(Keys.ARROW_RIGHT)
    assert opened.browser.switch_to.active_element == ensembled[1]
    ensembled[1].send_keys(Keys.ARROW_LEFT)
    assert opened.browser.switch_to.active_element == ensembled[0]


@pytest.mark.real
def test_browser_filters_and_search(opened):
    assert opened.visible_questions() == len(MARKS)
    opened.one("input[value=wrong]").click()
    assert opened.visible_questions() == MARKS.count(False)
    opened.one("input[value=unanswered]").click()
    assert opened.visible_questions() >= 1
    assert "of 6 questions" in opened.one("#found").text
    opened.one("input[value=wrong]").click()
    opened.one("input[value=unanswered]").click()
    opened.one("#search").send_keys("X/4")
    assert opened.visible_questions() == 1


@pytest.mark.real
def test_browser_builds_tokens_only_of_opened_questions(browser, tmp_path):
    """A page of as many questions as GSM8K's test set opens without building a token."""
    opened = Opened(browser, write_report(write_run(tmp_path, [True] * 1319, tokens=30, trace=True)))
    assert opened.visible_questions() == 1319 and not opened.all(".token[data-place]")
    tokens = opened.open_question(700)
    assert len(tokens) == len(opened.all(".token[data-place]"))
    assert not opened.errors()


@pytest.mark.real
def test_browser_fits_a_phone(browser, page):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened = Opened(browser, page)
    opened.open_question(0)
    opened.one(".response [tabindex]").click()
    assert opened.browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
