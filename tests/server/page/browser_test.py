#!/usr/bin/env python3
"""Tests of the server's page in headless Chromium, which `./dev serve-check browser` runs.

  browser_test.py [--screenshots FOLDER] [--url URL] [--no-sandbox] [CLASS or CLASS.TEST …]

They use fake_server.py. With --url, only a chat with the server there is tested, which may be a
real one.
"""

import argparse
import sys
import unittest

from around_test import ConversationTest, LayoutTest
from chat_test import ChatTest
from page_test_case import ARGUMENTS, FakeServerTest, PageTest
from safety_test import ErrorTest, HostileAnswerTest
from screenshots_test import ScreenshotsTest


class ModulesTest(FakeServerTest):

    def test_modules(self):
        failures = self.browser.execute_async_script(
            "const done = arguments[0];"
            "import('/tests/modules_test.js')"
            ".then((tests) => tests.run()).then(done, (e) => done([String(e)]))"
        )
        self.assertEqual(failures, [], "\n".join(failures))


class RealServerTest(PageTest):
    """A chat with any server."""

    def setUp(self):
        self.open(ARGUMENTS.url)

    def test_chat(self):
        self.ask("Hello! Who are you?")
        self.assertEqual(self.find_all(".note.error"), [])
        self.assertTrue(self.answers()[0])
        self.click("Memory and speed")
        self.wait(lambda: self.find_all(".bar"), "the memory plan")
        self.screenshot("real")


SUITES = [
    ModulesTest,
    ChatTest,
    HostileAnswerTest,
    ErrorTest,
    ConversationTest,
    LayoutTest,
    ScreenshotsTest,
]


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
