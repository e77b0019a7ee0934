"""Asking and answering."""

import json

from selenium.webdriver.common.keys import Keys

from fake_server import Ending, Gate, Thought
from page_test_case import WAIT_SECONDS, FakeServerTest


class ChatTest(FakeServerTest):

    def test_streams_an_answer(self):
        gate = Gate()
        self.answer_with("Hello, ", "**world", gate, "**!")
        self.say("Hi")
        self.wait(lambda: self.answers() == ["Hello, **world"])
        self.assertTrue(self.is_running())
        self.assertEqual(self.find(".message.assistant").get_attribute("aria-busy"), "true")
        gate.set()
        self.wait_for_end()
        self.assertEqual(self.answers(), ["Hello, world!"])
        self.assertEqual(self.texts(".message.assistant strong"), ["world"])
        self.assertEqual(self.find(".message.assistant").get_attribute("aria-busy"), "false")
        self.assertRegex(
            self.texts(".figures-line")[0],
            "^3 tokens · 12.5 tokens/s · first after .* · 8 of 21 prompt tokens reused$",
        )
        request = self.server.requests[0]
        self.assertEqual(request["messages"], [{"role": "user", "content": "Hi"}])
        self.assertEqual(
            (request["model"], request["stream"], request["stream_options"]),
            ("cria-demo", True, {"include_usage": True}),
        )
        self.assertEqual(self.find("#title").text, "Hi")

    def test_sends_the_turns_before(self):
        self.ask("one")
        self.ask("two")
        self.assertEqual(
            [(m["role"], m["content"]) for m in self.server.requests[1]["messages"]],
            [("user", "one"), ("assistant", "You said: one"), ("user", "two")],
        )

    def test_shift_enter_begins_a_line(self):
        self.find("#message").send_keys("a", Keys.SHIFT + Keys.ENTER, Keys.NULL, "b")
        self.assertEqual(self.server.requests, [])
        self.press(Keys.ENTER)
        self.wait(lambda: self.server.requests)
        self.assertEqual(self.server.requests[0]["messages"][0]["content"], "a\nb")
        self.wait_for_end()

    def test_escape_stops(self):
        self.answer_with("begun", Gate(), "never")
        self.say("Hi")
        self.wait(lambda: self.answers() == ["begun"])
        self.press(Keys.ESCAPE)
        self.wait_for_end()
        self.assertEqual(self.answers(), ["begun"])
        self.assertEqual(self.texts(".message.assistant > .note"), ["Stopped.Continue"])
        self.assertTrue(self.server.gone.wait(WAIT_SECONDS), "the connection is closed")
        self.ask("again")
        self.assertEqual(self.answers()[1], "You said: again")

    def test_button_stops(self):
        self.answer_with("begun", Gate())
        self.say("Hi")
        self.wait(lambda: self.answers() == ["begun"])
        self.find("#send").click()
        self.wait_for_end()
        self.assertTrue(self.server.gone.wait(WAIT_SECONDS))

    def test_regenerates_and_keeps_versions(self):
        self.answer_with("first")
        self.answer_with("second")
        self.ask("Hi")
        self.click("Answer again")
        self.wait(lambda: self.answers() == ["second"])
        self.wait_for_end()
        self.assertEqual(len(self.server.requests[1]["messages"]), 1)
        self.assertEqual(self.texts(".versions span"), ["2/2"])
        self.click("Earlier answer")
        self.assertEqual(self.answers(), ["first"])
        self.browser.refresh()
        self.wait(lambda: self.answers() == ["first"])

    def test_up_edits_the_last_message(self):
        self.ask("wrong")
        self.find("#message").send_keys(Keys.ARROW_UP)
        editor = self.browser.switch_to.active_element
        self.assertEqual(editor.get_attribute("value"), "wrong")
        editor.send_keys(Keys.ESCAPE)
        self.assertEqual(self.find_all(".editor"), [])
        self.find("#message").send_keys(Keys.ARROW_UP)
        self.press(Keys.CONTROL + "a", Keys.NULL)
        self.press("right", Keys.ENTER)
        self.wait(lambda: self.answers() == ["You said: right"])
        self.wait_for_end()
        self.assertEqual(self.texts(".message.user > .text"), ["right"])
        self.click("Earlier message")
        self.assertEqual(self.answers(), ["You said: wrong"])

    def test_reasoning_is_folded(self):
        gate = Gate()
        self.answer_with(Thought("I think "), Thought("so."), gate, "Yes.")
        self.say("Hi")
        self.wait(lambda: self.texts(".reasoning summary") == ["Thinking…"])
        gate.set()
        self.wait_for_end()
        self.assertEqual(self.texts(".reasoning summary"), ["Thoughts"])
        self.assertFalse(self.find(".reasoning .text").is_displayed())
        self.find(".reasoning summary").click()
        self.wait(lambda: self.find(".reasoning .text").text == "I think so.")
        self.assertEqual(self.answers(), ["Yes."])
        self.ask("more")
        self.assertNotIn("I think", json.dumps(self.server.requests[1]))

    def test_switch_of_thinking(self):
        self.wait(lambda: self.find("#thinking-switch").is_displayed())
        self.ask("a")
        self.find("#thinking").click()
        self.ask("b")
        self.assertEqual(
            [
                request["chat_template_kwargs"]["enable_thinking"]
                for request in self.server.requests
            ],
            [True, False],
        )

    def test_an_early_message_waits_for_the_properties(self):
        self.server.held["/props"] = Gate()
        self.open(self.server.url)
        self.say("Hi")
        self.wait(lambda: self.texts(".note .working"))
        self.assertEqual(self.server.requests, [])
        self.server.held["/props"].set()
        self.wait_for_end()
        self.assertIn("chat_template_kwargs", self.server.requests[0])

    def test_without_a_switch_of_thinking(self):
        self.server.props = {}
        self.open(self.server.url)
        self.wait(lambda: "/props" in self.server.paths)
        self.ask("a")
        self.assertFalse(self.find("#thinking-switch").is_displayed())
        self.assertNotIn("chat_template_kwargs", self.server.requests[0])

    def test_settings_are_sent_and_kept(self):
        self.click("Settings")
        self.find("#system").send_keys("Be brief.")
        self.assertEqual(self.find("#option-temperature").get_attribute("placeholder"), "0.8")
        self.find("#option-temperature").send_keys("0.5")
        self.find("#option-max_tokens").send_keys("100")
        self.find("#option-top_p").send_keys("7")
        self.assertEqual(self.find("#option-top_p").get_attribute("aria-invalid"), "true")
        self.ask("Hi")
        request = self.server.requests[0]
        self.assertEqual(request["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual((request["temperature"], request["max_tokens"]), (0.5, 100))
        self.assertNotIn("top_p", request)
        self.browser.refresh()
        self.wait(lambda: self.find("#option-temperature").get_attribute("value") == "0.5")

    def test_end_at_the_longest_length(self):
        self.answer_with("cut", Ending("length"))
        self.ask("Hi")
        self.assertIn("longest length", self.texts(".message.assistant > .note")[0])
