#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "model/vocabulary.h"
#include "text/special_token_finder.h"
#include "text/split_patterns.h"

namespace cria {

struct EncodeOptions {
  // Whether the ids begin with the token for the beginning of a text; unset: as the vocabulary
  // says. It is never put before one that the text itself begins with.
  std::optional<bool> add_bos;
  // Whether control tokens are recognized where they are written out. Never set it for text that
  // comes from somebody else. Tokens of type kUserDefined are always recognized.
  bool parse_special = false;
};

// A part of one text, see Tokenizer::EncodeSegments.
struct TextSegment {
  std::string_view text;
  bool parse_special = false;
};

// Turns text into token ids. Both families differ only in what goes into BytePairMerger:
// - SentencePiece: the whole text, spaces normalized, as characters. A character without a piece
//   becomes the tokens of its bytes, or the unknown token (once for several such in a row).
// - byte-level: words cut out by the split patterns, as bytes.
// With normalize_nfc, text between special tokens is put into normalization form C first.
// Text that is not UTF-8 is never refused or altered: SentencePiece vocabularies treat each wrong
// byte as a character without a piece, byte-level ones as a byte like any other; normalizing works
// on what lies between.
class Tokenizer {
 public:
  // `vocabulary` must be valid (ValidateVocabulary); its tables must outlive the tokenizer.
  static Result<Tokenizer> Create(const Vocabulary& vocabulary);

  // These may be called from several threads at once. They take memory in proportion to the text.
  Result<std::vector<int32_t>> Encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;
  // Encodes the segments as one text, but looks for special tokens in each by itself, so that what
  // one segment may not say cannot come about by joining it with another.
  Result<std::vector<int32_t>> EncodeSegments(std::span<const TextSegment> segments,
                                              std::optional<bool> add_bos) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  size_t vocab_size() const { return vocabulary_.size(); }
  // The bytes of a token, which need not be whole characters; empty of an id that does not exist.
  std::string_view Piece(int32_t id) const;
  size_t longest_piece_bytes() const { return longest_piece_bytes_; }

 private:
  class Encoding;

  explicit Tokenizer(const Vocabulary& vocabulary);

  // The text piece of exactly these bytes, or -1.
  int32_t FindPiece(std::string_view bytes) const;
  void IndexPieces();

  Status EncodeText(bool before_user_defined, Encoding* encoding) const;
  Status EncodeSentence(std::string_view text, Encoding* encoding) const;
  Status EncodeWords(std::string_view text, Encoding* encoding) const;
  Status PushUnknown(std::string_view character, Encoding* encoding) const;

  Vocabulary vocabulary_;
  SplitPatterns split_patterns_;
  SpecialTokenFinder user_defined_tokens_;
  SpecialTokenFinder special_tokens_;           // kUserDefined and kControl.
  std::array<int32_t, 256> text_byte_ids_;      // kNormal pieces of one byte, or -1.
  std::array<int32_t, 256> fallback_byte_ids_;  // kByte pieces, or -1.
  std::array<uint32_t, 257> first_byte_{};      // Of sorted_ids, by the first byte of the piece.
  size_t longest_piece_bytes_ = 0;
  // No piece goes on with a space after something else, so that nothing merges across that place.
  bool spaces_begin_words_ = true;
};

}  // namespace cria
