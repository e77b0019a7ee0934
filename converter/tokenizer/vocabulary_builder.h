#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/tokenizer/piece_text.h"
#include "cria/error.h"
#include "model/vocabulary.h"

namespace cria {

// A vocabulary that owns its tables.
struct OwnedVocabulary {
  TokenizerRules rules;
  std::vector<std::string> split_patterns;
  std::vector<uint8_t> piece_bytes;
  std::vector<uint32_t> piece_offsets;
  std::vector<PieceType> piece_types;
  std::vector<uint32_t> sorted_ids;
  std::vector<uint32_t> merge_offsets;
  std::vector<Merge> merges;
  std::vector<uint32_t> rstrip_ids;

  // Valid as long as this object exists and is not changed.
  Vocabulary view() const;
};

// A piece in Vocabulary's form: raw bytes of text.
struct DraftPiece {
  std::string bytes;
  PieceType type = PieceType::kUnused;
  bool rstrip = false;
};

struct DraftMerge {
  uint32_t left;
  uint32_t right;
  uint32_t merged;
  uint32_t rank;
};

// A token that a checkpoint's files add to the tokenizer's model, or describe.
struct AddedToken {
  uint32_t id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;  // It is searched for in normalized text.
  bool rstrip = false;      // It takes the white space after it.
};

// The result of reading a tokenizer file; BuildVocabulary turns it into tables.
class VocabularyDraft {
 public:
  TokenizerRules rules;
  std::vector<std::string> split_patterns;
  std::vector<DraftPiece> pieces;  // By id.
  std::vector<DraftMerge> merges;
  bool marks_may_be_text = false;  // See MakeMarksSpecial.
  int32_t eos_token_id = -1;       // From the tokenizer's own file; `rules` has the final one.

  // Sets a piece; ids between the last piece and this one become kUnused.
  void SetPiece(uint32_t id, std::string bytes, PieceType type);

  // Makes a special token a control token and another one user-defined. The id may be one of the
  // model's pieces or a new one; fails if it is already another text. `where` begins the sentence.
  Status AddToken(const AddedToken& token, std::string_view where);

  // The id of the special token (kControl or kUserDefined) with this text, or -1.
  int32_t FindSpecial(std::string_view content) const;

  // Adds a merge for every way to split a piece of text into two, with the piece's rank: the rules
  // of tokenizers that look up neighbouring pieces joined together. Only ranks of kNormal pieces
  // are used. Such a piece may have at most 1,024 bytes, and all together 16 MiB, because the time
  // grows with the square of a piece's length. `where` begins the sentence.
  Status AddMergesOfAllSplits(std::span<const uint32_t> rank_by_id, std::string_view where);
};

// Maximum number of ids in a tokenizer file; limits the memory for it.
inline constexpr uint32_t kMaxDraftPieces = 1u << 22;

// Makes the tables, with unused ids up to `vocab_size`, the rows of the checkpoint's embedding. Of
// equal pieces, text only becomes the first.
Result<OwnedVocabulary> BuildVocabulary(const VocabularyDraft& draft, size_t vocab_size);

}  // namespace cria
