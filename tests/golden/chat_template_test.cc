// Chat templates of our own and of real models, stored in a model file, render the same text as
// with Python's jinja2. Those of real models are external test data.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "converter/convert.h"
#include "golden/test_data.h"
#include "model/model_file.h"
#include "support/checkpoint_writer.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "text/chat_template.h"

namespace cria {
namespace {

using nlohmann::json;

// The time at which the expected texts were rendered.
std::tm FirstOfDecember() {
  std::tm time = {};
  time.tm_year = 124;
  time.tm_mon = 11;
  time.tm_mday = 1;
  return time;
}

// Writes a checkpoint with this template and with these tokens for the beginning and end of a text.
void WriteCheckpoint(const std::filesystem::path& folder, const std::string& chat_template,
                     const std::vector<std::string>& tokens) {
  support::CheckpointSpec spec = support::SpecMha();
  spec.format.num_special_tokens = support::kNumNamedSpecialTokens + 2;
  support::SetTokenIds(spec);
  support::WriteRandomCheckpoint(spec, folder);
  std::string tokenizer = support::ReadFile(folder / "tokenizer.json");
  json config = {{"chat_template", chat_template}};
  for (size_t i = 0; i < 2; ++i) {
    if (tokens[i].empty()) continue;
    config[i == 0 ? "bos_token" : "eos_token"] = tokens[i];
    const std::string free = "<|reserved_special_token_" + std::to_string(i) + "|>";
    if (!tokenizer.contains(tokens[i]))
      tokenizer.replace(tokenizer.find(free), free.size(), tokens[i]);
  }
  support::WriteFile(folder / "tokenizer.json", tokenizer);
  support::WriteFile(folder / "tokenizer_config.json", config.dump());
}

// Renders the conversations of cases.json in `folder` with one of its templates.
void ExpectRendersAsInPython(const std::filesystem::path& folder, const std::string& name) {
  const json data = json::parse(support::ReadFile(folder / "cases.json"));
  const support::TemporaryDirectory directory;
  const auto checkpoint = directory.path() / "checkpoint";
  WriteCheckpoint(checkpoint, support::ReadFile(folder / (name + ".jinja")), data["tokens"][name]);
  const auto path = directory.path() / "model.cria";
  const auto converted = Convert(checkpoint, path, {.weights = Scheme::kF32});
  ASSERT_TRUE(converted) << converted.error().message();
  const auto file = ModelFile::Open(path.string());
  ASSERT_TRUE(file) << file.error().message();

  const ChatTemplate chat_template(file->chat_template_source(), file->vocabulary());
  int num_cases = 0;
  for (const json& expected : data["cases"]) {
    if (expected["template"] != name) continue;
    ++num_cases;
    std::vector<ChatMessage> messages;
    for (const json& message : data["conversations"][expected["case"].get<std::string>()]) {
      messages.push_back({message["role"], message["content"]});
    }
    const auto segments = chat_template.Render(
        messages,
        {.add_generation_prompt = expected["add_generation_prompt"], .time = FirstOfDecember()});
    EXPECT_EQ(segments.has_value(), !expected.contains("error")) << expected;
    if (!segments) {
      EXPECT_NE(segments.error().message().find(expected["error"].get<std::string>()),
                std::string::npos)
          << segments.error().message();
      continue;
    }
    std::string text;
    for (const ChatSegment& segment : *segments) text += segment.text;
    EXPECT_EQ(text, expected["expected"].get<std::string>());
  }
  EXPECT_EQ(num_cases, 10);
}

std::string NameOfTest(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name;
}

class OwnChatTemplate : public testing::TestWithParam<const char*> {};

TEST_P(OwnChatTemplate, RendersAsInPython) {
  ExpectRendersAsInPython(support::SourcePath("tests/golden/chat"), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Templates, OwnChatTemplate,
                         testing::Values("brackets-tools", "headers-tools", "reasoning",
                                         "tagged-tools", "turns"),
                         NameOfTest);

class RealChatTemplate : public testing::TestWithParam<const char*> {};

TEST_P(RealChatTemplate, RendersAsInPython) {
  CRIA_NEEDS_TEST_DATA("chat/cases.json");
  ExpectRendersAsInPython(ExternalTestData() / "chat", GetParam());
}

INSTANTIATE_TEST_SUITE_P(Templates, RealChatTemplate,
                         testing::Values("DeepSeek-R1-Distill-Llama-8B", "Llama-2-chat",
                                         "Llama-3.1-8B-Instruct", "Llama-3.2-3B-Instruct",
                                         "Mistral-Nemo-Instruct-2407", "Qwen2.5-7B-Instruct",
                                         "gemma-2-2b-it"),
                         NameOfTest);

}  // namespace
}  // namespace cria
