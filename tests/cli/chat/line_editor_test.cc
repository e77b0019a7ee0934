// Random keys at a terminal, whose screen is compared with what the keys have made of the text.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "cli/chat/typed_text.h"
#include "cli/demo_model.h"
#include "support/emulation.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "support/terminal_program.h"

namespace cria {
namespace {

using support::TerminalProgram;
using tests::Expect;
using tests::ExpectedScreen;
using tests::ToUtf8;
using tests::TypedText;

class LineEditorTest : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  // Whether the last rows on the screen are those of the text, and the cursor is where it belongs.
  static bool Shows(const TerminalProgram& chat, const ExpectedScreen& expected) {
    const auto cursor = chat.cursor();
    const int first = cursor.row - expected.cursor.row;
    if (first < 0 || cursor.column != expected.cursor.column) return false;
    std::string below = chat.VisibleScreen();
    for (int row = 0; row < first; ++row) {
      const size_t end = below.find('\n');
      if (end == below.npos) return false;
      below.erase(0, end + 1);
    }
    std::string wanted;
    for (const std::string& row : expected.rows) wanted += row + '\n';
    wanted.resize(wanted.find_last_not_of('\n') + 2, '\n');
    return below == wanted;
  }

  // Control characters as ^X.
  static std::string Quoted(const std::string& keys) {
    std::string quoted;
    for (const char key : keys) {
      const bool is_control = static_cast<unsigned char>(key) < 0x20 || key == 0x7F;
      quoted += is_control ? std::string{'^', static_cast<char>(key ^ 0x40)} : std::string{key};
    }
    return quoted;
  }

  support::TemporaryDirectory folder_;
};

TEST_P(LineEditorTest, TheScreenShowsWhatRandomKeysHaveMadeOfTheText) {
  const auto [kind, columns] = GetParam();
  TerminalProgram chat(
      {support::kCriaProgram, "chat", "-m", tests::DemoModel(), "-c", "256", "-q"},
      {.rows = 24,
       .columns = columns,
       .environment = {"XDG_STATE_HOME=" + folder_.path().string(), std::string("TERM=") + kind}});
  ASSERT_TRUE(chat.WaitFor(">"));
  // What the history has: a message that is answered at once.
  const std::wstring recalled = L"/none \u4f60\u597d " + std::wstring(60, L'x');
  chat.Type(ToUtf8(recalled) + "\r");
  ASSERT_TRUE(chat.WaitFor("there is no command"));

  TypedText typed(static_cast<unsigned>(columns));
  std::wstring killed;  // libedit also keeps what Delete has removed.
  std::wstring left;    // For the history.
  bool is_recalled = false;
  std::string log;
  const int steps = support::IsEmulated() ? 40 : 200;
  for (int step = 0; step < steps; ++step) {
    const size_t size = typed.text.size();
    std::string keys;
    switch (typed.Below(16)) {
      case 0:
        keys = "\x01";
        typed.cursor = 0;
        break;
      case 1:
        keys = "\033[F";
        typed.cursor = size;
        break;
      case 2:
      case 3:
      case 4:
        for (size_t count = typed.Below(40); count > 0 && typed.cursor > 0; --count) {
          keys += "\033[D";
          --typed.cursor;
        }
        break;
      case 5:
        for (size_t count = typed.Below(40); count > 0 && typed.cursor < size; --count) {
          keys += "\033[C";
          ++typed.cursor;
        }
        break;
      case 6:
        keys = "\033\r";
        typed.Insert(L"\n");
        break;
      case 7:
      case 8:
        for (size_t count = typed.Below(5); count > 0 && typed.cursor < typed.text.size();
             --count) {
          do {
            keys += "\033[3~";
            killed = typed.text.substr(typed.cursor, 1);
            typed.text.erase(typed.cursor, 1);
          } while (typed.cursor < typed.text.size() && typed.text[typed.cursor] == tests::kMark);
        }
        break;
      case 9:
      case 10:
        for (size_t count = typed.Below(5); count > 0 && typed.cursor > 0; --count) {
          keys += "\x7f";
          typed.text.erase(--typed.cursor, 1);
        }
        break;
      case 11:
        keys = "\x0b";
        killed = typed.text.substr(typed.cursor);
        typed.text.resize(typed.cursor);
        break;
      case 12:
        if (typed.text.size() > static_cast<size_t>(3 * columns)) break;
        keys = "\x19";
        typed.Insert(killed);
        break;
      case 13:
        keys = is_recalled ? "\033[B" : "\033[A";
        if (!is_recalled) left = typed.text;
        typed.text = is_recalled ? left : recalled;
        typed.cursor = typed.text.size();
        is_recalled = !is_recalled;
        break;
      default:
        if (size < static_cast<size_t>(3 * columns)) {
          const std::wstring characters = typed.Characters();
          keys = ToUtf8(characters);
          typed.Insert(characters);
        }
    }
    chat.Type(keys);
    log += Quoted(keys) + '\n';
    const ExpectedScreen expected = Expect(L"> " + typed.text, typed.cursor + 2, columns);
    ASSERT_TRUE(chat.WaitUntil([&] { return Shows(chat, expected); }))
        << "cursor " << typed.cursor << " of " << ToUtf8(typed.text) << '\n'
        << chat.VisibleScreen() << "keys:\n"
        << log;
  }
}

INSTANTIATE_TEST_SUITE_P(Terminals, LineEditorTest,
                         testing::Combine(testing::Values("xterm-256color", "tmux-256color",
                                                          "screen", "linux", "vt100"),
                                          testing::Values(40, 80)));

TEST(LineEditor, ASearchShowsWhatItFinds) {
  const support::TemporaryDirectory folder;
  TerminalProgram chat(
      {support::kCriaProgram, "chat", "-m", tests::DemoModel(), "-c", "256", "-q"},
      {.rows = 24, .columns = 40, .environment = {"XDG_STATE_HOME=" + folder.path().string()}});
  ASSERT_TRUE(chat.WaitFor(">"));
  const std::string found = "/none one two three four five six seven \u4f60\u597d eight";
  chat.Type(found + "\r/other\r");
  ASSERT_TRUE(chat.WaitFor("there is no command", 2));
  ASSERT_TRUE(chat.WaitFor("\n>", 2));
  chat.Type("\x12three");
  const std::string rows = "> /none one two three four five six seve\nn \u4f60\u597d eight\n";
  EXPECT_TRUE(chat.WaitFor(rows + "bck:three")) << chat.Screen();
  chat.Type("\x05!");
  EXPECT_TRUE(chat.WaitFor("\u4f60\u597d eight!\n")) << chat.Screen();
  EXPECT_EQ(chat.Count("bck:"), 0);
}

}  // namespace
}  // namespace cria
