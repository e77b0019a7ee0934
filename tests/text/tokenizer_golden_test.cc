// Compares with what other programs made of the same text, where the external test data is there.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "converter/tokenizer_import.h"
#include "converter/tokenizer_json.h"
#include "golden/test_data.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<int32_t> Numbers(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<int32_t>(stream), {}};
}

OwnedVocabulary Import(const std::string& folder, size_t vocab_size) {
  auto imported = ImportTokenizer(ExternalTestData() / folder, vocab_size);
  if (!imported) {
    ADD_FAILURE() << imported.error().message();
    return {};
  }
  return imported->vocabulary;
}

std::string Decode(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.Append(id);
  return text += detokenizer.Flush();
}

// llama.cpp's pairs: texts with a line between, and a line of ids for each.
void ExpectPairs(const Tokenizer& tokenizer, const std::string& name) {
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  const auto folder = ExternalTestData() / "tokenizers/pairs";
  std::string texts = ReadFile(folder / (name + ".gguf.inp"));
  std::istringstream lines(ReadFile(folder / (name + ".gguf.out")));
  int num_texts = 0;
  for (size_t end = 0; (end = texts.find(kSeparator)) != std::string::npos; ++num_texts) {
    const std::string text = texts.substr(0, end);
    texts.erase(0, end + kSeparator.size());
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    const auto ids = tokenizer.Encode(text, {.add_bos = false});
    ASSERT_TRUE(ids);
    EXPECT_EQ(*ids, Numbers(line)) << text;
    EXPECT_EQ(Decode(tokenizer, *ids), text);
  }
  EXPECT_GT(num_texts, 40);
}

TEST(TokenizerGoldenTest, Stories260K) {
  CRIA_NEEDS_TEST_DATA("stories260K/expected");
  const OwnedVocabulary vocabulary = Import("stories260K", 512);
  const Tokenizer tokenizer = Tokenizer::Create(vocabulary.view()).value();
  const auto expected = ExternalTestData() / "stories260K/expected";

  const std::string story = ReadFile(ExternalTestData() / "text/tinystories_30KB.txt");
  EXPECT_EQ(tokenizer.Encode(story, {.add_bos = false}).value(),
            Numbers(ReadFile(expected / "tinystories_30KB.ids")));

  const auto runs = nlohmann::json::parse(ReadFile(expected / "greedy.json"));
  for (const auto& run : runs) {
    const auto ids = tokenizer.Encode(run["prompt"].get<std::string>()).value();
    EXPECT_EQ(ids, run["prompt_ids"].get<std::vector<int32_t>>());
    // The text goes on from the prompt.
    Detokenizer detokenizer(tokenizer);
    for (const int32_t id : ids) detokenizer.Append(id);
    std::string text;
    for (const int32_t id : run["greedy_ids"]) text += detokenizer.Append(id);
    EXPECT_TRUE(run["text"].get<std::string>().ends_with(text)) << run["text"] << text;
  }
}

TEST(TokenizerGoldenTest, Llama2Model) {
  CRIA_NEEDS_TEST_DATA("tokenizers/llama2");
  const OwnedVocabulary vocabulary = Import("tokenizers/llama2", 32000);
  const Tokenizer tokenizer = Tokenizer::Create(vocabulary.view()).value();
  EXPECT_EQ(tokenizer.Encode("").value(), std::vector<int32_t>{1});
  ExpectPairs(tokenizer, "ggml-vocab-llama-spm");
}

TEST(TokenizerGoldenTest, Llama2Json) {
  CRIA_NEEDS_TEST_DATA("tokenizers/llama2/tokenizer.json");
  // Somebody's editor has turned the no-break spaces of four tokens into spaces.
  const std::string file = ReadFile(ExternalTestData() / "tokenizers/llama2/tokenizer.json");
  nlohmann::json tokenizer_json = nlohmann::json::parse(file);
  const auto repair = [](const std::string& text, size_t kept_space) {
    std::string repaired;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ' && i != kept_space) {
        repaired += "\u00A0";
      } else {
        repaired += text[i];
      }
    }
    return repaired;
  };
  auto& model = tokenizer_json["model"];
  nlohmann::json vocab;
  for (const auto& [name, id] : model["vocab"].items()) {
    vocab[repair(name, std::string::npos)] = id;
  }
  model["vocab"] = vocab;
  for (auto& merge : model["merges"]) {
    const std::string text = merge;
    // The space in the middle of those that have several; "\u2581" has three bytes.
    const size_t middle = text.starts_with("\u2581  ") ? 3 : text.size() / 2;
    if (std::ranges::count(text, ' ') > 1) merge = repair(text, middle);
  }

  const auto draft = ReadTokenizerJson(tokenizer_json, "tokenizer.json");
  ASSERT_TRUE(draft) << draft.error().message();
  const OwnedVocabulary vocabulary = BuildVocabulary(*draft, 32000).value();
  const Tokenizer tokenizer = Tokenizer::Create(vocabulary.view()).value();
  ExpectPairs(tokenizer, "ggml-vocab-llama-spm");

  // And like tokenizer.model, whose merges are derived in another way.
  const OwnedVocabulary other_vocabulary = Import("tokenizers/llama2", 32000);
  const Tokenizer other = Tokenizer::Create(other_vocabulary.view()).value();
  const std::string play = ReadFile(ExternalTestData() / "text/tinyshakespeare_200KB.txt");
  EXPECT_EQ(tokenizer.Encode(play).value(), other.Encode(play).value());
  EXPECT_EQ(tokenizer.Encode("a\u00A0b \u00A0\u00A0c</s>d", {.parse_special = true}).value(),
            other.Encode("a\u00A0b \u00A0\u00A0c</s>d", {.parse_special = true}).value());
}

TEST(TokenizerGoldenTest, Llama3Ranks) {
  CRIA_NEEDS_TEST_DATA("tokenizers/llama3");
  const auto imported = ImportTokenizer(ExternalTestData() / "tokenizers/llama3", 128256);
  ASSERT_TRUE(imported) << imported.error().message();
  const Tokenizer tokenizer = Tokenizer::Create(imported->vocabulary.view()).value();
  ExpectPairs(tokenizer, "ggml-vocab-llama-bpe");
  EXPECT_EQ(tokenizer.Encode("<|eot_id|>", {.parse_special = true}).value(),
            (std::vector<int32_t>{128000, 128009}));
  EXPECT_EQ(imported->kind, ChatTemplateKind::kLlama3);
  EXPECT_EQ(imported->stop_token_ids, (std::vector<int32_t>{128001, 128008, 128009}));
  const ChatMessage message{"user", "Hi"};
  EXPECT_EQ(EncodeChat(tokenizer, imported->kind, {&message, 1}, true).value(),
            (std::vector<int32_t>{128000, 128006, 882, 128007, 271, 13347, 128009, 128006, 78191,
                                  128007, 271}));
}

// The renderings of the models' own templates, for those that are of a known form.
class ChatGoldenTest
    : public testing::TestWithParam<std::tuple<const char*, ChatTemplateKind, const char*>> {};

TEST_P(ChatGoldenTest, RendersAsTheModelsTemplate) {
  CRIA_NEEDS_TEST_DATA("chat/cases.json");
  const auto [name, kind, left_out] = GetParam();
  const auto data = nlohmann::json::parse(ReadFile(ExternalTestData() / "chat/cases.json"));
  int num_cases = 0;
  for (const auto& expected : data["cases"]) {
    if (expected["template"] != name) continue;
    ++num_cases;
    std::vector<ChatMessage> messages;
    for (const auto& message : data["conversations"][expected["case"].get<std::string>()]) {
      messages.push_back({message["role"], message["content"]});
    }
    const auto segments = RenderChat(kind, messages, expected["add_generation_prompt"]);
    EXPECT_EQ(segments.has_value(), !expected.contains("error"));
    if (!segments) continue;
    std::string text;
    for (const ChatSegment& segment : *segments) text += segment.text;
    // What the header says is left out of ours is cut out of theirs.
    std::string theirs = expected["expected"];
    if (const size_t at = theirs.find(left_out); at != std::string::npos) {
      theirs.erase(at, std::string_view(left_out).size());
      const std::string empty_system = "<|start_header_id|>system<|end_header_id|>\n\n<|eot_id|>";
      if (const size_t empty = theirs.find(empty_system); empty != std::string::npos) {
        theirs.erase(empty, empty_system.size());
      }
    }
    EXPECT_EQ(text, theirs);
  }
  EXPECT_EQ(num_cases, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Templates, ChatGoldenTest,
    testing::Values(
        std::tuple("Llama-2-chat", ChatTemplateKind::kLlama2, "\x01"),
        std::tuple("Llama-3.1-8B-Instruct", ChatTemplateKind::kLlama3,
                   "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"),
        std::tuple("Llama-3.2-3B-Instruct", ChatTemplateKind::kLlama3,
                   "Cutting Knowledge Date: December 2023\nToday Date: 01 Dec 2024\n\n"),
        std::tuple("Qwen2.5-7B-Instruct", ChatTemplateKind::kChatMl,
                   "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
                   "assistant.<|im_end|>\n")));

}  // namespace
}  // namespace cria
