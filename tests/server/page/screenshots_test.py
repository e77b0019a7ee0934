"""Pictures for people to look at."""

import pathlib
import re

from PIL import Image
from selenium.webdriver.common.keys import Keys

from fake_server import Refusal, Thought
from page_test_case import ARGUMENTS, DESKTOP, PHONE, FakeServerTest, RealServerPageTest


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


class PictureTest(RealServerPageTest):
    """The pictures of README, which `./dev pictures` takes."""

    SIZE = (1180, 720)
    QUESTIONS = (
        "What is a llama?",
        "Write a C function gcd(a, b). Only code, no explanation.",
        "Which algorithm is it? Answer in one sentence.",
    )
    # As many as the picture needs to look as it did; each takes bytes.
    COLORS = 128

    def picture(self, name):
        self.screenshot(name)
        path = pathlib.Path(ARGUMENTS.screenshots) / f"{name}.png"
        with Image.open(path) as image:
            reduced = image.convert("RGB").quantize(
                self.COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
            )
        reduced.save(path, optimize=True)

    def test_picture(self):
        self.prefer(prefers_color_scheme="light")
        self.resize(self.SIZE)
        self.set_option("temperature", "0")
        self.ask(self.QUESTIONS[0])
        self.find("#new").click()
        self.set_option("temperature", "0")
        self.click("Memory and speed")
        for question in self.QUESTIONS[1:]:
            self.ask(question)
            self.assertEqual(self.find_all(".note.error"), [])
        self.wait(lambda: self.find_all(".bar"), "the memory plan")
        self.picture("picture-light")
        self.prefer(prefers_color_scheme="dark")
        self.picture("picture-dark")
