#pragma once

#include <span>
#include <string_view>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// A piece of SentencePiece's vocabularies, as files write it: U+2581 for a space, bytes as <0x0A>.
struct ScoredPiece {
  std::string_view text;
  float score = 0.0f;  // For kNormal pieces; the highest score merges first.
  PieceType type = PieceType::kNormal;
};

// The pieces, in the order of their ids, and the merges that follow from their scores. `where`
// begins error sentences.
Result<VocabularyDraft> DraftOfScoredPieces(std::span<const ScoredPiece> pieces,
                                            std::string_view where);

}  // namespace cria
