#include "serve/api/call_finder.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace cria::serve {
namespace {

struct Found {
  std::string text;  // Before the call.
  std::string call;  // From the call on.
  bool operator==(const Found&) const = default;
};

// What the finder makes of a text that comes in pieces of random lengths.
Found Find(const ToolFormat& format, const std::string& text, uint32_t seed) {
  std::mt19937 random(seed);
  CallFinder finder(format);
  Found found;
  for (std::string_view rest = text; !rest.empty() && !finder.is_found();) {
    const std::string_view piece = rest.substr(0, 1 + random() % 7);
    found.text += finder.Append(piece);
    rest.remove_prefix(piece.size());
  }
  if (finder.is_found()) {
    found.call = text.substr(finder.begin());
    EXPECT_LE(finder.content_begin(), text.size());
    EXPECT_EQ(finder.Append("more"), "");
  }
  found.text += finder.Flush();
  return found;
}

void Expect(const ToolFormat& format, const std::string& text, const Found& expected) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(Find(format, text, seed), expected) << text << " seed " << seed;
  }
}

TEST(CallFinderTest, FindsTags) {
  const auto format = MakeHermesFormat();
  Expect(*format, "", {"", ""});
  Expect(*format, "just text", {"just text", ""});
  Expect(*format, "a < b <tool> <tool_cal", {"a < b <tool> <tool_cal", ""});
  Expect(*format, "one<tool_call>{}", {"one", "<tool_call>{}"});
  Expect(*format, "<tool_call>", {"", "<tool_call>"});
  Expect(*format, R"({"name": "add"})", {R"({"name": "add"})", ""});
}

TEST(CallFinderTest, FindsAnObjectThatIsTheWholeAnswer) {
  const auto format = MakeLlamaFormat();
  Expect(*format, R"({"name": "add"})", {"", R"({"name": "add"})"});
  Expect(*format, "\n { \n\"type\" : \"function\"", {"", "{ \n\"type\" : \"function\""});
  Expect(*format, "<|python_tag|>{\"name\"", {"", "<|python_tag|>{\"name\""});
  Expect(*format, "text <|python_tag|>x", {"text ", "<|python_tag|>x"});
  for (const char* text : {"", " ", "{", "{\"na", "{\"name\"", "{\"names\": 1}", "{\"answer\": 2}",
                           "{}", "[1]", "text {\"name\": 1}", "{\"name\" 1"}) {
    Expect(*format, text, {text, ""});
  }
}

}  // namespace
}  // namespace cria::serve
