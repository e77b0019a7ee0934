#include "converter/tokenizer/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "text/test_vocabulary.h"

namespace cria {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// A tokenizer like Llama 3's. "Ġ" (U+0120) is the alphabet's space and "Ċ" (U+010A) its line feed.
json ByteLevelJson() {
  return json::parse(R"({
    "added_tokens": [{"id": 9, "content": "<|bos|>", "special": true},
                     {"id": 11, "content": "<|tool|>", "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": " ?\\p{L}+|\\s+"}, "behavior": "Isolated",
       "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
    "post_processor": {"type": "Sequence", "processors": [
      {"type": "ByteLevel", "trim_offsets": false},
      {"type": "TemplateProcessing",
       "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}},
                  {"Sequence": {"id": "A", "type_id": 0}}],
       "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [9], "tokens": ["<|bos|>"]}}}]},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "fuse_unk": false,
      "byte_fallback": false, "ignore_merges": true,
      "vocab": {"a": 0, "b": 1, "Ġ": 2, "Ċ": 3, "ab": 4, "Ġa": 5, "Ġab": 6, "Ã": 7, "©": 8},
      "merges": ["a b", ["Ġ", "a"], "Ġ ab"]}})");
}

// A tokenizer like Llama 2's.
json SentencePieceJson() {
  return json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                     {"id": 1, "content": "<s>", "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": null,
    "post_processor": {"type": "TemplateProcessing",
       "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                  {"Sequence": {"id": "A", "type_id": 0}}],
       "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
      "vocab": {"<unk>": 0, "<s>": 1, "<0xC3>": 2, "<0xA9>": 3, "▁": 4, "a": 5, "b": 6, "ab": 7,
                "▁ab": 8},
      "merges": ["a b", "▁ ab"]}})");
}

VocabularyDraft Read(const json& tokenizer) {
  auto draft = ReadTokenizerJson(tokenizer, "tokenizer.json");
  if (!draft) {
    ADD_FAILURE() << draft.error().message();
    return {};
  }
  return *std::move(draft);
}

TEST(TokenizerJsonTest, ByteLevel) {
  const VocabularyDraft draft = Read(ByteLevelJson());
  EXPECT_EQ(draft.rules.family, TokenizerFamily::kByteLevelBpe);
  EXPECT_TRUE(draft.rules.ignore_merges);
  EXPECT_TRUE(draft.rules.add_bos_token);
  EXPECT_EQ(draft.rules.bos_token_id, 9);
  EXPECT_THAT(draft.split_patterns, ElementsAre(" ?\\p{L}+|\\s+"));
  EXPECT_EQ(draft.pieces[3].bytes, "\n");
  EXPECT_EQ(draft.pieces[9].type, PieceType::kControl);
  EXPECT_EQ(draft.pieces[10].type, PieceType::kUnused);
  EXPECT_EQ(draft.pieces[11].type, PieceType::kUserDefined);
  const TestTokenizer tokenizer(draft);
  EXPECT_THAT(tokenizer.Encode("ab ab\né"), ElementsAre(9, 4, 6, 3, 7, 8));
  EXPECT_THAT(tokenizer.Encode("a<|tool|>b<|bos|>", {.add_bos = false, .parse_special = true}),
              ElementsAre(0, 11, 1, 9));
}

TEST(TokenizerJsonTest, SentencePiece) {
  const VocabularyDraft draft = Read(SentencePieceJson());
  EXPECT_EQ(draft.rules.family, TokenizerFamily::kSentencePieceBpe);
  EXPECT_TRUE(draft.rules.byte_fallback);
  EXPECT_TRUE(draft.rules.add_dummy_prefix);
  EXPECT_TRUE(draft.rules.dummy_prefix_after_special);
  EXPECT_EQ(draft.rules.bos_token_id, 1);
  EXPECT_EQ(draft.rules.unk_token_id, 0);
  EXPECT_EQ(draft.pieces[0].type, PieceType::kControl);
  EXPECT_EQ(draft.pieces[2].type, PieceType::kByte);
  const TestTokenizer tokenizer(draft);
  EXPECT_THAT(tokenizer.Encode("ab aé"), ElementsAre(1, 8, 4, 5, 2, 3));
  EXPECT_THAT(tokenizer.Encode("ab<s>ab", {.parse_special = true}), ElementsAre(1, 8, 1, 8));
}

// Gemma's text gets no space before it, and is split at spaces when there are none any more.
TEST(TokenizerJsonTest, Gemma) {
  json tokenizer = SentencePieceJson();
  tokenizer["normalizer"] =
      json::parse(R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})");
  tokenizer["pre_tokenizer"] = json::parse(
      R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
          "invert": false})");
  const VocabularyDraft draft = Read(tokenizer);
  EXPECT_EQ(draft.rules.family, TokenizerFamily::kSentencePieceBpe);
  EXPECT_FALSE(draft.rules.add_dummy_prefix);
  EXPECT_TRUE(draft.split_patterns.empty());
  EXPECT_THAT(TestTokenizer(draft).Encode("ab ab"), ElementsAre(1, 7, 8));
  tokenizer["pre_tokenizer"]["pattern"]["String"] = "a";
  EXPECT_FALSE(ReadTokenizerJson(tokenizer, "x"));
}

// As Phi 3's do.
TEST(TokenizerJsonTest, AddedTokensMayTakeTheWhiteSpaceAfterThem) {
  json tokenizer = SentencePieceJson();
  tokenizer["added_tokens"].push_back(
      {{"id", 9u}, {"content", "<|user|>"}, {"special", true}, {"rstrip", true}});
  const TestTokenizer with(Read(tokenizer));
  EXPECT_THAT(with.Encode("<|user|>\n ab<s> ab", {.add_bos = false, .parse_special = true}),
              ElementsAre(9, 8, 1, 4, 8));
}

// The ids are those of Hugging Face's library `tokenizers`.
TEST(TokenizerJsonTest, TheUnknownTokenIsSpecialWhereItIsAdded) {
  json tokenizer = SentencePieceJson();
  const EncodeOptions special = {.add_bos = false, .parse_special = true};
  const TestTokenizer with(Read(tokenizer));
  EXPECT_THAT(with.Encode("<unk>", special), ElementsAre(0));
  EXPECT_THAT(with.Encode("ab<unk> ab", special), ElementsAre(8, 0, 4, 8));
  // Text of users never becomes a special token; its characters have no pieces here.
  EXPECT_THAT(with.Encode("<ab>", {.add_bos = false}), ElementsAre(4, 0, 7, 0));
  EXPECT_THAT(with.Encode("<unk>ab", {.add_bos = false}), ElementsAre(4, 0, 7));
  tokenizer["added_tokens"] = json::array();
  EXPECT_THAT(TestTokenizer(Read(tokenizer)).Encode("<unk>ab", special), ElementsAre(4, 0, 7));
  tokenizer["added_tokens"] = json::parse(R"([{"id": 0, "content": "<unk>", "special": false}])");
  EXPECT_THAT(TestTokenizer(Read(tokenizer)).Encode("<unk>ab", {.add_bos = false}),
              ElementsAre(0, 8));
}

TEST(TokenizerJsonTest, Metaspace) {
  json tokenizer = SentencePieceJson();
  tokenizer["normalizer"] = nullptr;
  const auto read = [&](const char* pre_tokenizer) {
    tokenizer["pre_tokenizer"] = json::parse(pre_tokenizer);
    const TokenizerRules rules = Read(tokenizer).rules;
    return std::tuple(rules.add_dummy_prefix, rules.dummy_prefix_after_special,
                      rules.dummy_prefix_unless_space);
  };
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
                     "split": false})"),
            std::tuple(true, false, true));
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})"),
            std::tuple(true, true, true));
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})"),
            std::tuple(false, false, false));
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": true})"),
            std::tuple(true, true, true));
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})"),
            std::tuple(false, false, false));
  // The normalizer Prepend also adds its prefix before a space.
  tokenizer["normalizer"] = {{"type", "Prepend"}, {"prepend", "▁"}};
  EXPECT_EQ(read(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})"),
            std::tuple(true, true, false));
}

TEST(TokenizerJsonTest, Gpt2Words) {
  json tokenizer = ByteLevelJson();
  tokenizer["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  VocabularyDraft draft = Read(tokenizer);
  const auto compiled = SplitPatterns::Compile(
      std::vector<std::string_view>(draft.split_patterns.begin(), draft.split_patterns.end()));
  ASSERT_TRUE(compiled);
  std::vector<std::string_view> words;
  ASSERT_TRUE(compiled->Split("I'm  here,  at 10 o'clock \n", [&](std::string_view word) -> Status {
    words.push_back(word);
    return {};
  }));
  EXPECT_THAT(words, ElementsAre("I", "'m", " ", " here", ",", " ", " at", " 10", " o", "'",
                                 "clock", " \n"));
}

TEST(TokenizerJsonTest, DigitsAndLiterals) {
  json tokenizer = ByteLevelJson();
  tokenizer["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true}, {"type": "Digits"},
      {"type": "Split", "pattern": {"String": "a.b"}, "behavior": "Removed", "invert": true},
      {"type": "ByteLevel", "use_regex": false}]})");
  EXPECT_THAT(Read(tokenizer).split_patterns, ElementsAre(R"(\p{N})", R"(\p{N}+)", R"(\Qa.b\E)"));
}

TEST(TokenizerJsonTest, WithoutAPostProcessorThereIsNoBos) {
  json tokenizer = ByteLevelJson();
  tokenizer.erase("post_processor");
  EXPECT_FALSE(Read(tokenizer).rules.add_bos_token);
  EXPECT_EQ(Read(tokenizer).rules.bos_token_id, -1);
}

TEST(TokenizerJsonTest, ATokenBehindTheTextIsForEmbeddings) {
  json tokenizer = ByteLevelJson();
  json& single = tokenizer["post_processor"]["processors"][1]["single"];
  EXPECT_EQ(Read(tokenizer).rules.appended_token_id, -1);
  single.push_back({{"SpecialToken", {{"id", "<|bos|>"}, {"type_id", 0}}}});
  EXPECT_EQ(Read(tokenizer).rules.appended_token_id, 9);
  EXPECT_EQ(Read(tokenizer).rules.bos_token_id, 9);
  single.push_back(single.back());
  const auto refused = ReadTokenizerJson(tokenizer, "tokenizer.json");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("ends with two special tokens"));
}

// Like the tokenizers of Qwen.
TEST(TokenizerJsonTest, Nfc) {
  json tokenizer = ByteLevelJson();
  EXPECT_FALSE(Read(tokenizer).rules.normalize_nfc);
  for (const char* normalizer :
       {R"({"type": "NFC"})", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})"}) {
    tokenizer["normalizer"] = json::parse(normalizer);
    const VocabularyDraft draft = Read(tokenizer);
    EXPECT_TRUE(draft.rules.normalize_nfc);
    EXPECT_THAT(TestTokenizer(draft).Encode("a\u00E9", {.add_bos = false}), ElementsAre(0, 7, 8));
  }
  tokenizer = SentencePieceJson();
  tokenizer["normalizer"]["normalizers"].push_back({{"type", "NFC"}});
  EXPECT_TRUE(Read(tokenizer).rules.normalize_nfc);
  EXPECT_TRUE(Read(tokenizer).rules.add_dummy_prefix);
}

TEST(TokenizerJsonTest, AddedTokensInNormalizedText) {
  json tokenizer = ByteLevelJson();
  const auto& token = tokenizer["added_tokens"][1];
  tokenizer["added_tokens"][1]["normalized"] = true;
  tokenizer["normalizer"] = {{"type", "NFC"}};
  EXPECT_TRUE(ReadTokenizerJson(tokenizer, "x"));
  tokenizer["added_tokens"][1]["content"] = "<\u00E9>";
  const auto draft = ReadTokenizerJson(tokenizer, "x");
  ASSERT_FALSE(draft) << token;
  EXPECT_EQ(draft.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(draft.error().message(), HasSubstr("x: the added token \"<\u00E9>\""));
  tokenizer["normalizer"] = nullptr;
  EXPECT_TRUE(ReadTokenizerJson(tokenizer, "x"));
  tokenizer["normalizer"] = {{"type", "NFC"}};
  tokenizer["added_tokens"][1]["normalized"] = false;
  EXPECT_TRUE(ReadTokenizerJson(tokenizer, "x"));
}

// Hugging Face's tokenizers find such a token only behind a space, which is not a part of it.
TEST(TokenizerJsonTest, AddedTokensBehindAPrependedSpaceAreRefused) {
  json tokenizer = SentencePieceJson();
  json& token = tokenizer["added_tokens"].back();
  token["normalized"] = true;
  token["special"] = true;
  // As transformers' LlamaTokenizer finds them.
  EXPECT_THAT(TestTokenizer(Read(tokenizer)).Encode("ab<s><s>ab <s>", {.parse_special = true}),
              ElementsAre(1, 8, 1, 1, 8, 4, 1));
  token["special"] = false;
  const auto draft = ReadTokenizerJson(tokenizer, "x");
  ASSERT_FALSE(draft);
  EXPECT_EQ(draft.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(draft.error().message(),
              HasSubstr("x: the added token \"" + token["content"].get<std::string>() + "\""));
  token["normalized"] = false;
  EXPECT_TRUE(ReadTokenizerJson(tokenizer, "x"));
}

TEST(TokenizerJsonTest, TokensOutsideTheAlphabetAreNoText) {
  json tokenizer = ByteLevelJson();
  tokenizer["model"]["vocab"]["<｜begin▁of▁text｜>"] = 12u;
  VocabularyDraft draft = Read(tokenizer);
  EXPECT_EQ(draft.pieces[12].type, PieceType::kUnused);
  tokenizer["added_tokens"].push_back(
      {{"id", 12u}, {"content", "<｜begin▁of▁text｜>"}, {"special", true}});
  draft = Read(tokenizer);
  EXPECT_EQ(draft.FindSpecial("<｜begin▁of▁text｜>"), 12);
}

struct Refusal {
  const char* pointer;  // What is set in the byte-level file,
  const char* value;    // to this JSON,
  const char* named;    // and must be in the error.
};

class TokenizerJsonRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(TokenizerJsonRefusalTest, NamesTheField) {
  json tokenizer = ByteLevelJson();
  tokenizer[json::json_pointer(GetParam().pointer)] = json::parse(GetParam().value);
  const auto draft = ReadTokenizerJson(tokenizer, "dir/tokenizer.json");
  ASSERT_FALSE(draft);
  EXPECT_THAT(draft.error().message(), HasSubstr("dir/tokenizer.json: "));
  EXPECT_THAT(draft.error().message(), HasSubstr(GetParam().named));
}

INSTANTIATE_TEST_SUITE_P(
    All, TokenizerJsonRefusalTest,
    testing::Values(
        Refusal{"/normalizer", R"({"type": "NFKC"})", "normalizer.type is \"NFKC\""},
        Refusal{"/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, "NFC"]})",
                "normalizer.normalizers[1]"},
        Refusal{"/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "Lowercase"}]})",
                "normalizer.normalizers[0].type is \"Lowercase\""},
        Refusal{"/normalizer", R"({"type": "Prepend", "prepend": "x"})", "normalizer.prepend"},
        Refusal{"/normalizer", R"({"type": "Prepend", "prepend": "▁"})", "changes spaces"},
        Refusal{"/normalizer", R"({"type": "Replace", "pattern": {"Regex": "x"}, "content": "▁"})",
                "normalizer.pattern"},
        Refusal{"/normalizer", "[]", "normalizer.type is \"\""},
        Refusal{"/pre_tokenizer", R"({"type": "Whitespace"})", "pre_tokenizer.type is \"White"},
        Refusal{"/pre_tokenizer", "null", "ByteLevel"},
        Refusal{"/pre_tokenizer/pretokenizers", "{}",
                "pre_tokenizer.pretokenizers is {}, but must be an array"},
        Refusal{"/pre_tokenizer/pretokenizers/0/behavior", R"("MergedWithNext")",
                "pre_tokenizer.pretokenizers[0].behavior is \"MergedWithNext\""},
        Refusal{"/pre_tokenizer/pretokenizers/0/pattern", "{}", "[0].pattern must have"},
        Refusal{"/pre_tokenizer/pretokenizers/0/pattern/Regex", R"("[a&&b]")", "intersection"},
        Refusal{"/pre_tokenizer/pretokenizers/1/add_prefix_space", "true", "add_prefix_space"},
        Refusal{"/pre_tokenizer/pretokenizers/1/use_regex", "3",
                "use_regex is 3, but must be true or false"},
        Refusal{"/pre_tokenizer/pretokenizers/2", R"({"type": "Digits"})", "after ByteLevel"},
        Refusal{"/post_processor", R"({"type": "RobertaProcessing"})", "post_processor.type"},
        Refusal{"/post_processor/processors/1/special_tokens", "{}", "ids is missing"},
        Refusal{"/post_processor/processors/1/single",
                R"([{"SpecialToken": {"id": "<|bos|>"}}, {"SpecialToken": {"id": "<|bos|>"}},
                    {"Sequence": {"id": "A"}}])",
                "post_processor.processors[1].single begins with two special tokens"},
        Refusal{"/model/unk_token", R"("a")", "model.fuse_unk must be true"},
        Refusal{"/model/type", R"("Unigram")", "model.type is \"Unigram\""},
        Refusal{"/model/dropout", "0.1", "model.dropout"},
        Refusal{"/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix"},
        Refusal{"/model", "null", "model is missing"}, Refusal{"/model/vocab", "[]", "model.vocab"},
        Refusal{"/model/vocab/a", "-1", "model.vocab[\"a\"] must be a whole number"},
        Refusal{"/model/vocab/a", "99999999", "model.vocab[\"a\"]"},
        Refusal{"/model/vocab/a", "1", "model.vocab gives the id 1 twice"},
        Refusal{"/model/merges", "null", "model.merges is missing"},
        Refusal{"/model/merges/0", R"("a")", "model.merges[0] is \"a\""},
        Refusal{"/model/merges/0", R"("a b c")", "model.merges[0]"},
        Refusal{"/model/merges/0", R"(["a", 1])", "model.merges[0]"},
        Refusal{"/model/merges/1", R"("a z")", "model.merges[1] makes \"az\""},
        Refusal{"/added_tokens", "{}", "added_tokens is {}, but must be an array"},
        Refusal{"/added_tokens/0/id", "\"x\"", "added_tokens[0].id"},
        Refusal{"/added_tokens/0/id", "4", "has the id 4, which is \"ab\""},
        Refusal{"/added_tokens/0/content", "null", "added_tokens[0].content is missing"},
        Refusal{"/added_tokens/0/lstrip", "true", "added_tokens[0].lstrip is true"},
        Refusal{"/added_tokens/0/single_word", "true", "added_tokens[0].single_word"}));

TEST(TokenizerJsonTest, RefusesSplitMetaspaceWithPiecesAcrossWords) {
  json tokenizer = SentencePieceJson();
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "▁"}};
  tokenizer["model"]["vocab"]["a▁b"] = 9u;
  const auto draft = ReadTokenizerJson(tokenizer, "x");
  ASSERT_FALSE(draft);
  EXPECT_THAT(draft.error().message(), HasSubstr("token 9 has a space inside"));
}

TEST(TokenizerJsonTest, RefusesUnknownTokensThatAreNotFused) {
  json tokenizer = SentencePieceJson();
  tokenizer["model"]["byte_fallback"] = false;
  EXPECT_TRUE(ReadTokenizerJson(tokenizer, "x"));
  tokenizer["model"]["fuse_unk"] = false;
  EXPECT_FALSE(ReadTokenizerJson(tokenizer, "x"));
}

}  // namespace
}  // namespace cria
