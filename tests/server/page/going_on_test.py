"""Answers that go on, and answers that the person changes."""

from selenium.webdriver.common.keys import Keys

from fake_server import Broken, Ending, Gate, Thought
from page_test_case import FakeServerTest


class GoingOnTest(FakeServerTest):

    def go_on(self):
        self.find(".note .button.small").click()
        self.wait_for_end()

    def notes(self):
        return self.texts(".message.assistant > .note > span")

    def test_continues_a_stopped_answer(self):
        self.answer_with("One, two", Gate())
        self.say("Count")
        self.wait(lambda: self.answers() == ["One, two"])
        self.press(Keys.ESCAPE)
        self.wait_for_end()
        self.answer_with(", three", ", four.")
        self.go_on()
        self.assertEqual(self.answers(), ["One, two, three, four."])
        request = self.server.requests[1]
        self.assertEqual(
            [(m["role"], m["content"]) for m in request["messages"]],
            [("user", "Count"), ("assistant", "One, two")],
        )
        self.assertIs(request["continue_final_message"], True)
        self.assertIs(request["add_generation_prompt"], False)
        self.assertNotIn("chat_template_kwargs", request)
        self.assertEqual(self.notes(), [])
        self.assertEqual(self.find_all(".versions"), [])
        # Both parts count, of which the first is a part of the second's prompt.
        self.assertIn("3 tokens · ", self.texts(".figures-line")[0])
        self.browser.refresh()
        self.wait(lambda: self.answers() == ["One, two, three, four."])

    def test_continues_at_the_longest_length_and_again(self):
        for part in ("a", " b", " c"):
            self.answer_with(part, Ending("length"))
        self.ask("Hi")
        self.go_on()
        self.assertIn("longest length", self.notes()[0])
        self.go_on()
        self.assertEqual(self.answers(), ["a b c"])

    def test_stops_while_it_goes_on(self):
        self.answer_with("a", Ending("length"))
        self.ask("Hi")
        gate = Gate()
        self.answer_with(gate, " b", Gate())
        self.find(".note .button.small").click()
        self.wait(lambda: self.texts(".note .working") == ["Reading…"])
        gate.set()
        self.wait(lambda: self.answers() == ["a b"])
        self.press(Keys.ESCAPE)
        self.wait_for_end()
        self.assertEqual(self.notes(), ["Stopped."])
        self.assertEqual(self.answers(), ["a b"])

    def test_says_only_what_is_new(self):
        self.answer_with("One.\n\nTwo", Ending("length"))
        self.ask("Hi")
        self.answer_with(" and three.\n\nFour.")
        self.go_on()
        said = self.texts("#announcer p")
        self.assertEqual(said[:3], ["Answering", "Two and three.", "Four."])

    def test_an_earlier_answer_goes_on_beside_itself(self):
        self.answer_with("a", Ending("length"))
        self.ask("one")
        self.ask("two")
        self.answer_with(" b")
        self.go_on()
        self.assertEqual(self.answers(), ["a b"])
        self.click("Earlier answer")
        self.assertEqual(self.answers(), ["a", "You said: two"])

    def test_continues_after_a_break(self):
        gate = Gate()
        self.errors_expected = True
        self.answer_with("begun", gate, Broken())
        self.say("Hi")
        self.wait(lambda: self.answers() == ["begun"])
        gate.set()
        self.wait_for_end()
        self.answer_with(" and done")
        self.go_on()
        self.assertEqual(self.answers(), ["begun and done"])
        self.assertEqual(self.find_all(".note.error"), [])

    def test_thoughts_alone_do_not_go_on(self):
        self.answer_with(Thought("I think"), Ending("length"))
        self.ask("Hi")
        self.assertEqual(len(self.notes()), 1)
        self.assertEqual(self.find_all(".note .button.small"), [])

    def edit_answer(self, text):
        self.click("Edit this answer")
        self.press(Keys.CONTROL + "a", Keys.NULL, text)

    def test_edits_an_answer(self):
        self.ask("Hi")
        self.edit_answer("I say")
        self.press(Keys.ENTER, "this.")
        self.find(".editor .primary").click()
        self.wait(lambda: self.answers() == ["I say\nthis."] or self.texts(".message br") == [""])
        self.assertEqual(len(self.server.requests), 1)
        self.assertEqual(self.notes(), ["Edited by you."])
        self.ask("more")
        self.assertEqual(
            [m["content"] for m in self.server.requests[1]["messages"]],
            ["Hi", "I say\nthis.", "more"],
        )
        self.browser.refresh()
        self.wait(lambda: self.notes() == ["Edited by you."])
        self.click("Earlier answer")
        self.assertEqual(self.answers(), ["You said: Hi"])

    def test_an_edited_answer_goes_on(self):
        self.ask("Hi")
        self.edit_answer("Well,")
        self.press(Keys.CONTROL + Keys.ENTER)
        self.wait(lambda: self.answers() == ["Well,"])
        self.answer_with(" yes.")
        self.go_on()
        self.assertEqual(self.answers(), ["Well, yes."])
        self.assertEqual(self.server.requests[1]["messages"][-1]["content"], "Well,")

    def test_escape_leaves_an_answer_as_it_was(self):
        self.ask("Hi")
        self.edit_answer("no")
        self.press(Keys.ESCAPE)
        self.assertEqual(self.answers(), ["You said: Hi"])
        self.assertEqual(self.find_all(".versions"), [])
        focused = self.browser.switch_to.active_element
        self.assertEqual(focused.get_attribute("aria-label"), "Edit this answer")
