#include "converter/gguf/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/tokenizer/split_patterns_by_name.h"
#include "support/unwrap.h"
#include "text/split_patterns.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StringList Strings(const std::vector<std::string>& texts) {
  StringList list;
  for (const std::string& text : texts) list.Add(text);
  return list;
}

// A vocabulary like SentencePiece's: unknown, bos, eos, a byte, letters, and a word.
GgufMetadata ScoredMetadata() {
  GgufMetadata metadata("x.gguf");
  metadata.Add("tokenizer.ggml.model", std::string("llama"));
  metadata.Add("tokenizer.ggml.tokens",
               Strings({"<unk>", "<s>", "</s>", "<0x21>", "\xE2\x96\x81", "a", "b", "ab",
                        "\xE2\x96\x81"
                        "ab",
                        "<|user|>", "unused"}));
  metadata.Add("tokenizer.ggml.scores", std::vector<double>{0, 0, 0, 0, -4, -5, -6, -1, -2, 0, 0});
  metadata.Add("tokenizer.ggml.token_type", std::vector<int64_t>{2, 3, 3, 6, 1, 1, 1, 1, 1, 4, 5});
  metadata.Add("tokenizer.ggml.bos_token_id", int64_t{1});
  metadata.Add("tokenizer.ggml.eos_token_id", int64_t{2});
  return metadata;
}

// A byte-level vocabulary: letters, a word, a special token.
GgufMetadata ByteLevelMetadata(std::string pre = "gpt-2",
                               std::vector<std::string> merges = {"a b", "\xC4\xA0 ab"}) {
  GgufMetadata metadata("x.gguf");
  metadata.Add("tokenizer.ggml.model", std::string("gpt2"));
  if (!pre.empty()) metadata.Add("tokenizer.ggml.pre", std::move(pre));
  // U+0120 is a space in the byte-level alphabet.
  metadata.Add("tokenizer.ggml.tokens", Strings({"a", "b", "\xC4\xA0", "ab",
                                                 "\xC4\xA0"
                                                 "ab",
                                                 "<|end|>"}));
  metadata.Add("tokenizer.ggml.token_type", std::vector<int64_t>{1, 1, 1, 1, 1, 3});
  metadata.Add("tokenizer.ggml.merges", Strings(merges));
  return metadata;
}

Result<ImportedTokenizer> Import(const GgufMetadata& metadata) {
  CRIA_ASSIGN_OR_RETURN(TokenizerMaterial material, ReadGgufTokenizer(metadata));
  return ImportTokenizer(std::move(material), std::nullopt);
}

void ExpectRefused(const GgufMetadata& metadata, std::string_view reason) {
  const auto imported = Import(metadata);
  ASSERT_FALSE(imported) << reason;
  EXPECT_THAT(imported.error().message(), HasSubstr(reason));
}

std::vector<int32_t> Encode(const ImportedTokenizer& imported, std::string_view text) {
  return Tokenizer::Create(imported.vocabulary.view()).value().Encode(text).value();
}

TEST(GgufTokenizerTest, ReadsScoredPieces) {
  const auto imported = Import(ScoredMetadata());
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_THAT(Encode(*imported, "ab"), ElementsAre(1, 8));
  EXPECT_THAT(Encode(*imported, "abab!"), ElementsAre(1, 8, 7, 3));
  EXPECT_THAT(imported->stop_token_ids, ElementsAre(2));
  EXPECT_EQ(imported->vocabulary.piece_types[10], PieceType::kUnused);
  EXPECT_EQ(imported->vocabulary.piece_types[9], PieceType::kUserDefined);
}

// The metadata does not say so.
TEST(GgufTokenizerTest, Phi3sTokensTakeTheWhiteSpaceAfterThem) {
  GgufMetadata metadata = ScoredMetadata();
  EXPECT_TRUE(Import(metadata).value().vocabulary.rstrip_ids.empty());
  metadata.Add("general.architecture", std::string("phi3"));
  EXPECT_THAT(Import(metadata).value().vocabulary.rstrip_ids, ElementsAre(2u, 9u));
}

TEST(GgufTokenizerTest, ReadsRulesOfScoredPieces) {
  GgufMetadata metadata = ScoredMetadata();
  metadata.Add("tokenizer.ggml.add_bos_token", false);
  metadata.Add("tokenizer.ggml.add_space_prefix", false);
  metadata.Add("tokenizer.ggml.eot_token_id", int64_t{9});
  // None.
  metadata.Add("tokenizer.ggml.eom_token_id", int64_t{0xffffffff});
  metadata.Add("tokenizer.chat_template", std::string("{{ messages }}"));
  const auto imported = Import(metadata);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_THAT(Encode(*imported, "ab"), ElementsAre(7));
  EXPECT_THAT(imported->stop_token_ids, ElementsAre(2, 9));
  EXPECT_EQ(imported->chat_template_source, "{{ messages }}");
}

constexpr const char* kTurnTemplate =
    "{% for m in messages %}<turn>{{ m.role }} [b]{{ m.content }}</turn>{% endfor %}";

// A file whose converter did not know which tokens are special. The letters of "[b]" merge to it.
GgufMetadata MetadataWithMarksOfText(std::vector<std::string> marks, int64_t type = 1) {
  std::vector<std::string> pieces = {"<unk>", "<s>", "</s>", "\xE2\x96\x81", "[", "b", "]", "[b"};
  std::vector<double> scores = {0, 0, 0, -1, -2, -3, -4, -5};
  std::vector<int64_t> types = {2, 3, 3, 1, 1, 1, 1, 1};
  for (std::string& mark : marks) {
    pieces.push_back(std::move(mark));
    scores.push_back(-6);
    types.push_back(type);
  }
  GgufMetadata metadata("x.gguf");
  metadata.Add("tokenizer.ggml.model", std::string("llama"));
  metadata.Add("tokenizer.ggml.tokens", Strings(pieces));
  metadata.Add("tokenizer.ggml.scores", std::move(scores));
  metadata.Add("tokenizer.ggml.token_type", std::move(types));
  metadata.Add("tokenizer.ggml.bos_token_id", int64_t{1});
  metadata.Add("tokenizer.ggml.eos_token_id", int64_t{2});
  return metadata;
}

TEST(GgufTokenizerTest, MarksOfTheTemplateThatAreTextBecomeSpecial) {
  GgufMetadata metadata =
      MetadataWithMarksOfText({"<turn>", "</turn>", "[b]", "<other>", "<|im_end|>"});
  const auto without_template = Import(metadata);
  ASSERT_TRUE(without_template) << without_template.error().message();
  const std::vector<PieceType>& unchanged = without_template->vocabulary.piece_types;
  EXPECT_EQ(unchanged[8], PieceType::kNormal);
  // It ends turns in every model that has it, as in llama.cpp.
  EXPECT_EQ(unchanged[12], PieceType::kControl);
  EXPECT_THAT(without_template->stop_token_ids, ElementsAre(2, 12));

  metadata.Add("tokenizer.chat_template", std::string(kTurnTemplate));
  const auto imported = Import(metadata);
  ASSERT_TRUE(imported) << imported.error().message();
  const std::vector<PieceType>& types = imported->vocabulary.piece_types;
  EXPECT_EQ(types[8], PieceType::kControl);
  EXPECT_EQ(types[9], PieceType::kControl);
  EXPECT_EQ(types[10], PieceType::kNormal);  // Text becomes it.
  EXPECT_EQ(types[11], PieceType::kNormal);  // The template does not write it.
  EXPECT_THAT(imported->stop_token_ids, ElementsAre(2, 9, 12));
  ASSERT_EQ(imported->notes.size(), 1u);
  EXPECT_THAT(imported->notes[0], HasSubstr("<|im_end|>, </turn>, <turn>"));
  const Tokenizer tokenizer = Tokenizer::Create(imported->vocabulary.view()).value();
  EXPECT_THAT(
      tokenizer.Encode("<turn>[b]</turn>", {.add_bos = false, .parse_special = true}).value(),
      ElementsAre(8, 3, 10, 9));
}

TEST(GgufTokenizerTest, SoDoMarksThatAreUnused) {
  constexpr int64_t kUnused = 5;
  GgufMetadata metadata = MetadataWithMarksOfText({"<turn>", "</turn>", "<other>"}, kUnused);
  metadata.Add("tokenizer.chat_template", std::string(kTurnTemplate));
  const auto imported = Unwrap(Import(metadata));
  EXPECT_THAT(std::span(imported.vocabulary.piece_types).subspan(8),
              ElementsAre(PieceType::kControl, PieceType::kControl, PieceType::kUnused));
  EXPECT_THAT(imported.stop_token_ids, ElementsAre(2, 9));
}

// Right behind an answer, it cannot be anything else.
TEST(GgufTokenizerTest, AMarkBehindAnswersEndsThemEvenIfTextBecomesIt) {
  GgufMetadata metadata = MetadataWithMarksOfText({"[b]"});
  metadata.Add("tokenizer.chat_template",
               std::string("{% for m in messages %}{{ m.content }}[b]{% endfor %}"));
  const auto imported = Import(metadata);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_EQ(imported->vocabulary.piece_types[8], PieceType::kControl);
  EXPECT_THAT(imported->stop_token_ids, ElementsAre(2, 8));
}

TEST(GgufTokenizerTest, ReadsByteLevelPieces) {
  GgufMetadata metadata = ByteLevelMetadata();
  metadata.Add("tokenizer.ggml.bos_token_id", int64_t{5});
  auto imported = Import(metadata);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_THAT(Encode(*imported, "ab ab"), ElementsAre(3, 4));
  metadata.Add("tokenizer.ggml.add_bos_token", true);
  imported = Import(metadata);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_THAT(Encode(*imported, "ab ab"), ElementsAre(5, 3, 4));
  EXPECT_EQ(imported->vocabulary.rules.appended_token_id, -1);
}

// A prompt does not end with it.
TEST(GgufTokenizerTest, OnlyEmbeddingsHaveAnEndToken) {
  GgufMetadata metadata = ByteLevelMetadata();
  metadata.Add("tokenizer.ggml.eos_token_id", int64_t{5});
  metadata.Add("tokenizer.ggml.add_eos_token", true);
  const auto imported = Import(metadata);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_THAT(Encode(*imported, "ab ab"), ElementsAre(3, 4));
  EXPECT_EQ(imported->vocabulary.rules.appended_token_id, 5);
}

TEST(GgufTokenizerTest, PreTokenizersAreKnownByName) {
  for (const char* name : {"llama-bpe",    "llama3",
                           "llama-v3",     "lfm2",
                           "tekken",       "qwen2",
                           "qwen35",       "deepseek-r1-qwen",
                           "deepseek-llm", "deepseek-coder",
                           "smollm",       "starcoder",
                           "refact",       "mpt",
                           "gpt-2",        "default",
                           "gpt-4o",       "dbrx",
                           "smaug-bpe",    "olmo",
                           "minicpm5"}) {
    const auto imported = Import(ByteLevelMetadata(name));
    EXPECT_TRUE(imported) << name;
  }
  ExpectRefused(ByteLevelMetadata("unheard-of"), "tokenizer.ggml.pre is \"unheard-of\"");
  ExpectRefused(ByteLevelMetadata(""), "tokenizer.ggml.pre is missing");
}

TEST(GgufTokenizerTest, QwensTextIsNormalized) {
  for (const char* name : {"qwen2", "qwen35", "deepseek-r1-qwen", "mpt", "olmo"}) {
    EXPECT_TRUE(Import(ByteLevelMetadata(name)).value().vocabulary.rules.normalize_nfc) << name;
  }
  for (const char* name : {"llama-bpe", "tekken", "deepseek-llm", "deepseek-coder", "starcoder",
                           "refact", "gpt-2", "default"}) {
    EXPECT_FALSE(Import(ByteLevelMetadata(name)).value().vocabulary.rules.normalize_nfc) << name;
  }
}

// Splits of the same text, as the libraries of the models' makers make them.
TEST(GgufTokenizerTest, PreTokenizersSplitAsTheirModelsDo) {
  const auto words_of = [](std::string_view name, std::string_view text = "it's  12 a+b,\n\tc") {
    const std::span<const std::string_view> patterns = FindPreTokenizer(name)->split_patterns;
    std::vector<std::string> words;
    const auto split =
        SplitPatterns::Compile(patterns).value().Split(text, [&](std::string_view word) -> Status {
          words.emplace_back(word);
          return {};
        });
    EXPECT_TRUE(split);
    return words;
  };
  EXPECT_THAT(words_of("deepseek-coder"),
              ElementsAre("it", "'", "s", "  ", "1", "2", " a", "+", "b", ",", "\n", "\tc"));
  for (const char* name : {"starcoder", "refact"}) {
    EXPECT_THAT(words_of(name),
                ElementsAre("it", "'s", "  ", "1", "2", " a", "+", "b", ",", "\n", "\t", "c"))
        << name;
  }
  EXPECT_THAT(words_of("gpt-4o"), ElementsAre("it's", " ", " ", "12", " a", "+b", ",\n", "\tc"));
  // Two spaces before a number stay together, because the number is a word before.
  EXPECT_THAT(words_of("minicpm5"), ElementsAre("it", "'s", "  ", "12", " a", "+b", ",\n", "\tc"));
  EXPECT_THAT(words_of("minicpm5", "a  1234 b"), ElementsAre("a", "  ", "123", "4", " b"));
  for (const char* name : {"dbrx", "smaug-bpe", "lfm2"}) {
    EXPECT_EQ(words_of(name), words_of("llama-bpe"));
  }
  EXPECT_EQ(words_of("qwen35"), words_of("qwen2"));
  // A mark belongs to its letter.
  EXPECT_THAT(words_of("qwen35", "xe\u0301y 12"), ElementsAre("xe\u0301y", " ", "1", "2"));
  EXPECT_THAT(words_of("qwen2", "xe\u0301y 12"), ElementsAre("xe", "\u0301y", " ", "1", "2"));
  EXPECT_EQ(words_of("olmo"), words_of("mpt"));
  EXPECT_THAT(words_of("mpt"),
              ElementsAre("it", "'s", " ", " 12", " a", "+", "b", ",", "\n", "\t", "c"));
}

TEST(GgufTokenizerTest, RefusesOtherModels) {
  GgufMetadata metadata("x.gguf");
  metadata.Add("tokenizer.ggml.model", std::string("t5"));
  metadata.Add("tokenizer.ggml.tokens", Strings({"a"}));
  ExpectRefused(metadata, "tokenizer.ggml.model is \"t5\"");
  ExpectRefused(GgufMetadata("x.gguf"), "tokenizer.ggml.model is missing");
}

TEST(GgufTokenizerTest, RefusesVocabulariesThatDoNotFit) {
  ExpectRefused(ByteLevelMetadata("gpt-2", {"a x"}), "tokenizer.ggml.merges[0] is \"a x\"");
  ExpectRefused(ByteLevelMetadata("gpt-2", {"b a"}), "are not all tokens");
  ExpectRefused(ByteLevelMetadata("gpt-2", {"ab"}), "with one space between");
  ExpectRefused(ByteLevelMetadata("gpt-2", {""}), "with one space between");
  const auto with_tokens = [](std::vector<std::string> tokens, std::vector<int64_t> types) {
    GgufMetadata metadata("x.gguf");
    metadata.Add("tokenizer.ggml.model", std::string("gpt2"));
    metadata.Add("tokenizer.ggml.pre", std::string("gpt-2"));
    metadata.Add("tokenizer.ggml.tokens", Strings(tokens));
    metadata.Add("tokenizer.ggml.token_type", std::move(types));
    metadata.Add("tokenizer.ggml.merges", StringList());
    return metadata;
  };
  EXPECT_TRUE(Import(with_tokens({"a", "b"}, {1, 1})));
  ExpectRefused(with_tokens({"a", "a"}, {1, 1}), "tokens[1] is \"a\", which already exists");
  ExpectRefused(with_tokens({"a"}, {1, 1}), "token_type has 2 elements");
  ExpectRefused(with_tokens({"a"}, {7}), "token_type[0] is 7");
  ExpectRefused(with_tokens({"a"}, {-1}), "token_type[0] is -1");
  ExpectRefused(with_tokens({" "}, {1}), "characters outside the byte-level alphabet");
  ExpectRefused(with_tokens({"\xFF"}, {1}), "is not UTF-8");
  ExpectRefused(with_tokens({}, {}), "piece_types is empty");
}

TEST(GgufTokenizerTest, RefusesIdsThatDoNotExist) {
  for (const int64_t id : {int64_t{11}, int64_t{-2}, int64_t{1} << 40}) {
    GgufMetadata metadata = ScoredMetadata();
    metadata.Add("tokenizer.ggml.eot_token_id", id);
    ExpectRefused(metadata, "tokenizer.ggml.eot_token_id is ");
  }
  GgufMetadata metadata = ByteLevelMetadata();
  metadata.Add("tokenizer.ggml.add_bos_token", true);
  ExpectRefused(metadata, "bos_token_id is not a token");
}

}  // namespace
}  // namespace cria
