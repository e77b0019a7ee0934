#!/usr/bin/env python3
"""Tests of the server's page in headless Chromium, which `./dev serve-check browser` runs.

  browser_test.py [--screenshots FOLDER] [--url URL] [--no-sandbox] [CLASS or CLASS.TEST …]

They use fake_server.py. With --url, only a chat with the server there is tested, which may be a
real one.
"""

import argparse
import pathlib
import re
import sys
import unittest

from around_test import ConversationTest, LayoutTest
from chat_test import ChatTest
from files_test import FilesTest
from going_on_test import GoingOnTest
from models_test import ModelsTest
from page_test_case import ARGUMENTS, FakeServerTest, RealServerPageTest
from safety_test import ErrorTest, HostileAnswerTest
from screenshots_test import PictureTest, ScreenshotsTest
from search_test import SearchTest


class ModulesTest(FakeServerTest):

    def test_modules(self):
        failures = self.browser.execute_async_script(
            "const done = arguments[0];"
            "import('/tests/modules_test.js')"
            ".then((tests) => tests.run()).then(done, (e) => done([String(e)]))"
        )
        self.assertEqual(failures, [], "\n".join(failures))


class RealServerTest(RealServerPageTest):
    """A chat with any server."""

    def test_chat(self):
        self.ask("Hello! Who are you?")
        self.assertEqual(self.find_all(".note.error"), [])
        self.assertTrue(self.answers()[0])
        self.click("Memory and speed")
        self.wait(lambda: self.find_all(".bar"), "the memory plan")
        self.screenshot("real")

    def test_goes_on(self):
        self.set_option("max_tokens", "4")
        self.ask("Hello! Who are you?")
        [begun] = self.answers()
        self.assertTrue(begun)
        self.assertIn("longest length", self.texts(".message.assistant > .note")[0])
        self.set_option("max_tokens", "12")
        self.find(".note .button.small").click()
        self.wait_for_end()
        self.assertEqual(self.find_all(".note.error"), [])
        [whole] = self.answers()
        self.assertTrue(whole.startswith(begun) and len(whole) > len(begun), (begun, whole))

    def test_attaches_a_file(self):
        path = pathlib.Path(self.downloads.name) / "poem.txt"
        path.write_text("A llama ran\nover a hill.\n")
        self.find("#attach-file").send_keys(str(path))
        self.wait(lambda: re.search(r"25 B · \d+ tokens", "".join(self.texts(".chip"))))
        self.set_option("max_tokens", "8")
        self.ask("Who ran?")
        self.assertEqual(self.find_all(".note.error"), [])
        self.assertTrue(self.answers()[0])

    def test_several_models(self):
        names = self.texts("#models option")
        if len(names) < 2:
            self.skipTest("the server has one model")
        self.set_option("max_tokens", "8")
        for option in self.script("return [...document.querySelectorAll('#models option')].map((o) => o.value)"):
            with self.subTest(option):
                self.choose_model(option)
                self.ask("Hello!")
                self.wait(
                    lambda: any(
                        text in (f"{option} (loaded)", f"{option} (failed)")
                        for text in self.texts("#models option")
                    )
                )
                self.screenshot(f"real-{option}")
        authors = self.texts(".message .author")
        self.assertEqual(len(set(authors)), len(names), authors)


SUITES = [
    ModulesTest,
    ChatTest,
    GoingOnTest,
    FilesTest,
    SearchTest,
    ModelsTest,
    HostileAnswerTest,
    ErrorTest,
    ConversationTest,
    LayoutTest,
    ScreenshotsTest,
]
# It wants a server with a trained model, and runs only if it is named.
NAMED = [PictureTest]


def load_tests(loader, _tests, _pattern):
    suites = [RealServerTest] if ARGUMENTS.url else SUITES
    return unittest.TestSuite(loader.loadTestsFromTestCase(suite) for suite in suites)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--screenshots", metavar="FOLDER")
    parser.add_argument("--url")
    parser.add_argument("--no-sandbox", action="store_true")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=ARGUMENTS)
    unittest.main(argv=[sys.argv[0], "-v", *ARGUMENTS.tests])
