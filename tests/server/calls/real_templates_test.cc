// Tools in chat templates of our own and of real models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "golden/test_data.h"
#include "server/answers/chat_prompt.h"
#include "server/calls/call_style.h"
#include "server/calls/tool_format.h"
#include "server/requests/chat_request.h"
#include "server/requests/test_tools.h"
#include "support/files.h"
#include "support/paths.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

// A conversation with a call and its result.
ChatRequest ToolConversation() {
  const Json body = Json::parse(R"({
    "messages": [
      {"role": "user", "content": "What is 19 + 23?"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi", "type": "function",
        "function": {"name": "add", "arguments": "{\"a\": 19, \"b\": 23}"}}]},
      {"role": "tool", "tool_call_id": "abcdefghi", "content": "forty-two"}],
    "tools": [{"type": "function", "function": {"name": "add", "description": "Add two numbers",
      "parameters": {"type": "object", "properties": {"a": {"type": "integer"},
                                                      "b": {"type": "integer"}}}}}]})");
  return ReadOpenAiChat(Fields(body));
}

// `has_json`: calls are written as JSON.
void ExpectToolsCallsAndResults(const std::filesystem::path& folder, bool has_json) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    SCOPED_TRACE(entry.path());
    const std::string source = support::ReadFile(entry.path());
    const ChatTemplate chat_template(source, {.bos_token = "<s>", .eos_token = "</s>"});
    std::string text;
    for (const ChatSegment& segment :
         RenderChat(chat_template, FindCallStyle(chat_template), ToolConversation())) {
      text += segment.text;
    }
    EXPECT_THAT(text, HasSubstr("Add two numbers"));
    EXPECT_THAT(text, HasSubstr("forty-two"));
    if (has_json) {
      EXPECT_THAT(text, testing::ContainsRegex("\"a\": ?19"));
    }
    ++count;
  }
  EXPECT_GT(count, 3u);
}

// What the server writes before a call that is required; "unknown" if it says that the form is.
std::string OpeningOfCalls(const std::filesystem::path& folder, const std::string& name) {
  const std::string source = support::ReadFile(folder / (name + ".jinja"));
  const ChatTemplate chat_template(source, {.bos_token = "<s>", .eos_token = "</s>"});
  const CallStyle style = FindCallStyle(chat_template);
  if (!style.is_known) return "unknown";
  return MakeToolFormat(chat_template, style)->NextPart(TestTools(), {})->forced;
}

TEST(OwnTemplatesTest, ShowToolsCallsAndResults) {
  ExpectToolsCallsAndResults(support::SourcePath("tests/golden/chat"), /*has_json=*/true);
}

TEST(OwnTemplatesTest, TheirFormatsAreFound) {
  const std::filesystem::path folder = support::SourcePath("tests/golden/chat");
  EXPECT_EQ(OpeningOfCalls(folder, "headers-tools"), "");
  EXPECT_EQ(OpeningOfCalls(folder, "tagged-tools"), "<tool_call>\n");
  EXPECT_EQ(OpeningOfCalls(folder, "brackets-tools"), "[TOOL_CALLS]");
  EXPECT_EQ(OpeningOfCalls(folder, "turns"), "<tool_call>\n");
}

TEST(RealTemplatesTest, ShowToolsCallsAndResults) {
  CRIA_NEEDS_TEST_DATA("chat/Qwen2.5-7B-Instruct.jinja");
  ExpectToolsCallsAndResults(ExternalTestData() / "chat", /*has_json=*/false);
}

TEST(RealTemplatesTest, TheirFormatsAreFound) {
  CRIA_NEEDS_TEST_DATA("chat/Qwen2.5-7B-Instruct.jinja");
  const std::filesystem::path folder = ExternalTestData() / "chat";
  EXPECT_EQ(OpeningOfCalls(folder, "Llama-3.1-8B-Instruct"), "");
  EXPECT_EQ(OpeningOfCalls(folder, "Llama-3.2-3B-Instruct"), "");
  EXPECT_EQ(OpeningOfCalls(folder, "Qwen2.5-7B-Instruct"), "<tool_call>\n");
  EXPECT_EQ(OpeningOfCalls(folder, "Mistral-Nemo-Instruct-2407"), "[TOOL_CALLS]");
  EXPECT_EQ(OpeningOfCalls(folder, "gemma-2-2b-it"), "<tool_call>\n");
  // It writes calls in a form of its own, but shows no tools: these are described in words.
  EXPECT_EQ(OpeningOfCalls(folder, "DeepSeek-R1-Distill-Llama-8B"), "<tool_call>\n");
}

}  // namespace
}  // namespace cria::server
