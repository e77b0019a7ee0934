"""A server with several models."""

from fake_server import Refusal
from page_test_case import FakeServerTest


def model(name, value="unloaded", **others):
    return {"id": name, "status": {"value": value, **others.pop("status", {})}, **others}


class ModelsTest(FakeServerTest):

    def setUp(self):
        super().setUp()
        self.server.models = [
            model("a", meta={"n_ctx": 100}),
            model("b", "loaded", thinking_variable="think", meta={"n_ctx": 2000}),
            model("c"),
        ]
        self.open(self.server.url)

    def options(self):
        return self.texts("#models option")

    def test_begins_with_a_loaded_model_and_keeps_the_choice(self):
        self.assertEqual(self.options(), ["a", "b (loaded)", "c"])
        self.assertEqual(self.find("#models").get_attribute("value"), "b")
        self.assertTrue(self.find("#thinking-switch").is_displayed())
        self.choose_model("a")
        self.assertFalse(self.find("#thinking-switch").is_displayed())
        self.ask("Hi")
        self.assertEqual(self.server.requests[0]["model"], "a")
        self.assertEqual(self.texts(".message .author"), ["a"])
        self.browser.refresh()
        self.wait(lambda: self.find("#models").get_attribute("value") == "a")

    def test_says_what_is_loaded_after_an_answer(self):
        self.choose_model("a")
        self.server.models = [model("a", "loaded"), model("b"), model("c")]
        self.ask("Hi")
        self.wait(lambda: self.options() == ["a (loaded)", "b", "c"])
        self.assertEqual(self.find("#models").get_attribute("value"), "a")

    def test_a_model_that_cannot_be_loaded(self):
        self.errors_expected = True
        self.choose_model("c")
        self.server.models[2] = model("c", status={"failed": True, "error": "too large"})
        self.answer_with(Refusal(500, "c cannot be loaded: too large"))
        self.ask("Hi")
        self.assertIn("too large", self.find('.note.error [role="alert"]').text)
        self.wait(lambda: self.options()[2] == "c (failed)")
        self.choose_model("b")
        self.find(".note.error .button").click()
        self.wait(lambda: self.answers() == ["You said: Hi"])
        self.wait_for_end()
        self.assertEqual(self.server.requests[1]["model"], "b")
        self.assertEqual(self.texts(".message .author"), ["b"])

    def test_a_model_that_is_gone(self):
        self.choose_model("c")
        self.server.models = self.server.models[:2]
        self.ask("Hi")
        self.wait(lambda: self.options() == ["a", "b (loaded)"])
        self.assertEqual(self.find("#models").get_attribute("value"), "b")
