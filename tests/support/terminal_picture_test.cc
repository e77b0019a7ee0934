#include "support/terminal_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/terminal_screen.h"

namespace cria::support {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TerminalPicture, HasEachRowWithItsColors) {
  TerminalScreen screen(5, 40);
  screen.Write("$ cria\r\n\033[36ma <b> &\033[0m then\r\n\r\n  \033[1mbold\033[0m");
  const std::string svg = TerminalPicture(screen, "A \"title\"");
  EXPECT_THAT(svg, HasSubstr("<title>A &quot;title&quot;</title>"));
  EXPECT_THAT(svg, HasSubstr("<text x=\"18\" y=\"32\" textLength=\"50.4\">$ cria</text>"));
  EXPECT_THAT(svg, HasSubstr("y=\"52\" textLength=\"58.8\" class=\"c6\">a &lt;b&gt; &amp;</text>"));
  EXPECT_THAT(svg, HasSubstr("then</text>"));
  EXPECT_THAT(svg,
              HasSubstr("x=\"34.8\" y=\"92\" textLength=\"33.6\" style=\"font-weight:600\">bold<"));
  // Four rows, the third of which is empty.
  EXPECT_THAT(svg, HasSubstr("y=\"92\""));
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 136.8 116\""));
}

TEST(TerminalPicture, IsForLightAndDarkPages) {
  TerminalScreen screen(2, 20);
  screen.Write("text");
  const std::string svg = TerminalPicture(screen, "");
  EXPECT_THAT(svg, HasSubstr("@media(prefers-color-scheme:dark)"));
  for (const char* const other : {"<script", "href", "url(", "@font-face", "@import"}) {
    EXPECT_THAT(svg, Not(HasSubstr(other)));
  }
}

// A wide character takes two columns; text of several bytes takes those of its characters.
TEST(TerminalPicture, CountsColumns) {
  TerminalScreen screen(2, 20);
  screen.Write("\033[32m日é\033[0mx");
  const std::string svg = TerminalPicture(screen, "");
  EXPECT_THAT(svg,
              HasSubstr("<text x=\"18\" y=\"32\" textLength=\"25.2\" class=\"c2\">日é</text>"));
  EXPECT_THAT(svg, HasSubstr("<text x=\"43.2\" y=\"32\" textLength=\"8.4\">x</text>"));
}

TEST(TerminalPicture, ShowsWhatIsTypedAtAShell) {
  const TemporaryDirectory folder;
  const std::string output = folder.path() / "picture.svg";
  const RunResult result =
      RunProgram({support::kTerminalPictureProgram, "-o", output, "--columns", "60"},
                 {.input = "echo \"one and two\"\nprintf 'three\\n'\n"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const std::string svg = ReadFile(output);
  EXPECT_THAT(svg, HasSubstr(">$ echo &quot;one and two&quot;</text>"));
  EXPECT_THAT(svg, HasSubstr(">one and two</text>"));
  EXPECT_THAT(svg, HasSubstr(">three</text>"));
}

TEST(TerminalPicture, RefusesALineThatWraps) {
  const TemporaryDirectory folder;
  const RunResult result = RunProgram(
      {support::kTerminalPictureProgram, "-o", folder.path() / "picture.svg", "--columns", "20"},
      {.input = "echo a line that is too long\n"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("too long for the terminal"));
}

}  // namespace
}  // namespace cria::support
