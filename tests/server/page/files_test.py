"""Files that a message takes along."""

import pathlib

from selenium.webdriver.common.keys import Keys

from fake_server import Gate
from page_test_case import FakeServerTest

# Drops a file with these bytes on the page, as the browser does when a person lets it go there.
DROP = """
const data = new DataTransfer();
data.items.add(new File([new Uint8Array(arguments[1])], arguments[0]));
for (const type of ['dragover', 'drop']) {
  document.body.dispatchEvent(
      new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


class FilesTest(FakeServerTest):

    def write(self, name, content):
        path = pathlib.Path(self.downloads.name) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def attach(self, *paths):
        self.find("#attach-file").send_keys("\n".join(paths))

    def chips(self, within="#attachments"):
        return self.texts(f"{within} .chip")

    def notice(self):
        return self.find("#notice span").text

    def test_sends_several_files(self):
        self.attach(
            self.write("a.py", "print('```')\n"), self.write("notes.txt", "one two\r\nthree")
        )
        self.wait(
            lambda: self.chips() == ["a.py13 B · 1 token", "notes.txt13 B · 3 tokens"],
            "the files",
        )
        self.ask("What is this?")
        self.assertEqual(self.chips(), [])
        content = self.server.requests[0]["messages"][0]["content"]
        self.assertEqual(
            content,
            "a.py:\n````py\nprint('```')\n````\n\n"
            "notes.txt:\n```txt\none two\nthree\n```\n\nWhat is this?",
        )
        self.assertEqual(self.texts(".message.user > .text"), ["What is this?"])
        self.assertEqual(len(self.chips(".message.user")), 2)
        self.browser.refresh()
        self.wait(lambda: len(self.chips(".message.user")) == 2)
        self.ask("And now?")
        self.assertEqual(self.server.requests[1]["messages"][0]["content"], content)

    def test_a_file_without_a_text(self):
        self.attach(self.write("a.txt", "hello"))
        self.wait(lambda: self.chips())
        self.find("#message").send_keys(Keys.ENTER)
        self.wait(lambda: self.server.requests)
        self.wait_for_end()
        self.assertEqual(
            self.server.requests[0]["messages"][0]["content"], "a.txt:\n```txt\nhello\n```"
        )
        self.assertEqual(self.find("#title").text, "a.txt")

    def test_an_edited_question_keeps_its_files(self):
        self.attach(self.write("a.txt", "hello"))
        self.wait(lambda: self.chips())
        self.ask("wrong")
        self.find("#message").send_keys(Keys.ARROW_UP)
        self.press(Keys.CONTROL + "a", Keys.NULL, "right", Keys.ENTER)
        self.wait(lambda: len(self.server.requests) == 2)
        self.wait_for_end()
        self.assertEqual(
            self.server.requests[1]["messages"][0]["content"],
            "a.txt:\n```txt\nhello\n```\n\nright",
        )

    def test_removes_a_file(self):
        self.attach(self.write("a.txt", "hello"))
        self.wait(lambda: self.chips())
        self.click("Remove “a.txt”")
        self.assertEqual(self.chips(), [])
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "message")
        self.assertEqual(self.find("#send").get_attribute("aria-disabled"), "true")

    def test_drops_a_file(self):
        self.script(DROP, "dropped.md", list(b"# Hello"))
        self.wait(lambda: len(self.chips()) == 1)
        self.ask("Hi")
        self.assertIn(
            "dropped.md:\n```md\n# Hello\n```", self.server.requests[0]["messages"][0]["content"]
        )

    def test_refuses_what_is_no_text(self):
        for name, content, sentence in (
            ("a.png", b"\x89PNG\r\n\x1a\n\xff", "is not text in UTF-8"),
            ("b.bin", b"a\0b", "is not text"),
            ("c.txt", b" \n", "has no text"),
            ("d.txt", b"x" * (512 * 1024 + 1), "“d.txt” is too large: it has 524.3 kB"),
        ):
            with self.subTest(name):
                self.attach(self.write(name, content))
                self.wait(lambda: self.find("#notice").is_displayed())
                self.assertIn(sentence, self.notice())
                self.assertEqual(self.chips(), [])
                self.click("Close this notice")

    def test_refuses_what_does_not_fit_the_context(self):
        self.attach(self.write("long.txt", "word " * 5000), self.write("short.txt", "word"))
        self.wait(lambda: self.find("#notice").is_displayed())
        self.assertEqual(
            self.notice(),
            "“long.txt” is too long: it has 5,000 tokens, and the context has 4,096. Attach a "
            "part of it.",
        )
        self.wait(lambda: len(self.chips()) == 1)
        self.assertIn("short.txt", self.chips()[0])
        self.click("Close this notice")
        self.ask("Hi")
        self.attach(self.write("middle.txt", "word " * 4080))
        self.wait(lambda: self.find("#notice").is_displayed())
        self.assertIn("4,080 tokens, and 4,073 of 4,096 are left", self.notice())

    def test_without_a_count(self):
        self.errors_expected = True
        self.server.tokens_per_word = 0
        self.attach(self.write("long.txt", "word " * 5000))
        self.wait(lambda: self.chips() == ["long.txt25.0 kB"])

    def test_counts_by_the_chosen_model_after_it_is_known(self):
        self.server.held["/props"] = Gate()
        self.open(self.server.url)
        self.attach(self.write("a.txt", "hello"))
        self.wait(lambda: self.chips() == ["a.txt5 B"])
        self.server.held["/props"].set()
        self.wait(lambda: self.chips() == ["a.txt5 B · 1 token"])
