#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "model/checksum.h"

namespace cria {

enum class TokenizerFamily : uint8_t { kSentencePieceBpe, kByteLevelBpe };

// What a piece stands for; SentencePiece's names.
enum class PieceType : uint8_t {
  kNormal,       // Text.
  kUnknown,      // Stands for text that has no piece.
  kControl,      // A special token: text becomes it only if the caller allows that.
  kUserDefined,  // An added token that is always recognized in text.
  kUnused,       // No text becomes this id; its piece may be empty.
  kByte,         // One byte, for byte fallback; its piece is that byte.
};
inline constexpr int kNumPieceTypes = 6;

// Maximum length of a piece, which limits the detokenizer's buffer. The longest one known is 128
// bytes.
inline constexpr size_t kMaxPieceBytes = size_t{1} << 16;

// A rule of byte-pair encoding: a left piece followed by `right` becomes `merged`. The lowest rank
// is applied first, and of equal ranks the leftmost pair. The layout is that of the model file.
struct Merge {
  uint32_t right;
  uint32_t rank;
  uint32_t merged;
};

// How a tokenizer treats text, in addition to its tables. The fields are those of schema/model.fbs.
struct TokenizerRules {
  TokenizerFamily family = TokenizerFamily::kSentencePieceBpe;
  bool normalize_nfc = false;
  bool ignore_merges = false;
  bool add_dummy_prefix = false;
  bool dummy_prefix_after_special = false;
  bool dummy_prefix_unless_space = false;
  bool remove_extra_whitespaces = false;
  bool byte_fallback = false;
  bool add_bos_token = false;
  int32_t bos_token_id = -1;  // -1: there is none.
  int32_t unk_token_id = -1;
  int32_t appended_token_id = -1;  // Comes behind a text that is embedded, not behind a prompt.
  int32_t eos_token_id = -1;  // eos_token in chat templates; other tokens may end an answer, too.
};

// A tokenizer's rules and tables, which are views of memory that others own (a mapped model file,
// or the converter's vectors). The fields are those of schema/model.fbs. Pieces are raw bytes of
// text: SentencePiece's U+2581 is stored as a space, and byte-level alphabets are decoded.
struct Vocabulary : TokenizerRules {
  std::span<const uint8_t> piece_bytes;
  std::span<const uint32_t> piece_offsets;  // [vocab_size + 1]
  std::span<const PieceType> piece_types;   // [vocab_size]
  std::span<const uint32_t> sorted_ids;     // Ids of kNormal pieces, sorted by their bytes.
  std::span<const uint32_t> merge_offsets;  // [vocab_size + 1]
  std::span<const Merge> merges;
  std::vector<std::string_view> split_patterns;
  // Sorted ids of kControl and kUserDefined tokens that take the white space after them, which
  // becomes no token of its own.
  std::span<const uint32_t> rstrip_ids;

  size_t size() const { return piece_types.size(); }
  // The bytes of a piece. `id` must be below size().
  std::string_view piece(size_t id) const {
    return {reinterpret_cast<const char*>(piece_bytes.data()) + piece_offsets[id],
            piece_offsets[id + 1] - piece_offsets[id]};
  }
};

// Checks every offset, id and order that the tokenizer relies on, so that it need not check again.
// An error names the table and the index. Takes time linear in the size of the tables.
Status ValidateVocabulary(const Vocabulary& vocabulary);

// Identifies what the ids mean: the pieces and their types.
Digest DigestOfPieces(const Vocabulary& vocabulary);

}  // namespace cria
