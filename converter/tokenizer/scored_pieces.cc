#include "converter/tokenizer/scored_pieces.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "converter/tokenizer/piece_text.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

Status AddPiece(const ScoredPiece& piece, uint32_t id, std::string_view where,
                VocabularyDraft* draft) {
  switch (piece.type) {
    case PieceType::kNormal:
    case PieceType::kUserDefined:
      draft->SetPiece(id, WithPlainSpaces(piece.text), piece.type);
      return {};
    case PieceType::kUnknown:
      // As in Hugging Face's libraries and llama.cpp, its name in a text becomes this token.
      draft->rules.unk_token_id = static_cast<int32_t>(id);
      draft->SetPiece(id, std::string(piece.text), PieceType::kControl);
      return {};
    case PieceType::kByte: {
      const auto byte = ByteOfPieceName(piece.text);
      if (byte) {
        draft->SetPiece(id, std::string(1, static_cast<char>(*byte)), piece.type);
        return {};
      }
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: the byte piece \"{}\" is not written as <0xNN>; the file may be a "
                         "damaged copy",
                         where, Quotable(piece.text)));
    }
    case PieceType::kControl:
    case PieceType::kUnused:
      break;
  }
  draft->SetPiece(id, std::string(piece.text), piece.type);
  return {};
}

// Higher scores merge first; equal scores have equal ranks, and then the leftmost pair merges
// first.
std::vector<uint32_t> RanksOfScores(std::span<const ScoredPiece> pieces) {
  std::vector<float> scores;
  for (const ScoredPiece& piece : pieces) {
    if (piece.type == PieceType::kNormal) scores.push_back(piece.score);
  }
  std::ranges::sort(scores, std::greater());
  const auto repeated = std::ranges::unique(scores);
  scores.erase(repeated.begin(), repeated.end());
  std::vector<uint32_t> ranks;
  for (const ScoredPiece& piece : pieces) {
    const auto rank = std::ranges::lower_bound(scores, piece.score, std::greater());
    ranks.push_back(static_cast<uint32_t>(rank - scores.begin()));
  }
  return ranks;
}

}  // namespace

Result<VocabularyDraft> DraftOfScoredPieces(std::span<const ScoredPiece> pieces,
                                            std::string_view where) {
  if (pieces.empty()) {
    return Fail(ErrorCode::kUnsupported, Format("{}: has no pieces", where));
  }
  if (pieces.size() > kMaxDraftPieces) {
    return Fail(ErrorCode::kUnsupported, Format("{}: has {} pieces; at most {} are supported",
                                                where, pieces.size(), kMaxDraftPieces));
  }
  VocabularyDraft draft;
  draft.rules.family = TokenizerFamily::kSentencePieceBpe;
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type == PieceType::kNormal && !std::isfinite(pieces[id].score)) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: the score of piece {} is not a number", where, id));
    }
    CRIA_RETURN_IF_ERROR(AddPiece(pieces[id], id, where, &draft));
  }
  CRIA_RETURN_IF_ERROR(draft.AddMergesOfAllSplits(RanksOfScores(pieces), where));
  return draft;
}

}  // namespace cria
