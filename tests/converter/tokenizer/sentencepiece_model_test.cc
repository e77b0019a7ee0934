#include "converter/tokenizer/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>

#include "core/utf8.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "text/detokenizer.h"
#include "text/test_vocabulary.h"

namespace cria {
namespace {

using testing::HasSubstr;

using Options = std::map<std::string, std::string>;

// Results of SentencePiece's own library.
struct Oracle {
  std::string model;  // tokenizer.model
  std::vector<std::vector<int32_t>> ids;
};

// Trains a model and encodes `texts` with it, in a separate program.
Oracle AskLibrary(const Options& options, const std::vector<std::string>& texts = {}) {
  Options all = {{"model_type", "bpe"},
                 {"vocab_size", "400"},
                 {"normalization_rule_name", "identity"},
                 {"character_coverage", "0.995"},
                 {"allow_whitespace_only_pieces", "true"},
                 {"hard_vocab_limit", "false"},
                 {"minloglevel", "2"}};
  for (const auto& [name, value] : options) all[name] = value;
  std::vector<std::string> arguments = {support::kSentencepieceOracle};
  for (const auto& [name, value] : all) arguments.push_back(name + "=" + value);
  std::string input;
  for (const std::string& text : texts) input += std::to_string(text.size()) + "\n" + text;
  const support::RunResult result = support::RunProgram(arguments, {.input = input});
  Oracle oracle;
  if (result.exit_code != 0) {
    ADD_FAILURE() << "the oracle ended with " << result.exit_code << ": " << result.error;
    return oracle;
  }
  std::istringstream output(result.output);
  size_t model_bytes = 0;
  output >> model_bytes;
  output.get();
  oracle.model.resize(model_bytes);
  output.read(oracle.model.data(), static_cast<std::streamsize>(model_bytes));
  for (std::string line; std::getline(output, line);) {
    std::istringstream numbers(line);
    oracle.ids.emplace_back(std::istream_iterator<int32_t>(numbers),
                            std::istream_iterator<int32_t>());
  }
  EXPECT_EQ(oracle.ids.size(), texts.size());
  return oracle;
}

std::string Train(const Options& options) { return AskLibrary(options).model; }

// The library replaces each byte that is not UTF-8 by U+FFFD.
std::string WithReplacements(std::string_view text) {
  std::string replaced;
  while (!text.empty()) {
    const Utf8Character character = FirstUtf8Character(text);
    const bool valid = character.state == Utf8State::kValid;
    replaced += valid ? text.substr(0, character.size_bytes) : kReplacementCharacter;
    text.remove_prefix(valid ? character.size_bytes : 1);
  }
  return replaced;
}

class SentencePieceDifferentialTest : public testing::TestWithParam<Options> {};

TEST_P(SentencePieceDifferentialTest, GivesTheLibrarysIds) {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  std::vector<std::string> replaced;
  for (int i = 0; i < 4000; ++i) {
    texts.push_back(RandomText(random, i % 4 == 0));
    replaced.push_back(WithReplacements(texts.back()));
  }
  const Oracle oracle = AskLibrary(GetParam(), replaced);
  const auto draft = ReadSentencePieceModel(oracle.model, "tokenizer.model");
  ASSERT_TRUE(draft) << draft.error().message();
  const TestTokenizer tokenizer(*draft);
  size_t num_ids = 0;
  size_t num_text_bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<int32_t> ids = tokenizer.Encode(texts[i], {.add_bos = false});
    num_ids += ids.size();
    num_text_bytes += texts[i].size();
    // With byte fallback, our tokenizer keeps invalid bytes; the library does not.
    if (texts[i] == replaced[i] || !draft->rules.byte_fallback) {
      ASSERT_EQ(ids, oracle.ids[i]) << "[" << texts[i] << "]";
    }
  }
  EXPECT_LT(num_ids, num_text_bytes * 3 / 4);
}

// Settings that keep all text.
class SentencePieceRoundTripTest : public testing::TestWithParam<Options> {};

TEST_P(SentencePieceRoundTripTest, TextComesBack) {
  const auto draft = ReadSentencePieceModel(Train(GetParam()), "tokenizer.model");
  ASSERT_TRUE(draft) << draft.error().message();
  const TestTokenizer tokenizer(*draft);
  std::mt19937 random(9);
  for (int round = 0; round < 2000; ++round) {
    const bool invalid = round % 2 == 0;
    const std::string text = RandomText(random, invalid);
    Detokenizer detokenizer(*tokenizer);
    std::string decoded;
    std::string bytes;
    for (const int32_t id : tokenizer.Encode(text, {.add_bos = false})) {
      decoded += detokenizer.Append(id);
      bytes += tokenizer->Piece(id);
    }
    decoded += detokenizer.Flush();
    const bool has_prefix = draft->rules.add_dummy_prefix && !text.empty();
    ASSERT_EQ(bytes, (has_prefix ? " " : "") + WithPlainSpaces(text));
    if (!invalid) {
      ASSERT_EQ(decoded, WithPlainSpaces(text));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SentencePieceDifferentialTest,
    testing::Values(Options{{"byte_fallback", "true"}}, Options{{"byte_fallback", "false"}},
                    Options{{"byte_fallback", "true"}, {"remove_extra_whitespaces", "false"}},
                    Options{{"byte_fallback", "true"},
                            {"remove_extra_whitespaces", "false"},
                            {"add_dummy_prefix", "false"}},
                    Options{{"byte_fallback", "false"}, {"add_dummy_prefix", "false"}},
                    Options{{"byte_fallback", "true"}, {"split_digits", "true"}},
                    Options{{"byte_fallback", "true"},
                            {"remove_extra_whitespaces", "false"},
                            {"split_by_whitespace", "false"}}));

INSTANTIATE_TEST_SUITE_P(Settings, SentencePieceRoundTripTest,
                         testing::Values(Options{{"byte_fallback", "true"},
                                                 {"remove_extra_whitespaces", "false"}},
                                         Options{{"byte_fallback", "true"},
                                                 {"remove_extra_whitespaces", "false"},
                                                 {"add_dummy_prefix", "false"}}));

TEST(SentencePieceModelTest, UserDefinedSymbolsAreReadEverywhere) {
  const std::vector<std::string> texts = {"a<sep>b", "the lamas<sep>then", "a <sep> <sep>lam",
                                          "a lalam"};
  const Oracle oracle =
      AskLibrary({{"byte_fallback", "true"}, {"user_defined_symbols", "<sep>,lam"}}, texts);
  auto draft = ReadSentencePieceModel(oracle.model, "tokenizer.model");
  ASSERT_TRUE(draft);
  draft->rules.dummy_prefix_after_special = false;
  const TestTokenizer tokenizer(*draft);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.Encode(texts[i], {.add_bos = false}), oracle.ids[i]) << texts[i];
  }
}

TEST(SentencePieceModelTest, ReadsTheSpecialTokens) {
  const auto draft = ReadSentencePieceModel(
      Train({{"unk_id", "3"}, {"bos_id", "0"}, {"eos_id", "2"}, {"pad_id", "1"}}), "x.model");
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->rules.unk_token_id, 3);
  EXPECT_EQ(draft->rules.bos_token_id, 0);
  EXPECT_EQ(draft->eos_token_id, 2);
  EXPECT_TRUE(draft->rules.add_bos_token);
  EXPECT_EQ(draft->FindSpecial("</s>"), 2);
  const auto without = ReadSentencePieceModel(Train({{"bos_id", "-1"}, {"eos_id", "-1"}}), "x");
  ASSERT_TRUE(without);
  EXPECT_EQ(without->rules.bos_token_id, -1);
  EXPECT_FALSE(without->rules.add_bos_token);
  EXPECT_EQ(without->eos_token_id, -1);
}

TEST(SentencePieceModelTest, RefusesOtherTypesByName) {
  const auto unigram = ReadSentencePieceModel(Train({{"model_type", "unigram"}}), "x.model");
  ASSERT_FALSE(unigram);
  EXPECT_EQ(unigram.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(unigram.error().message(),
              HasSubstr("x.model: is a SentencePiece model of type unigram"));
  for (const std::string type : {"word", "char"}) {
    const auto draft = ReadSentencePieceModel(Train({{"model_type", type}}), "x.model");
    ASSERT_FALSE(draft);
    EXPECT_THAT(draft.error().message(), HasSubstr(type));
  }
}

TEST(SentencePieceModelTest, RefusesNormalization) {
  const auto draft =
      ReadSentencePieceModel(Train({{"normalization_rule_name", "nmt_nfkc"}}), "x.model");
  ASSERT_FALSE(draft);
  EXPECT_THAT(draft.error().message(), HasSubstr("nmt_nfkc"));
  const auto suffix =
      ReadSentencePieceModel(Train({{"treat_whitespace_as_suffix", "true"}}), "x.model");
  ASSERT_FALSE(suffix);
  EXPECT_THAT(suffix.error().message(), HasSubstr("treat_whitespace_as_suffix"));
}

TEST(SentencePieceModelTest, DamagedFilesAreErrorsNotCrashes) {
  EXPECT_FALSE(ReadSentencePieceModel("", "x.model"));
  EXPECT_FALSE(ReadSentencePieceModel("\x0A\xFF", "x.model"));
  const std::string model = Train({{"byte_fallback", "true"}});
  std::mt19937 random(8);
  int num_refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = model;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    const auto draft = ReadSentencePieceModel(damaged, "x.model");
    if (!draft) {
      EXPECT_THAT(draft.error().message(), HasSubstr("x.model: "));
      ++num_refused;
      continue;
    }
    const auto built = BuildVocabulary(*draft, draft->pieces.size());
    if (built) {
      EXPECT_TRUE(ValidateVocabulary(built->view()));
    }
  }
  EXPECT_GT(num_refused, 500);
}

}  // namespace
}  // namespace cria
