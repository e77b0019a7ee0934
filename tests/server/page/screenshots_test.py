"""Pictures for people to look at."""

import re

from selenium.webdriver.common.keys import Keys

from fake_server import Refusal, Thought
from page_test_case import ARGUMENTS, DESKTOP, PHONE, FakeServerTest


class ScreenshotsTest(FakeServerTest):

    def test_screenshots(self):
        if not ARGUMENTS.screenshots:
            self.skipTest("no --screenshots")
        self.prefer(prefers_color_scheme="light")
        self.screenshot("welcome")
        for title in (
            "Which board has the most memory?",
            "A story about a llama",
            "Names for a small robot",
        ):
            self.ask(title)
            self.find("#new").click()
        self.answer_with(
            Thought("The person asks about the cache."), *re.findall(r"\s*\S+\s*", self.sample())
        )
        self.ask("What is a KV cache, and how much memory does it take?")
        self.screenshot("light")
        self.click("Memory and speed")
        self.server.next_answer = lambda _: [
            word for i in range(60) for word in ("word ", 0.03 + 0.01 * (i % 7))
        ]
        self.ask("Another one")
        self.screenshot("figures-light")
        self.prefer(prefers_color_scheme="dark")
        self.screenshot("figures-dark")
        self.click("Settings")
        self.screenshot("settings-dark")
        self.click("Close the settings")
        self.script("document.getElementById('scroller').scrollTop = 0")
        self.screenshot("dark")
        self.resize(PHONE, is_mobile=True)
        self.screenshot("phone-dark")
        self.prefer(prefers_color_scheme="light")
        self.screenshot("phone")
        self.find("#open-sidebar").click()
        self.screenshot("phone-list")
        self.press(Keys.ESCAPE)
        self.click("Memory and speed")
        self.screenshot("phone-figures")
        self.click("Close memory and speed")
        self.errors_expected = True
        self.answer_with(Refusal(429, "8 conversations wait", {"Retry-After": "4"}))
        self.server.next_answer = self.server.scripted_answer
        self.resize(DESKTOP)
        self.ask("Are you busy?")
        self.screenshot("error")
        self.find("#delete-all").click()
        self.screenshot("dialog")
        self.press(Keys.ESCAPE)
