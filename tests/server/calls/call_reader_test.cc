#include "server/calls/call_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace cria::server {
namespace {

// What the reader makes of parts that come in pieces of random lengths.
std::vector<ToolCall> Read(const std::vector<std::pair<CallPart::Content, std::string>>& parts,
                           uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<ToolCall> calls;
  CallReader reader(
      {.on_name = [&](std::string_view name) { calls.push_back({std::string(name), ""}); },
       .on_arguments =
           [&](std::string_view piece) {
             EXPECT_FALSE(piece.empty());
             if (!calls.empty()) calls.back().arguments += piece;
           }});
  for (const auto& [content, text] : parts) {
    reader.Begin(content);
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view piece = rest.substr(0, 1 + random() % 5);
      reader.Append(piece);
      rest.remove_prefix(piece.size());
    }
    reader.End();
  }
  return calls;
}

void Expect(const std::vector<std::pair<CallPart::Content, std::string>>& parts,
            const std::vector<ToolCall>& expected) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto calls = Read(parts, seed);
    ASSERT_EQ(calls.size(), expected.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i].name, expected[i].name);
      EXPECT_EQ(calls[i].arguments, expected[i].arguments);
    }
  }
}

TEST(CallReaderTest, ReadsObjects) {
  using enum CallPart::Content;
  Expect({{kCalls, R"({"name": "add", "arguments": {"a": 1}})"}}, {{"add", R"({"a": 1})"}});
  Expect({{kCalls, "{ \"name\":\"f\" ,\n \"parameters\":\n {} }"}}, {{"f", "{}"}});
  Expect({{kCalls, R"({"name": "f", "arguments": {"name": "x", "s": "}\"{\\", "l": [{}, "]"]}})"}},
         {{"f", R"({"name": "x", "s": "}\"{\\", "l": [{}, "]"]})"}});
}

TEST(CallReaderTest, ReadsLists) {
  using enum CallPart::Content;
  Expect(
      {{kCalls, R"([{"name": "a", "arguments": {"x": [1, 2]}}, {"name": "b", "arguments": {}}])"}},
      {{"a", R"({"x": [1, 2]})"}, {"b", "{}"}});
}

TEST(CallReaderTest, ReadsNamesAndArgumentsApart) {
  using enum CallPart::Content;
  Expect({{kName, "add"}, {kArguments, R"({"a": 1})"}, {kName, "b"}, {kArguments, "{}"}},
         {{"add", R"({"a": 1})"}, {"b", "{}"}});
}

// Whatever the text is, its calls do not depend on how it is cut, and consist of parts of it.
TEST(CallReaderTest, OtherTextDoesNoHarm) {
  std::mt19937 random(1);
  const std::vector<std::string_view> pieces = {
      "{", "}", "[", "]", "\"", ":", ",", "\\", " ", "x", "\"name\":", "\"arguments\":", "\"f\""};
  size_t num_calls = 0;
  for (int times = 0; times < 2000; ++times) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) text += pieces[random() % pieces.size()];
    SCOPED_TRACE(text);
    const std::vector<ToolCall> calls = Read({{CallPart::Content::kCalls, text}}, 1);
    num_calls += calls.size();
    for (const ToolCall& call : calls) EXPECT_TRUE(text.contains('"' + call.name + '"'));
    for (const uint32_t seed : {2, 3}) {
      const std::vector<ToolCall> again = Read({{CallPart::Content::kCalls, text}}, seed);
      ASSERT_EQ(again.size(), calls.size());
      for (size_t i = 0; i < calls.size(); ++i) {
        EXPECT_EQ(again[i].name, calls[i].name);
        EXPECT_EQ(again[i].arguments, calls[i].arguments);
      }
    }
  }
  EXPECT_GT(num_calls, 100u);
}

}  // namespace
}  // namespace cria::server
