#pragma once

#include <span>
#include <string_view>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// A piece of SentencePiece's vocabularies, as files write it: U+2581 for a space, bytes as <0x0A>.
struct ScoredPiece {
  std::string_view text;
  float score = 0.0f;  // Of kNormal pieces; the highest merges first.
  PieceType type = PieceType::kNormal;
};

// The pieces, in the order of their ids, and the merges that their scores mean. `where` begins
// error sentences. Bounded, because merges grow with the square of a piece's length: 1,024 bytes a
// piece of text, and 16 MiB all of them.
Result<VocabularyDraft> DraftOfScoredPieces(std::span<const ScoredPiece> pieces,
                                            std::string_view where);

}  // namespace cria
