#include "converter/sentencepiece_model.h"

#include <sentencepiece_model.pb.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "converter/piece_text.h"

namespace cria {
namespace {

using sentencepiece::Model;
using sentencepiece::Piece;
using sentencepiece::Trainer;

std::string_view NameOf(Trainer::ModelType type) {
  switch (type) {
    case Trainer::UNIGRAM:
      return "unigram";
    case Trainer::BPE:
      return "BPE";
    case Trainer::WORD:
      return "word";
    case Trainer::CHAR:
      return "char";
  }
  return "unknown";
}

Status CheckSupported(const Model& model, std::string_view where) {
  const auto unsupported = [&](const std::string& what) {
    return Fail(ErrorCode::kUnsupported, std::format("{}: {}", where, what));
  };
  const Trainer& trainer = model.trainer();
  if (trainer.model_type() != Trainer::BPE) {
    return unsupported(std::format("is a SentencePiece model of type {}; only BPE is supported",
                                   NameOf(trainer.model_type())));
  }
  if (trainer.treat_whitespace_as_suffix()) {
    return unsupported("treat_whitespace_as_suffix is set, which is not supported");
  }
  if (!model.normalizer().precompiled_charsmap().empty()) {
    return unsupported(std::format(
        "normalizes text by the rules \"{}\"; only \"identity\", which Llama models use, is "
        "supported",
        model.normalizer().name()));
  }
  if (!model.normalizer().escape_whitespaces()) {
    return unsupported("escape_whitespaces is off, which is not supported");
  }
  if (!model.denormalizer().precompiled_charsmap().empty()) {
    return unsupported("has rules for denormalizing text, which are not supported");
  }
  if (model.pieces_size() == 0) return unsupported("has no pieces");
  if (static_cast<uint32_t>(model.pieces_size()) > kMaxDraftPieces) {
    return unsupported(std::format("has {} pieces; at most {} are supported", model.pieces_size(),
                                   kMaxDraftPieces));
  }
  return {};
}

Status AddPiece(const Piece& piece, std::string_view where, VocabularyDraft* draft) {
  const auto id = static_cast<uint32_t>(draft->pieces.size());
  const auto add = [&](std::string bytes, PieceType type) {
    draft->SetPiece(id, std::move(bytes), type);
    return Status();
  };
  switch (piece.type()) {
    case Piece::NORMAL:
      if (!std::isfinite(piece.score())) {
        return Fail(ErrorCode::kInvalidFile,
                    std::format("{}: the score of piece {} is not a number", where, id));
      }
      return add(WithPlainSpaces(piece.piece()), PieceType::kNormal);
    case Piece::USER_DEFINED:
      return add(WithPlainSpaces(piece.piece()), PieceType::kUserDefined);
    case Piece::UNKNOWN:
      draft->rules.unk_token_id = static_cast<int32_t>(id);
      return add(piece.piece(), PieceType::kUnknown);
    case Piece::CONTROL:
      return add(piece.piece(), PieceType::kControl);
    case Piece::BYTE: {
      const auto byte = ByteOfPieceName(piece.piece());
      if (byte) return add(std::string(1, static_cast<char>(*byte)), PieceType::kByte);
      return Fail(
          ErrorCode::kInvalidFile,
          std::format("{}: the byte piece \"{}\" is not written as <0xNN>; the file may be a "
                      "damaged copy",
                      where, piece.piece()));
    }
    case Piece::UNUSED:
      break;
  }
  return Fail(ErrorCode::kUnsupported,
              std::format("{}: piece {}, \"{}\", is marked as unused: restricted vocabularies are "
                          "not supported",
                          where, id, piece.piece()));
}

// Higher scores merge first; equal scores have equal ranks, of which the leftmost pair goes first.
std::vector<uint32_t> RanksOfScores(const Model& model) {
  std::vector<float> scores;
  for (const Piece& piece : model.pieces()) {
    if (piece.type() == Piece::NORMAL) scores.push_back(piece.score());
  }
  std::ranges::sort(scores, std::greater());
  const auto repeated = std::ranges::unique(scores);
  scores.erase(repeated.begin(), repeated.end());
  std::vector<uint32_t> ranks;
  for (const Piece& piece : model.pieces()) {
    const auto rank = std::ranges::lower_bound(scores, piece.score(), std::greater());
    ranks.push_back(static_cast<uint32_t>(rank - scores.begin()));
  }
  return ranks;
}

// -1 unless the trainer's id names a control piece.
int32_t ControlId(const VocabularyDraft& draft, int32_t id) {
  if (id < 0 || static_cast<size_t>(id) >= draft.pieces.size()) return -1;
  return draft.pieces[static_cast<size_t>(id)].type == PieceType::kControl ? id : -1;
}

}  // namespace

// The first field of the first piece's message, or the trainer's: a tag byte that no text begins
// with.
bool IsSentencePieceModel(std::string_view file) {
  return !file.empty() && (file[0] == 0x0A || file[0] == 0x12);
}

Result<VocabularyDraft> ReadSentencePieceModel(std::string_view file, std::string_view where) {
  Model model;
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    return Fail(ErrorCode::kInvalidFile,
                std::format("{}: is damaged or not a SentencePiece model", where));
  }
  CRIA_RETURN_IF_ERROR(CheckSupported(model, where));

  VocabularyDraft draft;
  TokenizerRules& rules = draft.rules;
  rules.family = TokenizerFamily::kSentencePieceBpe;
  rules.byte_fallback = model.trainer().byte_fallback();
  rules.add_dummy_prefix = model.normalizer().add_dummy_prefix();
  rules.dummy_prefix_after_special = rules.add_dummy_prefix;
  rules.remove_extra_whitespaces = model.normalizer().remove_extra_whitespaces();
  for (const Piece& piece : model.pieces()) CRIA_RETURN_IF_ERROR(AddPiece(piece, where, &draft));
  draft.AddMergesOfAllSplits(RanksOfScores(model));
  rules.bos_token_id = ControlId(draft, model.trainer().bos_id());
  rules.add_bos_token = rules.bos_token_id >= 0;
  draft.eos_token_id = ControlId(draft, model.trainer().eos_id());
  return draft;
}

}  // namespace cria
