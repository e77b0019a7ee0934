#include "cli/terminal/printable.h"

#include <gtest/gtest.h>

namespace cria::cli {
namespace {

TEST(PrintableTest, TextStaysAsItIs) {
  for (const char* text : {"", "a name", "Öl, 日本語, עברית, \U0001F600", "a\\b\u00A0c"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, WhatDrivesTheTerminalIsEscaped) {
  EXPECT_EQ(Printable("a\nb\x1b[2Jc\x7f\r\t"), "a\\x0ab\\x1b[2Jc\\x7f\\x0d\\x09");
  // Control characters outside ASCII; U+009B begins a sequence like \x1b[.
  EXPECT_EQ(Printable("\u0080\u009B\u009F\u00A0"), "\\x80\\x9b\\x9f\u00A0");
  EXPECT_EQ(Printable(std::string_view("\0a", 2)), "\\x00a");
}

TEST(PrintableTest, MarksOfDirectionAreEscaped) {
  EXPECT_EQ(Printable("a\u202Eb\u202C"), "a\\u202eb\\u202c");
  EXPECT_EQ(Printable("\u202A\u202B\u202D\u2066\u2067\u2068\u2069\u200E\u200F\u061C"),
            "\\u202a\\u202b\\u202d\\u2066\\u2067\\u2068\\u2069\\u200e\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029"), "\\u2028\\u2029");
  // Neighbouring code points are not escaped; U+200C and U+200D are used in normal text.
  EXPECT_EQ(Printable("\u200C\u200D\u202F\u2065\u061B"), "\u200C\u200D\u202F\u2065\u061B");
}

TEST(PrintableTest, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(Printable("\xFF\xC3(\xE2\x80"), "\\xff\\xc3(\\xe2\\x80");
}

}  // namespace
}  // namespace cria::cli
