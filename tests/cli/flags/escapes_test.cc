#include "cli/flags/escapes.h"

#include <gtest/gtest.h>

namespace cria::cli {
namespace {

TEST(EscapesTest, ReadsTheKnownOnes) {
  EXPECT_EQ(ReadEscapes(R"(a\nb\tc\rd\\n\"\')"), "a\nb\tc\rd\\n\"'");
  EXPECT_EQ(ReadEscapes(R"(\x41\xc3\xB6\x0a.)"), "A\xC3\xB6\n.");
  EXPECT_EQ(ReadEscapes(R"(\x00)"), std::string(1, '\0'));
}

TEST(EscapesTest, LeavesEverythingElseAsItIs) {
  for (const char* text :
       {"", "text", R"(\)", R"(a\)", R"(\d+)", R"(\x)", R"(\x4)", R"(\x4g)", R"(\x-1)", R"(\N)"}) {
    EXPECT_EQ(ReadEscapes(text), text);
  }
}

}  // namespace
}  // namespace cria::cli
