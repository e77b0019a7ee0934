#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "converter/tokenizer/vocabulary_builder.h"
#include "text/tokenizer.h"

namespace cria {

inline constexpr int32_t kUnk = 0;
inline constexpr int32_t kBos = 1;
inline constexpr int32_t kEos = 2;
inline constexpr int32_t kFirstByte = 3;
inline constexpr int32_t kFirstText = kFirstByte + 256;

// <unk>, <s>, </s>, 256 bytes of fallback, then `pieces`, of which earlier ones merge first.
inline VocabularyDraft SentencePieceDraft(std::initializer_list<std::string_view> pieces) {
  VocabularyDraft draft;
  draft.rules = {.family = TokenizerFamily::kSentencePieceBpe,
                 .add_dummy_prefix = true,
                 .dummy_prefix_after_special = true,
                 .byte_fallback = true,
                 .add_bos_token = true,
                 .bos_token_id = kBos,
                 .unk_token_id = kUnk};
  draft.SetPiece(kUnk, "<unk>", PieceType::kUnknown);
  draft.SetPiece(kBos, "<s>", PieceType::kControl);
  draft.SetPiece(kEos, "</s>", PieceType::kControl);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    draft.SetPiece(kFirstByte + byte, std::string(1, static_cast<char>(byte)), PieceType::kByte);
  }
  for (const std::string_view piece : pieces) {
    draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), std::string(piece),
                   PieceType::kNormal);
  }
  std::vector<uint32_t> ranks(draft.pieces.size());
  for (uint32_t id = 0; id < ranks.size(); ++id) ranks[id] = id;
  EXPECT_TRUE(draft.AddMergesOfAllSplits(ranks, "the draft"));
  return draft;
}

// 256 bytes, whose ids are their values, then `pieces`, of which earlier ones merge first, then <s>
// and </s>. Words are letters with or without a space before them, white space, and the rest.
inline VocabularyDraft ByteLevelDraft(std::initializer_list<std::string_view> pieces) {
  VocabularyDraft draft;
  draft.rules.family = TokenizerFamily::kByteLevelBpe;
  draft.split_patterns = {R"( ?\p{L}+|\s+)"};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    draft.SetPiece(byte, std::string(1, static_cast<char>(byte)), PieceType::kNormal);
  }
  for (const std::string_view piece : pieces) {
    draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), std::string(piece),
                   PieceType::kNormal);
  }
  std::vector<uint32_t> ranks(draft.pieces.size());
  for (uint32_t id = 0; id < ranks.size(); ++id) ranks[id] = id;
  EXPECT_TRUE(draft.AddMergesOfAllSplits(ranks, "the draft"));
  draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), "<s>", PieceType::kControl);
  draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), "</s>", PieceType::kControl);
  return draft;
}

// A tokenizer and its tables.
class TestTokenizer {
 public:
  explicit TestTokenizer(const VocabularyDraft& draft) {
    auto built = BuildVocabulary(draft, draft.pieces.size());
    if (!built) {
      ADD_FAILURE() << built.error().message();
      return;
    }
    vocabulary_ = *std::move(built);
    auto created = Tokenizer::Create(vocabulary_.view());
    if (!created) {
      ADD_FAILURE() << created.error().message();
      return;
    }
    tokenizer_.emplace(*std::move(created));
  }

  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return &*tokenizer_; }

  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const {
    auto ids = tokenizer_->Encode(text, options);
    if (!ids) {
      ADD_FAILURE() << ids.error().message();
      return {};
    }
    return *std::move(ids);
  }

  // The pieces of the ids, with | between.
  std::string Pieces(const std::vector<int32_t>& ids) const {
    std::string pieces;
    for (const int32_t id : ids) {
      if (!pieces.empty()) pieces += '|';
      pieces += tokenizer_->Piece(id);
    }
    return pieces;
  }

 private:
  OwnedVocabulary vocabulary_;
  std::optional<Tokenizer> tokenizer_;
};

// Text of mixed scripts and white space; with `invalid`, also of bytes that are not UTF-8.
inline std::string RandomText(std::mt19937& random, bool invalid) {
  static constexpr std::string_view kParts[] = {
      "a",  "b",     "the",          "lama", " ",  " ",           "  ",   "\n", "\t",     "Hello",
      "é",  "ß",     "日本",         "語",   "😀", "👩‍🚀", "0",    "12", "3456",   ".",
      ", ", "don't", "\xE2\x96\x81", "ﬀ",    "Ω",  "нет",         "\r\n", "_",  "\u00A0", "<s>"};
  static constexpr std::string_view kInvalidParts[] = {
      "\xFF", "\xC3", "\xE2\x82", "\x80", "\xF0\x9F\x98", "\xED\xA0\x80", "\xC0\xAF"};
  std::string text;
  const size_t num_parts = random() % 24;
  for (size_t i = 0; i < num_parts; ++i) {
    if (invalid && random() % 4 == 0) {
      text += kInvalidParts[random() % std::size(kInvalidParts)];
    } else {
      text += kParts[random() % std::size(kParts)];
    }
  }
  return text;
}

}  // namespace cria
