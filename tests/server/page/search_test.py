"""Searching the conversations that are kept."""

from selenium.webdriver.common.keys import Keys

from page_test_case import PHONE, FakeServerTest

MARKS = """
return [...(CSS.highlights.get('search') ?? [])].map((range) => range.toString())"""


class SearchTest(FakeServerTest):

    def setUp(self):
        super().setUp()
        for question, answer in (
            ("Llamas", "They eat *grass* and hay."),
            ("Boards", "A <b>board</b> has memory."),
            ("Names", "Ada, Bob and Llama."),
        ):
            self.find("#new").click()
            self.answer_with(answer)
            self.ask(question)

    def search(self, text):
        self.find("#message").send_keys(Keys.CONTROL + "k")
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "search")
        self.press(Keys.CONTROL + "a", Keys.NULL, text)

    def titles(self):
        return self.texts(".conversation .title")

    def test_finds_titles_and_texts(self):
        self.search("llama")
        self.assertEqual(self.titles(), ["Names", "Llamas"])
        self.assertEqual(self.texts("#conversations mark"), ["Llama", "Llama", "Llama"])
        self.wait(lambda: self.texts("#search-status") == ["2 conversations were found."])
        self.search("EAT *gr")
        self.assertEqual(self.titles(), ["Llamas"])
        self.assertEqual(self.texts(".conversation small"), ["They eat *grass* and hay."])
        self.search("(nothing[")
        self.assertEqual(self.titles(), [])
        self.assertEqual(self.texts("#conversations .hint"), ["Nothing was found."])
        self.wait(lambda: self.texts("#search-status") == ["Nothing was found."])
        self.press(Keys.ESCAPE)
        self.assertEqual(self.titles(), ["Names", "Boards", "Llamas"])
        self.assertEqual(self.texts("#conversations mark"), [])

    def test_marks_in_the_open_conversation(self):
        self.search("bob and")
        self.assertEqual(self.script(MARKS), ["Bob and"])
        self.search("grass")
        self.assertEqual(self.script(MARKS), [])
        self.press(Keys.ENTER)
        self.wait(lambda: self.find("#title").text == "Llamas")
        self.assertEqual(self.script(MARKS), ["grass"])
        self.press(Keys.TAB, Keys.ENTER)
        self.assertEqual(self.find("#title").text, "Llamas")
        self.find("#search").send_keys(Keys.ESCAPE)
        self.assertEqual(self.script(MARKS), [])

    def test_opens_the_version_that_has_it(self):
        self.answer_with("Zoe")
        self.click("Answer again")
        self.wait(lambda: self.answers() == ["Zoe"])
        self.wait_for_end()
        self.search("Ada")
        self.press(Keys.ENTER)
        self.wait(lambda: self.answers() == ["Ada, Bob and Llama."])

    def test_scrolls_to_what_was_found(self):
        self.find("#new").click()
        self.answer_with("needle\n\n", *["line\n\n"] * 100)
        self.ask("long")
        self.find("#new").click()
        self.search("needle")
        self.press(Keys.ENTER)
        self.wait(lambda: self.find("#title").text == "long")
        self.wait(
            lambda: self.script(
                "const r = document.querySelector('.message.assistant p').getBoundingClientRect();"
                "return r.top >= 0 && r.bottom <= innerHeight"
            ),
            "the place that was found",
        )

    def test_in_a_narrow_window(self):
        self.resize(PHONE, is_mobile=True)
        self.search("hay")
        self.wait(lambda: self.find("#search").is_displayed())
        self.press(Keys.ENTER)
        self.wait(lambda: not self.find("#search").is_displayed())
        self.assertEqual(self.script(MARKS), ["hay"])
