#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria {

enum class TokenizerFamily : uint8_t { kSentencePieceBpe, kByteLevelBpe };

// What a piece stands for; SentencePiece's names.
enum class PieceType : uint8_t {
  kNormal,       // Text.
  kUnknown,      // Stands for text that has no piece.
  kControl,      // A special token: never made from text unless the caller allows it.
  kUserDefined,  // An added token that is always recognized in text.
  kUnused,       // An id that text never becomes; its piece may be empty.
  kByte,         // One byte of fallback; its piece is that byte itself.
};
inline constexpr int kNumPieceTypes = 6;

// The longest piece a vocabulary may have, which bounds the buffer that token ids are turned back
// into text in. The longest one known is 128 bytes.
inline constexpr size_t kMaxPieceBytes = size_t{1} << 16;

// A rule of byte-pair encoding: a left piece followed by `right` becomes `merged`; the lowest rank
// goes first, and of equal ranks the leftmost. Laid out as in the model file.
struct Merge {
  uint32_t right;
  uint32_t rank;
  uint32_t merged;
};

// A tokenizer's tables and rules, pointing into memory that somebody else keeps (a mapped model
// file, or the converter's vectors). Fields as in schema/model.fbs. Pieces are raw bytes of text:
// SentencePiece's U+2581 is a space here, and byte-level alphabets are decoded.
struct Vocabulary {
  TokenizerFamily family = TokenizerFamily::kSentencePieceBpe;
  std::span<const uint8_t> piece_bytes;
  std::span<const uint32_t> piece_offsets;  // [vocab_size + 1]
  std::span<const PieceType> piece_types;   // [vocab_size]
  std::span<const uint32_t> sorted_ids;     // Ids of kNormal pieces in the order of their bytes.
  std::span<const uint32_t> merge_offsets;  // [vocab_size + 1]
  std::span<const Merge> merges;
  std::vector<std::string_view> split_patterns;
  bool normalize_nfc = false;
  bool ignore_merges = false;
  bool add_dummy_prefix = false;
  bool dummy_prefix_after_special = false;
  bool remove_extra_whitespaces = false;
  bool byte_fallback = false;
  bool add_bos_token = false;
  int32_t bos_token_id = -1;  // -1: there is none.
  int32_t unk_token_id = -1;
  int32_t eos_token_id =
      -1;  // What chat templates write as eos_token; not all that ends an answer.

  size_t size() const { return piece_types.size(); }
  // The bytes of a piece. `id` must be below size().
  std::string_view piece(size_t id) const {
    return {reinterpret_cast<const char*>(piece_bytes.data()) + piece_offsets[id],
            piece_offsets[id + 1] - piece_offsets[id]};
  }
};

// Checks that every offset, id and order in the tables is what the tokenizer relies on, so that it
// need not check again. An error names the table and the index. Linear in the size of the tables.
Status ValidateVocabulary(const Vocabulary& vocabulary);

}  // namespace cria
