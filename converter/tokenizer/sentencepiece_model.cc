#include "converter/tokenizer/sentencepiece_model.h"

#include <sentencepiece_model.pb.h>

#include <string>
#include <vector>

#include "converter/tokenizer/scored_pieces.h"
#include "core/format.h"
#include "core/quotable.h"

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
    return Fail(ErrorCode::kUnsupported, Format("{}: {}", where, what));
  };
  const Trainer& trainer = model.trainer();
  if (trainer.model_type() != Trainer::BPE) {
    return unsupported(Format("is a SentencePiece model of type {}; only BPE is supported",
                              NameOf(trainer.model_type())));
  }
  if (trainer.treat_whitespace_as_suffix()) {
    return unsupported("treat_whitespace_as_suffix is set, which is not supported");
  }
  if (!model.normalizer().precompiled_charsmap().empty()) {
    return unsupported(
        Format("normalizes text by the rules \"{}\"; only \"identity\", which Llama models use, is "
               "supported",
               Quotable(model.normalizer().name())));
  }
  if (!model.normalizer().escape_whitespaces()) {
    return unsupported("escape_whitespaces is off, which is not supported");
  }
  if (!model.denormalizer().precompiled_charsmap().empty()) {
    return unsupported("has rules for denormalizing text, which are not supported");
  }
  return {};
}

Result<ScoredPiece> ReadPiece(const Piece& piece, int id, std::string_view where) {
  ScoredPiece read = {.text = piece.piece(), .score = piece.score()};
  switch (piece.type()) {
    case Piece::NORMAL:
      return read;
    case Piece::USER_DEFINED:
      read.type = PieceType::kUserDefined;
      return read;
    case Piece::UNKNOWN:
      read.type = PieceType::kUnknown;
      return read;
    case Piece::CONTROL:
      read.type = PieceType::kControl;
      return read;
    case Piece::BYTE:
      read.type = PieceType::kByte;
      return read;
    case Piece::UNUSED:
      break;
  }
  return Fail(ErrorCode::kUnsupported,
              Format("{}: piece {}, \"{}\", is marked as unused: restricted vocabularies are "
                     "not supported",
                     where, id, Quotable(piece.piece())));
}

// The trainer's id if it is that of a control piece, otherwise -1.
int32_t ControlId(const VocabularyDraft& draft, int32_t id) {
  if (id < 0 || static_cast<size_t>(id) >= draft.pieces.size()) return -1;
  return draft.pieces[static_cast<size_t>(id)].type == PieceType::kControl ? id : -1;
}

}  // namespace

// Checks the tag byte of the first field, which is the first piece's message or the trainer's; no
// text begins with these bytes.
bool IsSentencePieceModel(std::string_view file) {
  return !file.empty() && (file[0] == 0x0A || file[0] == 0x12);
}

Result<VocabularyDraft> ReadSentencePieceModel(std::string_view file, std::string_view where) {
  Model model;
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: is damaged or not a SentencePiece model", where));
  }
  CRIA_RETURN_IF_ERROR(CheckSupported(model, where));

  std::vector<ScoredPiece> pieces;
  for (const Piece& piece : model.pieces()) {
    CRIA_ASSIGN_OR_RETURN(const ScoredPiece read,
                          ReadPiece(piece, static_cast<int>(pieces.size()), where));
    pieces.push_back(read);
  }
  CRIA_ASSIGN_OR_RETURN(VocabularyDraft draft, DraftOfScoredPieces(pieces, where));
  TokenizerRules& rules = draft.rules;
  rules.byte_fallback = model.trainer().byte_fallback();
  rules.add_dummy_prefix = model.normalizer().add_dummy_prefix();
  rules.dummy_prefix_after_special = rules.add_dummy_prefix;
  rules.remove_extra_whitespaces = model.normalizer().remove_extra_whitespaces();
  rules.bos_token_id = ControlId(draft, model.trainer().bos_id());
  rules.add_bos_token = rules.bos_token_id >= 0;
  draft.eos_token_id = ControlId(draft, model.trainer().eos_id());
  return draft;
}

}  // namespace cria
