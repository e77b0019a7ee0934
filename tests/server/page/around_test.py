"""The list of conversations, the panels, and what helps people with other needs."""

import json
import pathlib

from selenium.webdriver.common.keys import Keys

from fake_server import Gate, Thought
from page_test_case import PHONE, FakeServerTest


class ConversationTest(FakeServerTest):

    def titles(self):
        return self.texts(".conversation .title")

    def test_conversations_are_kept(self):
        self.ask("first")
        self.find("#new").click()
        self.assertEqual(self.answers(), [])
        self.ask("second")
        self.assertEqual(self.titles(), ["second", "first"])
        self.browser.refresh()
        self.wait(lambda: self.titles() == ["second", "first"])
        self.find_all(".conversation")[1].click()
        self.assertEqual(self.answers(), ["You said: first"])

    def test_rename_and_delete(self):
        self.ask("first")
        self.click("Rename “first”")
        self.press("better", Keys.ENTER)
        self.wait(lambda: self.titles() == ["better"])
        self.click("Delete “better”")
        self.assertEqual(self.titles(), [])
        self.find(".notice .button").click()
        self.wait(lambda: self.titles() == ["better"])
        self.assertEqual(self.answers(), ["You said: first"])
        self.find("#delete-all").click()
        self.press(Keys.ESCAPE)
        self.assertEqual(self.titles(), ["better"])
        self.find("#delete-all").click()
        self.find("dialog .danger").click()
        self.wait(lambda: self.titles() == [])
        self.assertEqual(
            self.script(
                "return Object.keys(localStorage).filter((k) => k.includes('conversation'))"
            ),
            [],
        )

    def test_export_and_import(self):
        self.ask("first")
        self.find("#export").click()
        path = pathlib.Path(self.downloads.name) / "cria-conversations.json"
        self.wait(path.exists, "the download")
        file = json.loads(path.read_text())
        self.assertEqual(file["conversations"][0]["messages"][1]["content"], "You said: first")
        chooser = self.find("#import-file")
        chooser.send_keys(str(path))
        self.wait(lambda: self.titles() == ["first", "first"])
        bad = path.with_name("bad.json")
        bad.write_text(
            '{"format": "cria-conversations", "version": 1, "conversations": [{"id": 1}]}'
        )
        chooser.send_keys(str(bad))
        self.wait(lambda: "Nothing was imported" in self.find("#notice").text)
        self.assertEqual(len(self.titles()), 2)

    def test_an_answer_goes_on_in_another_conversation(self):
        gate = Gate()
        self.answer_with("begun ", gate, "done")
        self.say("slow")
        self.wait(lambda: self.answers() == ["begun"])
        self.find("#new").click()
        self.assertFalse(self.is_running())
        self.ask("quick")
        gate.set()
        self.wait(lambda: not self.find_all("#conversations .working"))
        self.find_all(".conversation")[1].click()
        self.wait(lambda: self.answers() == ["begun done"])

    def test_reload_keeps_what_had_arrived(self):
        self.answer_with("begun", Gate())
        self.say("Hi")
        self.wait(lambda: self.answers() == ["begun"])
        self.browser.refresh()
        self.wait(lambda: self.answers() == ["begun"])
        self.assertIn("interrupted", self.texts(".message.assistant > .note")[0])


class LayoutTest(FakeServerTest):

    def test_memory_and_speed(self):
        self.click("Memory and speed")
        self.wait(lambda: len(self.find_all(".bar")) == 2)
        parts = self.texts("#memory > .parts tbody th")
        self.assertEqual((len(parts), parts[-1]), (8, "3 smaller parts"))
        self.find("#memory summary").click()
        self.assertEqual(len(self.find_all("#memory details tbody tr")), 3)
        self.assertIn("used, 84% of the plan", self.find("#memory").text)
        self.wait(lambda: "1 answer under way, 2 waiting" in self.find("#facts").text)
        self.answer_with(*["a "] * 20)
        self.ask("Hi")
        self.wait(lambda: self.find_all("#graph .line"))
        self.assertIn("8 known already", self.find("#facts").text)
        self.assertIn("41 of 4,096 tokens", self.find("#facts").text)

    def test_colors(self):
        color = lambda: self.script("return getComputedStyle(document.body).backgroundColor")
        self.prefer(prefers_color_scheme="light")
        light = color()
        self.prefer(prefers_color_scheme="dark")
        dark = color()
        self.assertNotEqual(light, dark)
        self.click("Colors of the system")
        self.assertEqual(color(), light)
        self.click("Light colors")
        self.assertEqual(color(), dark)
        self.prefer(prefers_color_scheme="light")
        self.browser.refresh()
        self.assertEqual(color(), dark)

    def test_narrow_window(self):
        self.resize(PHONE, is_mobile=True)
        self.answer_with(
            "wide ", "`" + "x" * 300 + "`", "\n\n| a | b |\n|--|--|\n|", "long " * 60, "| b |\n"
        )
        self.ask("Hi")
        self.assertEqual(self.script("return document.documentElement.scrollWidth"), PHONE[0])
        self.wait(lambda: not self.find("#new").is_displayed())
        self.find("#open-sidebar").click()
        self.wait(lambda: self.find("#new").is_displayed())
        self.press(Keys.ESCAPE)
        self.wait(lambda: not self.find("#new").is_displayed())
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "open-sidebar")

    def test_follows_the_end_unless_scrolled(self):
        gate = Gate()
        self.answer_with(*["line\n\n"] * 60, gate, *["more\n\n"] * 60)
        self.say("Hi")
        distance = """
            const scroller = document.getElementById('scroller');
            return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight"""
        self.wait(lambda: len(self.find_all(".message.assistant p")) >= 60)
        self.wait(lambda: self.script(distance) < 60)
        self.script("document.getElementById('scroller').scrollTop = 0")
        self.wait(lambda: self.find("#jump").is_displayed())
        gate.set()
        self.wait_for_end()
        self.assertEqual(self.script("return document.getElementById('scroller').scrollTop"), 0)
        self.find("#jump").click()
        self.wait(lambda: self.script(distance) < 60)

    def test_screen_reader(self):
        gate = Gate()
        self.answer_with("First.\n\nSec", gate, "ond.")
        self.say("Hi")
        self.wait(lambda: self.texts("#announcer p") == ["Answering", "First."])
        gate.set()
        self.wait_for_end()
        said = self.texts("#announcer p")
        self.assertEqual(said[:3], ["Answering", "First.", "Second."])
        self.assertRegex(
            said[3],
            "^End of the answer, 2 tokens, 12.5 tokens per second, first after .*, "
            "8 of 21 prompt tokens reused$",
        )
        self.assertEqual(len(said), 4)

    def check_accessibility(self):
        problems = self.browser.execute_async_script(
            "const done = arguments[0];"
            "import('/tests/accessibility.js')"
            ".then((checks) => done(checks.check()), (e) => done([String(e)]))"
        )
        self.assertEqual(problems, [], "\n".join(problems))

    def test_accessibility(self):
        self.server.next_answer = lambda _: [Thought("so"), self.sample()]
        for scheme in ("light", "dark"):
            self.prefer(prefers_color_scheme=scheme)
            with self.subTest(scheme):
                self.ask("Show `all`")
                for label in ("Settings", "Memory and speed"):
                    self.click(label)
                    self.wait(lambda: len(self.find_all(".bar")) == 2 or label == "Settings")
                    self.check_accessibility()
        self.find("#delete-all").click()
        self.check_accessibility()
        self.press(Keys.ESCAPE)

    def test_order_of_focus(self):
        self.ask("Hi")
        self.script("document.querySelector('.skip').focus()")
        order = ["skip"]
        for _ in range(30):
            self.press(Keys.TAB)
            order.append(
                self.script(
                    "const e = document.activeElement;"
                    "return e.id || e.getAttribute('aria-label') || e.className"
                )
            )
        wanted = [
            "skip",
            "new",
            "conversation",
            "theme",
            "open-figures",
            "open-settings",
            "scroller",
            "Copy this message",
            "message",
            "send",
        ]
        places = [order.index(name) for name in wanted if name in order]
        self.assertEqual(len(places), len(wanted), order)
        self.assertEqual(places, sorted(places), order)

    def test_reduced_motion(self):
        self.prefer(prefers_reduced_motion="reduce")
        self.answer_with(Gate())
        self.say("Hi")
        self.wait(lambda: self.find_all(".working"))
        self.assertEqual(
            self.script(
                "return getComputedStyle(document.querySelector('.note .working')).animationName"
            ),
            "none",
        )
        self.press(Keys.ESCAPE)
        self.wait_for_end()
        self.prefer()
