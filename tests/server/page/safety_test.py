"""What a model may say, and what fails."""

from selenium.webdriver.common.keys import Keys

from fake_server import Broken, Gate, Refusal
from page_test_case import FakeServerTest


class HostileAnswerTest(FakeServerTest):

    def test_hostile_answers_are_text(self):
        evil = [
            "<script>window.evil = 1</script>",
            "[x](javascript:alert(1))",
            "<img src=/evil onerror=alert(1)>",
            "![](http://evil.example/x.png)",
            "<style>body{display:none}</style>",
            "</div><iframe src=/evil>",
            "[![](http://evil.example/y.png)](javascript:alert(1))",
        ]
        for text in evil:
            self.answer_with(*text)
            self.ask(text)
        self.assertIsNone(self.script("return window.evil ?? null"))
        self.assertEqual(
            self.find_all(".message script, .message img, .message iframe, .message style"), []
        )
        self.assertEqual(self.answers()[0], evil[0])
        self.assertEqual(self.answers()[1], evil[1])
        self.assertNotIn("/evil", self.server.paths)
        for link in self.find_all(".message a"):
            self.assertRegex(link.get_attribute("href"), "^(https?|mailto):")
            self.assertEqual(link.get_attribute("rel"), "noopener noreferrer")

    def test_policy_stops_what_a_script_would_do(self):
        """What it stops is in the logs, which are read here, so that tearDown does not find it."""
        stopped = self.script("""
        try { document.body.innerHTML = '<img src=x>'; } catch (error) { return error.name; }""")
        self.assertEqual(stopped, "TypeError")
        self.script(
            "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)"
        )
        messages = []

        def is_stopped():
            messages.extend(entry["message"] for entry in self.browser.get_log("browser"))
            return any("img-src" in message for message in messages)

        self.wait(is_stopped, "the policy stops the image")
        self.browser.get_log("performance")


class ErrorTest(FakeServerTest):

    def test_asks_for_the_key(self):
        self.errors_expected = True
        self.server.key = "secret"
        self.browser.refresh()
        self.wait(lambda: self.find_all("dialog[open]"))
        self.press("schlüssel", Keys.ENTER)
        self.wait(lambda: "does not know" in "".join(self.texts("dialog h2")))
        self.press("wrong", Keys.ENTER)
        self.wait(lambda: self.find("dialog input").get_attribute("value") == "")
        self.press("secret", Keys.ENTER)
        self.wait(lambda: self.find("#model").text == "cria-demo")
        self.ask("Hi")
        self.assertEqual(self.answers(), ["You said: Hi"])
        self.assertEqual(
            self.script("return JSON.stringify(localStorage).includes('secret')"), False
        )
        self.browser.refresh()
        self.wait(lambda: self.find("#model").text == "cria-demo")
        self.assertEqual(self.find_all("dialog"), [])

    def test_key_that_changed(self):
        self.errors_expected = True
        self.server.key = "new"
        self.say("Hi")
        self.wait(lambda: self.find_all(".note.error .button"))
        self.find(".note.error .button").click()
        self.wait(lambda: self.find_all("dialog[open]"))
        self.press("new", Keys.ENTER)
        self.wait(lambda: self.answers() == ["You said: Hi"])
        self.wait_for_end()

    def error_of(self, *steps):
        self.errors_expected = True
        self.answer_with(*steps)
        self.ask("Hi")
        return self.find('.note.error [role="alert"]').text

    def test_busy(self):
        self.assertIn(
            "Try again in 7 s",
            self.error_of(Refusal(429, "3 conversations wait", {"Retry-After": "7"})),
        )
        self.find(".note.error .button").click()
        self.wait(lambda: self.answers() == ["You said: Hi"])
        self.wait_for_end()
        self.assertEqual(self.find_all(".versions"), [])

    def test_refused(self):
        self.assertIn("(too many tokens)", self.error_of(Refusal(400, "too many tokens")))

    def test_failure_in_the_stream(self):
        self.assertIn("(out of memory)", self.error_of("begun", Refusal(500, "out of memory")))
        self.assertEqual(self.answers(), ["begun"])

    def test_connection_that_breaks(self):
        # What arrives together with the end of the connection may be lost in the browser.
        gate = Gate()
        self.errors_expected = True
        self.answer_with("begun", gate, Broken())
        self.say("Hi")
        self.wait(lambda: self.answers() == ["begun"])
        gate.set()
        self.wait_for_end()
        self.assertIn("connection ended", self.find('.note.error [role="alert"]').text)
        self.assertEqual(self.answers(), ["begun"])
        self.browser.refresh()
        self.wait(lambda: self.answers() == ["begun"])
        self.assertIn("did not arrive", self.texts(".message.assistant > .note")[0])

    def test_no_server(self):
        self.errors_expected = True
        self.browser.execute_cdp_cmd("Network.enable", {})
        self.browser.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
        )
        try:
            self.ask("Hi")
            self.assertIn("cannot be reached", self.find('.note.error [role="alert"]').text)
        finally:
            self.browser.execute_cdp_cmd(
                "Network.emulateNetworkConditions",
                {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
            )
        self.find(".note.error .button").click()
        self.wait(lambda: self.answers() == ["You said: Hi"])
        self.wait_for_end()
