"""What the tests of the page share: a browser, a server, and what a person does."""

import argparse
import json
import os
import pathlib
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from fake_server import FakeServer, canned_answer

WAIT_SECONDS = 20
DESKTOP = (1280, 800)
PHONE = (390, 844)

# browser_test.py fills it in.
ARGUMENTS = argparse.Namespace(screenshots=None, url=None, no_sandbox=False)


def start_browser(downloads):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        "--headless=new",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--hide-scrollbars",
        "--lang=en",
        "--window-size=%d,%d" % DESKTOP,
    ):
        options.add_argument(argument)
    if ARGUMENTS.no_sandbox or os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has none for root, nor in another sandbox.
    options.add_experimental_option("prefs", {"download.default_directory": downloads})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService("/usr/bin/chromedriver")
    )


class PageTest(unittest.TestCase):
    """What the tests share: a browser, and what a person does with it."""

    @classmethod
    def setUpClass(cls):
        cls.downloads = tempfile.TemporaryDirectory()
        cls.browser = start_browser(cls.downloads.name)
        cls.addClassCleanup(cls.downloads.cleanup)
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_script_timeout(120)

    def open(self, url):
        self.resize(DESKTOP)
        self.browser.get(url)
        self.wait(lambda: self.find("#model").text or self.find("#models").is_displayed())

    def resize(self, size, is_mobile=False):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": is_mobile},
        )

    def prefer(self, **features):
        self.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": name.replace("_", "-"), "value": value}
                    for name, value in features.items()
                ]
            },
        )

    def wait(self, condition, what="it"):
        return WebDriverWait(self.browser, WAIT_SECONDS, 0.05).until(lambda _: condition(), what)

    def script(self, source, *values):
        return self.browser.execute_script(source, *values)

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )

    def button(self, label, within=""):
        return self.find(f'{within} button[aria-label="{label}"]')

    def choose_model(self, name):
        self.script(
            "const s = document.getElementById('models'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'))",
            name,
        )

    def click(self, label, within=""):
        # Buttons that show themselves when the pointer comes are there for the keyboard, too.
        self.script("arguments[0].click()", self.button(label, within))

    def press(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def say(self, text):
        self.find("#message").send_keys(text, Keys.ENTER)

    def is_running(self):
        return self.find("#send").get_attribute("aria-label").startswith("Stop")

    def wait_for_end(self):
        self.wait(lambda: not self.is_running(), "the end of the answer")

    def answers(self):
        return self.texts(".message.assistant > .text")

    def ask(self, text):
        count = len(self.answers())
        self.say(text)
        self.wait(lambda: len(self.answers()) > count, "an answer")
        self.wait_for_end()

    def screenshot(self, name):
        if ARGUMENTS.screenshots:
            self.wait(
                lambda: self.script(
                    "return document.getAnimations().every((a) => a.playState === 'finished')"
                )
            )
            self.browser.save_screenshot(str(pathlib.Path(ARGUMENTS.screenshots) / f"{name}.png"))


class FakeServerTest(PageTest):
    """Begins each test with an empty browser and a fresh server."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = FakeServer()
        cls.server.thread.start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)

    def setUp(self):
        self.server.reset()
        self.errors_expected = False
        self.browser.get(self.server.url + "page/icon.svg")
        self.script("localStorage.clear(); sessionStorage.clear()")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.server.paths.clear()
        self.open(self.server.url)

    def tearDown(self):
        # Every request went to the server, and the policy stopped nothing.
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertTrue(url.startswith((self.server.url, "blob:" + self.server.url)), url)
        for entry in self.browser.get_log("browser"):
            self.assertNotIn("Content Security Policy", entry["message"])
            if entry["level"] == "SEVERE" and not (
                self.errors_expected and "Failed to load resource" in entry["message"]
            ):
                self.fail(entry["message"])

    def answer_with(self, *steps):
        self.server.answers.put(list(steps))

    def sample(self):
        return "".join(step for step in canned_answer(None)[2:] if isinstance(step, str))


class RealServerPageTest(PageTest):
    """Begins each test with an empty browser, at the server of --url."""

    def setUp(self):
        self.browser.get(ARGUMENTS.url + "/page/icon.svg")
        self.script("localStorage.clear(); sessionStorage.clear()")
        self.open(ARGUMENTS.url)

    def set_option(self, name, value):
        self.script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
            self.find(f"#option-{name}"),
            value,
        )
