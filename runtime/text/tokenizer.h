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
  // Whether the ids begin with the BOS token; unset: as the vocabulary says. It is not added if the
  // text itself begins with it.
  std::optional<bool> add_bos;
  // Whether the names of control tokens in the text become these tokens. Do not set it for text
  // from others. Tokens of type kUserDefined are always recognized.
  bool parse_special = false;
  // Encoding fails with kOutOfRange as soon as it is certain that the text has more tokens. A text
  // that is far too long is refused before it takes any memory.
  size_t max_tokens = SIZE_MAX;
};

// A part of one text; see Tokenizer::EncodeSegments.
struct TextSegment {
  std::string_view text;
  bool parse_special = false;
};

// Turns text into token ids. The two families differ only in the input of BytePairMerger:
// - SentencePiece: the characters of the whole text, with spaces normalized. A character without a
//   piece becomes the tokens of its bytes, or the unknown token (one for several such characters in
//   a row).
// - byte-level: the bytes of words, which the split patterns find.
// What has no token in a vocabulary without an unknown token is left out, and what is around it is
// merged as neighbours, as Hugging Face's tokenizers do.
// With normalize_nfc, text between special tokens is put into normalization form C first.
// Text that is not UTF-8 is neither refused nor changed: SentencePiece vocabularies treat each
// invalid byte as a character without a piece, byte-level ones like any other byte. Normalization
// applies to the valid parts between.
class Tokenizer {
 public:
  // `vocabulary` must be valid (ValidateVocabulary); its tables must outlive the tokenizer.
  static Result<Tokenizer> Create(const Vocabulary& vocabulary);

  // Both may be called from several threads at once. They take memory in proportion to the text.
  Result<std::vector<int32_t>> Encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;
  // Encodes the segments as one text, but looks for special tokens in each segment separately, so
  // that two joined segments never form a special token.
  Result<std::vector<int32_t>> EncodeSegments(std::span<const TextSegment> segments,
                                              std::optional<bool> add_bos,
                                              size_t max_tokens = SIZE_MAX) const;

  // The characters of `text`, or bytes that are not part of one, that Encode leaves out because the
  // vocabulary has no tokens for them; each once, in the order of the text, and at most
  // kMaxLeftOut.
  static constexpr size_t kMaxLeftOut = 8;
  std::vector<std::string> LeftOut(std::string_view text) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  size_t vocab_size() const { return vocabulary_.size(); }
  // The bytes of a token, which may be part of a character; empty if the id does not exist.
  std::string_view Piece(int32_t id) const;
  size_t longest_piece_bytes() const { return longest_piece_bytes_; }

 private:
  class Encoding;

  explicit Tokenizer(const Vocabulary& vocabulary);

  // The id of the text piece with exactly these bytes, or -1.
  int32_t FindPiece(std::string_view bytes) const;
  void IndexPieces();

  // A lower bound of the number of tokens of these bytes, whatever text is before and after them.
  size_t MinTokens(std::string_view text) const;
  // If `encoding` has more ids than this before those from `begin` on are merged, it has more than
  // max_tokens after that.
  size_t MaxUnmerged(const Encoding& encoding, size_t begin) const;

  Status EncodeInto(std::span<const TextSegment> segments, Encoding* encoding) const;
  Status EncodeText(bool before_user_defined, Encoding* encoding) const;
  Status EncodeSentence(std::string_view text, Encoding* encoding) const;
  Status EncodeWord(std::string_view word, Encoding* encoding) const;
  void PushUnknown(std::string_view character, Encoding* encoding) const;

  Vocabulary vocabulary_;
  SplitPatterns split_patterns_;
  SpecialTokenFinder user_defined_tokens_;
  SpecialTokenFinder special_tokens_;           // kUserDefined and kControl.
  std::array<int32_t, 256> text_byte_ids_;      // kNormal pieces of one byte, or -1.
  std::array<int32_t, 256> fallback_byte_ids_;  // kByte pieces, or -1.
  std::array<uint32_t, 257> first_byte_{};  // Ranges of sorted_ids by the first byte of the piece.
  size_t longest_piece_bytes_ = 1;          // 1 even if all pieces are empty.
  bool expresses_every_byte_ = true;        // By text pieces or, in SentencePiece's, byte pieces.
  // No piece has a space after another character, so that nothing merges across such a place.
  bool spaces_begin_words_ = true;
};

}  // namespace cria
