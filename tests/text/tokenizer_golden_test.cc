// Compares with the results of other programs for the same texts: of our own texts and
// vocabularies, and of those that are external test data.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "converter/open_checkpoint.h"
#include "converter/tokenizer/import_tokenizer.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "converter/tokenizer/tokenizer_json.h"
#include "golden/test_data.h"
#include "support/byte_level_tokenizer.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
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
  auto imported = ImportTokenizerOf(ExternalTestData() / folder, vocab_size);
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

// Byte-level tokenizers of several families, read from tokenizer.json and from GGUF files. Those of
// SentencePiece are compared with its library in sentencepiece_model_test.
class ByteLevelFamily : public testing::TestWithParam<std::string> {
 protected:
  // What the library `tokenizers` makes of the texts.
  void ExpectIds(const OwnedVocabulary& vocabulary) const {
    const Tokenizer tokenizer = Tokenizer::Create(vocabulary.view()).value();
    const nlohmann::json& ids = data_[GetParam()]["ids"];
    ASSERT_EQ(ids.size(), data_["texts"].size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string text = data_["texts"][i];
      const std::vector<int32_t> encoded = tokenizer.Encode(text, {.add_bos = false}).value();
      EXPECT_EQ(encoded, ids[i].get<std::vector<int32_t>>()) << '[' << text << ']';
      if (data_[GetParam()]["normalizer"].is_null()) {
        EXPECT_EQ(Decode(tokenizer, encoded), text);
      }
    }
  }

  const nlohmann::json data_ =
      nlohmann::json::parse(ReadFile(support::SourcePath("tests/text/byte_level_ids.json")));
  const support::ByteLevelTokenizer made_ = support::MakeByteLevelTokenizer(data_["vocab_size"]);
};

TEST_P(ByteLevelFamily, FromTokenizerJson) {
  nlohmann::json definition = nlohmann::json::parse(support::TokenizerJson(made_, false));
  definition["normalizer"] = data_[GetParam()]["normalizer"];
  definition["pre_tokenizer"] = data_[GetParam()]["pre_tokenizer"];
  definition["model"]["ignore_merges"] = GetParam() == "llama-bpe";
  const auto draft = ReadTokenizerJson(definition, "tokenizer.json");
  ASSERT_TRUE(draft) << draft.error().message();
  ExpectIds(BuildVocabulary(*draft, made_.vocab_size()).value());
}

TEST_P(ByteLevelFamily, FromGguf) {
  const support::TemporaryDirectory folder;
  support::GgufWriter writer;
  writer.Add("general.architecture", "llama");
  support::AddTokenizer(made_, support::ChatTemplateText::kNone, writer, GetParam());
  support::WriteFile(folder / "vocabulary.gguf", writer.File());
  auto opened = OpenVocabulary(folder / "vocabulary.gguf");
  ASSERT_TRUE(opened) << opened.error().message();
  const auto imported = ImportTokenizer(std::move(opened->tokenizer), std::nullopt);
  ASSERT_TRUE(imported) << imported.error().message();
  ExpectIds(imported->vocabulary);
}

INSTANTIATE_TEST_SUITE_P(All, ByteLevelFamily,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "mpt", "starcoder",
                                         "deepseek-coder"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

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

nlohmann::json Llama2Json() {
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
  return tokenizer_json;
}

OwnedVocabulary ReadLlama2Json(const nlohmann::json& tokenizer_json) {
  const auto draft = ReadTokenizerJson(tokenizer_json, "tokenizer.json");
  EXPECT_TRUE(draft) << draft.error().message();
  return BuildVocabulary(*draft, 32000).value();
}

TEST(TokenizerGoldenTest, Llama2Json) {
  CRIA_NEEDS_TEST_DATA("tokenizers/llama2/tokenizer.json");
  const OwnedVocabulary vocabulary = ReadLlama2Json(Llama2Json());
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

struct TextAndIds {
  std::string_view text;
  std::vector<int32_t> ids;
};

void ExpectIds(const OwnedVocabulary& vocabulary, std::span<const TextAndIds> expected) {
  const Tokenizer tokenizer = Tokenizer::Create(vocabulary.view()).value();
  for (const auto& [text, ids] : expected) {
    EXPECT_EQ(tokenizer.Encode(text, {.add_bos = false, .parse_special = true}).value(), ids)
        << "[" << text << "]";
  }
}

// What Hugging Face's tokenizers 0.23.3 makes of texts with this pre-tokenizer.
TEST(TokenizerGoldenTest, Llama2WithMetaspace) {
  CRIA_NEEDS_TEST_DATA("tokenizers/llama2/tokenizer.json");
  const std::vector<TextAndIds> of_both = {{"Hello world", {15043, 3186}},
                                           {" Hello world", {15043, 3186}},
                                           {"  Hello", {29871, 15043}},
                                           {"", {}},
                                           {"\u2581Hello", {15043}},
                                           {" ", {29871}},
                                           {"  ", {259}},
                                           {"<unk>", {0}},
                                           {" <unk>", {29871, 0}},
                                           {"a <unk> b", {263, 29871, 0, 289}},
                                           {"<s> Hello", {1, 15043}},
                                           {" a</s>  b", {263, 2, 29871, 289}}};
  const std::vector<TextAndIds> of_first = {
      {"a<unk>b", {263, 0, 29890}},
      {"<s>Hello", {1, 10994}},
      {"</s> a </s>b", {2, 263, 29871, 2, 29890}},
      {"<unk>Hello", {0, 10994}},
  };
  const std::vector<TextAndIds> of_always = {
      {"a<unk>b", {263, 0, 289}},
      {"<s>Hello", {1, 15043}},
      {"</s> a </s>b", {2, 263, 29871, 2, 289}},
      {"<unk>Hello", {0, 15043}},
  };
  const support::TemporaryDirectory folder;
  std::filesystem::copy(ExternalTestData() / "tokenizers/llama2/tokenizer.model", folder.path());
  nlohmann::json tokenizer_json = Llama2Json();
  tokenizer_json["normalizer"] = nullptr;
  for (const bool is_first : {true, false}) {
    tokenizer_json["pre_tokenizer"] = {{"type", "Metaspace"},
                                       {"replacement", "\u2581"},
                                       {"prepend_scheme", is_first ? "first" : "always"},
                                       {"split", false}};
    support::WriteFile(folder.path() / "tokenizer.json", tokenizer_json.dump());
    // From tokenizer.json, and from tokenizer.model with that beside it.
    const OwnedVocabulary with_model = ImportTokenizerOf(folder.path(), 32000).value().vocabulary;
    for (const OwnedVocabulary& vocabulary : {ReadLlama2Json(tokenizer_json), with_model}) {
      ExpectIds(vocabulary, of_both);
      ExpectIds(vocabulary, is_first ? of_first : of_always);
    }
  }
}

// The vocabularies that llama.cpp tests itself with, from GGUF files without weights.
class GgufVocabularyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufVocabularyTest, GivesLlamaCppsIds) {
  const std::string name = "ggml-vocab-" + GetParam();
  const std::string path = "tokenizers/pairs/" + name + ".gguf";
  CRIA_NEEDS_TEST_DATA(path);
  auto opened = OpenVocabulary(ExternalTestData() / path);
  ASSERT_TRUE(opened) << opened.error().message();
  const auto imported = ImportTokenizer(std::move(opened->tokenizer), std::nullopt);
  ASSERT_TRUE(imported) << imported.error().message();
  ExpectPairs(Tokenizer::Create(imported->vocabulary.view()).value(), name);
}

INSTANTIATE_TEST_SUITE_P(All, GgufVocabularyTest,
                         ::testing::Values("llama-spm", "gpt-2", "deepseek-llm", "deepseek-coder",
                                           "starcoder", "refact", "mpt"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(TokenizerGoldenTest, Llama3Ranks) {
  CRIA_NEEDS_TEST_DATA("tokenizers/llama3");
  const auto imported = ImportTokenizerOf(ExternalTestData() / "tokenizers/llama3", 128256);
  ASSERT_TRUE(imported) << imported.error().message();
  const Tokenizer tokenizer = Tokenizer::Create(imported->vocabulary.view()).value();
  ExpectPairs(tokenizer, "ggml-vocab-llama-bpe");
  EXPECT_EQ(tokenizer.Encode("<|eot_id|>", {.parse_special = true}).value(),
            (std::vector<int32_t>{128000, 128009}));
  EXPECT_EQ(imported->stop_token_ids, (std::vector<int32_t>{128001, 128008, 128009}));
  const ChatMessage message{"user", "Hi"};
  const ChatTemplate chat_template(imported->chat_template_source, imported->vocabulary.view());
  const auto ids = chat_template.Encode(tokenizer, {&message, 1}, {.add_generation_prompt = true});
  ASSERT_TRUE(ids) << ids.error().message();
  // The model's own template puts a system message with dates before this.
  const std::vector<int32_t> expected = {128009, 128006, 882,   128007, 271, 13347,
                                         128009, 128006, 78191, 128007, 271};
  ASSERT_GT(ids->size(), expected.size());
  EXPECT_EQ(ids->front(), 128000);
  EXPECT_EQ(std::vector(ids->end() - static_cast<ptrdiff_t>(expected.size()), ids->end()),
            expected);
}

}  // namespace
}  // namespace cria
