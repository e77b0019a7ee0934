#include "cli/input/messages_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::Pair;
using testing::StartsWith;

class MessagesFileTest : public testing::Test {
 protected:
  Result<std::vector<ChatMessage>> Read(std::string_view json) {
    support::WriteFile(path_, json);
    return ReadMessagesFile(path_, template_);
  }
  // The messages as pairs of role and content.
  std::vector<std::pair<std::string, std::string>> Messages(std::string_view json) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const ChatMessage& message : Unwrap(Read(json))) {
      pairs.emplace_back(message.role, message.content);
    }
    return pairs;
  }
  void ExpectError(std::string_view json, const std::string& problem,
                   ErrorCode code = ErrorCode::kInvalidFile) {
    const auto messages = Read(json);
    ASSERT_FALSE(messages) << json;
    EXPECT_EQ(messages.error().message(), path_ + ": " + problem);
    EXPECT_EQ(messages.error().code(), code);
  }

  support::TemporaryDirectory directory_;
  std::string path_ = directory_ / "messages.json";
  ChatTemplate template_{"{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}"};
};

TEST_F(MessagesFileTest, ReadsAListOrAnObjectWithIt) {
  const auto both = ElementsAre(Pair("system", "Be kind."), Pair("user", "Why?\n\"ö\""));
  const std::string list = R"([{"role": "system", "content": "Be kind."},
                               {"content": "Why?\n\"\u00f6\"", "role": "user"}])";
  EXPECT_THAT(Messages(list), both);
  testing::internal::CaptureStderr();
  EXPECT_THAT(Messages(R"({"messages": )" + list + "}"), both);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(MessagesFileTest, SaysWhichFieldsBesideTheMessagesItDoesNotRead) {
  testing::internal::CaptureStderr();
  Messages(R"({"tools": [], "messages": [{"role": "user", "content": "a", "mood": 1}]})");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cria: " + path_ +
                ": tools and 1 other fields are not known: the model does not read them\n");
}

TEST_F(MessagesFileTest, RefusesARoleWhoseMessageTheTemplateLeavesOut) {
  constexpr char kJson[] =
      R"([{"role": "user", "content": "a"}, {"role": "User", "content": "b"}])";
  EXPECT_EQ(Messages(kJson).size(), 2u);
  template_ =
      ChatTemplate("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  ExpectError(kJson, "messages[1].role is \"User\", which the chat template does not write");
}

TEST_F(MessagesFileTest, JoinsTextsAndSaysWhatIsNotKnown) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(Messages(R"([{"role": "user", "name": "A", "weight": 1, "refusal": null, "content":
                           [{"type": "text", "text": "a\n", "cache_control": {"type": "x"}},
                            {"text": "b", "type": "text"}]},
                          {"role": "assistant", "content": null, "audio": null, "note": [1]},
                          {"role": "critic", "content": [], "annotations": []}])"),
              ElementsAre(Pair("user", "a\nb"), Pair("assistant", ""), Pair("critic", "")));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cria: " + path_ +
                ": messages[0].weight and 1 other fields are not known: the model does not read "
                "them\n");
}

TEST_F(MessagesFileTest, FieldsOfTheTemplateReachIt) {
  const auto messages = Unwrap(Read(R"([{"role": "developer", "content": "a"},
      {"role": "assistant", "reasoning_content": "hm", "tool_calls": [{"id": "c", "type": "function",
       "function": {"name": "f", "arguments": "{\"x\": [1, 123456789012345678901234567890, -2.5, \"\u00e9\", null, true]}"}}]},
      {"role": "tool", "tool_call_id": "c", "content": "ok"}])"));
  EXPECT_EQ(messages[0].role, "developer");
  EXPECT_EQ(
      messages[1].fields,
      R"({"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":)"
      R"({"x":[1,123456789012345678901234567890,-2.5,"é",null,true]}}}],"reasoning_content":"hm"})");
  EXPECT_EQ(messages[2].fields, R"({"tool_call_id":"c","name":"f"})");
}

TEST_F(MessagesFileTest, CallsBecomeTextWhereTheTemplateKnowsNoTools) {
  support::WriteFile(path_, R"([{"role": "assistant", "content": "", "tool_calls":
      [{"function": {"name": "f", "arguments": {"x": 1}}}]},
      {"role": "tool", "content": "ok"}])");
  const auto messages = Unwrap(ReadMessagesFile(path_, ChatTemplate("{{ messages }}")));
  EXPECT_EQ(messages[0].content,
            "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"x\":1}}\n</tool_call>");
  EXPECT_EQ(messages[0].fields, "");
  EXPECT_EQ(messages[1].role, "user");
  EXPECT_EQ(messages[1].content, "<tool_response>\nok\n</tool_response>");
}

TEST_F(MessagesFileTest, AnErrorNamesTheEntry) {
  const std::string good = R"([{"role": "user", "content": "a"}, )";
  ExpectError(good + "7]", "messages[1] is not an object");
  ExpectError(good + R"({"content": "b"}])", "messages[1].role is missing");
  ExpectError(good + R"({"role": 1, "content": "b"}])", "messages[1].role is not a string");
  ExpectError(good + R"({"role": "", "content": "b"}])", "messages[1].role is empty");
  ExpectError(R"({"messages": [{"role": "user"}]})", "messages[0].content is missing");
  ExpectError(R"([{"role": "user", "content": 7}])",
              "messages[0].content is neither a string nor a list of texts");
  ExpectError(R"([{"role": "assistant", "tool_calls": [{"id": 1}]}])",
              "messages[0].tool_calls[0].function is missing");
  ExpectError(R"([{"role": "user", "content": "", "images": ["x"]}])",
              "messages[0].images is not supported: this model reads only texts",
              ErrorCode::kUnsupported);
  const auto with_parts = [](const std::string& parts) {
    return R"([{"role": "user", "content": [)" + parts + "]}]";
  };
  ExpectError(with_parts(R"("a")"), "messages[0].content[0] is not an object");
  ExpectError(with_parts(R"({"text": "a"})"), "messages[0].content[0].type is missing");
  ExpectError(with_parts(R"({"type": "text", "text": "a"}, {"type": "text"})"),
              "messages[0].content[1].text is missing");
  ExpectError(with_parts(R"({"type": "image_url", "image_url": {"url": "x"}})"),
              R"(messages[0].content[0].type is "image_url", but this model reads only texts)",
              ErrorCode::kUnsupported);
}

TEST_F(MessagesFileTest, OtherContentsAreErrors) {
  for (const char* json : {"7", "null", "\"text\"", "{}", R"({"messages": {}})",
                           R"({"role": "user", "content": "a"})"}) {
    ExpectError(json,
                R"(has neither a list of messages nor an object with such a list as "messages")");
  }
  ExpectError("[]", "messages is empty: there is nothing to answer");
  ExpectError(R"({"messages": []})", "messages is empty: there is nothing to answer");
  ExpectError("", "is not JSON: byte 0: nothing where a value must be");
  ExpectError(R"([{"role": "user" "content": ""}])",
              "is not JSON: byte 17: no comma or closing bracket after an item");
  ExpectError(std::string(1000, '['), "is not JSON: byte 101: values that are nested too deeply");
}

TEST_F(MessagesFileTest, LengthAndWorkAreBounded) {
  const std::string begin = R"([{"role": "user", "content": ")";
  const std::string end = "\"}]";
  const size_t longest = kMaxMessagesFileBytes - begin.size() - end.size();
  EXPECT_EQ(Unwrap(Read(begin + std::string(longest, 'a') + end))[0].content.size(), longest);
  ExpectError(begin + std::string(longest + 1, 'a') + end,
              "has more than the 4194304 bytes that such a file may have");
  // A text takes most memory if it has only escapes, and an object with many fields most time.
  std::string escapes;
  for (size_t i = 0; i < longest / 2; ++i) escapes += "\\n";
  EXPECT_EQ(Unwrap(Read(begin + escapes + end))[0].content, std::string(longest / 2, '\n'));
  std::string fields;
  for (int i = 0; i < 100'000; ++i) fields += "\"" + std::to_string(i) + "\": 1,";
  ExpectError("[{" + fields + R"("role": "user", "content": ""}])",
              "has too many values to be a list of messages");
}

TEST_F(MessagesFileTest, AFileThatCannotBeReadIsAnError) {
  const auto absent = ReadMessagesFile(directory_ / "absent.json", template_);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message(),
              EndsWith("absent.json: cannot read: No such file or directory"));
  EXPECT_EQ(absent.error().code(), ErrorCode::kIo);
  const auto endless = ReadMessagesFile("/dev/zero", template_);
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().message(), StartsWith("/dev/zero: has more than the 4194304 bytes"));
}

}  // namespace
}  // namespace cria::cli
