#include "converter/tokenizer/vocabulary_builder.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

bool IsSpecial(PieceType type) {
  return type == PieceType::kControl || type == PieceType::kUserDefined;
}

// Whether the draft's piece is the same as an added token's content. In SentencePiece's pieces,
// U+2581 was replaced by a space, and byte pieces have the byte instead of its name.
bool IsWritten(const DraftPiece& piece, TokenizerFamily family, std::string_view content) {
  if (piece.type == PieceType::kByte) {
    return content == BytePieceName(static_cast<uint8_t>(piece.bytes[0]));
  }
  if (piece.bytes == content) return true;
  return family == TokenizerFamily::kSentencePieceBpe && piece.bytes == WithPlainSpaces(content);
}

Status AddPieces(const VocabularyDraft& draft, size_t vocab_size, OwnedVocabulary* vocabulary) {
  vocabulary->piece_offsets.push_back(0);
  for (const DraftPiece& piece : draft.pieces) {
    const size_t end = vocabulary->piece_bytes.size() + piece.bytes.size();
    if (piece.bytes.size() > kMaxPieceBytes || end > std::numeric_limits<uint32_t>::max()) {
      return Fail(ErrorCode::kUnsupported,
                  Format("The tokenizer's token {} has {} bytes; at most {} are supported",
                         vocabulary->piece_types.size(), piece.bytes.size(), kMaxPieceBytes));
    }
    vocabulary->piece_bytes.insert(vocabulary->piece_bytes.end(), piece.bytes.begin(),
                                   piece.bytes.end());
    vocabulary->piece_offsets.push_back(static_cast<uint32_t>(end));
    // Text never becomes an empty piece.
    const bool is_empty_text = piece.type == PieceType::kNormal && piece.bytes.empty();
    vocabulary->piece_types.push_back(is_empty_text ? PieceType::kUnused : piece.type);
  }
  vocabulary->piece_offsets.resize(vocab_size + 1, vocabulary->piece_offsets.back());
  vocabulary->piece_types.resize(vocab_size, PieceType::kUnused);
  return {};
}

void SortTextPieces(OwnedVocabulary* vocabulary) {
  const Vocabulary view = vocabulary->view();
  const auto piece = [&view](uint32_t id) { return view.piece(id); };
  std::vector<uint32_t>& ids = vocabulary->sorted_ids;
  for (uint32_t id = 0; id < view.size(); ++id) {
    if (view.piece_types[id] == PieceType::kNormal) ids.push_back(id);
  }
  std::ranges::stable_sort(ids, {}, piece);
  const auto repeated = std::ranges::unique(ids, {}, piece);
  ids.erase(repeated.begin(), repeated.end());
}

void AddMerges(const VocabularyDraft& draft, OwnedVocabulary* vocabulary) {
  std::vector<DraftMerge> merges = draft.merges;
  // Text must never become a control token by merging.
  std::erase_if(merges, [&](const DraftMerge& merge) {
    const PieceType type = vocabulary->piece_types[merge.merged];
    return type != PieceType::kNormal && type != PieceType::kUserDefined;
  });
  const auto pair_of = [](const DraftMerge& merge) { return std::pair(merge.left, merge.right); };
  std::ranges::sort(merges, {}, [](const DraftMerge& merge) {
    return std::tuple(merge.left, merge.right, merge.rank);
  });
  const auto repeated = std::ranges::unique(merges, {}, pair_of);
  merges.erase(repeated.begin(), repeated.end());

  vocabulary->merge_offsets.assign(vocabulary->piece_types.size() + 1, 0);
  for (const DraftMerge& merge : merges) {
    ++vocabulary->merge_offsets[merge.left + size_t{1}];
    vocabulary->merges.push_back({merge.right, merge.rank, merge.merged});
  }
  for (size_t id = 0; id < vocabulary->piece_types.size(); ++id) {
    vocabulary->merge_offsets[id + 1] += vocabulary->merge_offsets[id];
  }
}

}  // namespace

Vocabulary OwnedVocabulary::view() const {
  Vocabulary vocabulary;
  static_cast<TokenizerRules&>(vocabulary) = rules;
  vocabulary.piece_bytes = piece_bytes;
  vocabulary.piece_offsets = piece_offsets;
  vocabulary.piece_types = piece_types;
  vocabulary.sorted_ids = sorted_ids;
  vocabulary.merge_offsets = merge_offsets;
  vocabulary.merges = merges;
  vocabulary.rstrip_ids = rstrip_ids;
  vocabulary.split_patterns.assign(split_patterns.begin(), split_patterns.end());
  return vocabulary;
}

void VocabularyDraft::SetPiece(uint32_t id, std::string bytes, PieceType type) {
  if (pieces.size() <= id) pieces.resize(size_t{id} + 1);
  pieces[id] = {.bytes = std::move(bytes), .type = type};
}

Status VocabularyDraft::AddToken(const AddedToken& token, std::string_view where) {
  if (token.id >= kMaxDraftPieces) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: the added token \"{}\" has the id {}; ids end at {}", where,
                       Quotable(token.content), token.id, kMaxDraftPieces));
  }
  const PieceType type = token.special ? PieceType::kControl : PieceType::kUserDefined;
  const bool is_free = token.id >= pieces.size() || (pieces[token.id].type == PieceType::kUnused &&
                                                     pieces[token.id].bytes.empty());
  if (is_free) {
    SetPiece(token.id, token.content, type);
    pieces[token.id].rstrip = token.rstrip;
    return {};
  }
  DraftPiece& piece = pieces[token.id];
  if (!IsWritten(piece, rules.family, token.content)) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: the added token \"{}\" has the id {}, which is \"{}\" in the "
                       "tokenizer's model; the files do not belong together",
                       where, Quotable(token.content), token.id, Quotable(piece.bytes)));
  }
  if (piece.type == PieceType::kByte) return {};
  piece.type = type;
  piece.rstrip = token.rstrip;
  return {};
}

int32_t VocabularyDraft::FindSpecial(std::string_view content) const {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (IsSpecial(pieces[id].type) && pieces[id].bytes == content) return static_cast<int32_t>(id);
  }
  return -1;
}

Status VocabularyDraft::AddMergesOfAllSplits(std::span<const uint32_t> rank_by_id,
                                             std::string_view where) {
  constexpr size_t kMaxTextPieceBytes = 1024;
  constexpr size_t kMaxTextBytes = size_t{16} << 20;
  size_t text_bytes = 0;
  std::unordered_map<std::string_view, uint32_t> id_by_piece;
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    const DraftPiece& piece = pieces[id];
    if (piece.type != PieceType::kNormal) continue;
    text_bytes += piece.bytes.size();
    if (piece.bytes.size() > kMaxTextPieceBytes || text_bytes > kMaxTextBytes) {
      return Fail(
          ErrorCode::kUnsupported,
          Format("{}: piece {} has {} bytes, {} with those before it; at most {} and "
                 "{} are supported",
                 where, id, piece.bytes.size(), text_bytes, kMaxTextPieceBytes, kMaxTextBytes));
    }
    id_by_piece.emplace(piece.bytes, id);
  }
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type != PieceType::kNormal) continue;
    const std::string_view piece = pieces[id].bytes;
    for (size_t split = 1; split < piece.size(); ++split) {
      const auto left = id_by_piece.find(piece.substr(0, split));
      if (left == id_by_piece.end()) continue;
      const auto right = id_by_piece.find(piece.substr(split));
      if (right == id_by_piece.end()) continue;
      merges.push_back({left->second, right->second, id, rank_by_id[id]});
    }
  }
  return {};
}

Result<OwnedVocabulary> BuildVocabulary(const VocabularyDraft& draft, size_t vocab_size) {
  if (draft.pieces.size() > vocab_size) {
    return Fail(ErrorCode::kInvalidFile,
                Format("The tokenizer has {} tokens, but the checkpoint's vocab_size is {}; "
                       "the tokenizer's files belong to another checkpoint, or tokens were "
                       "added to them that the weights do not have",
                       draft.pieces.size(), vocab_size));
  }
  OwnedVocabulary vocabulary;
  vocabulary.rules = draft.rules;
  vocabulary.split_patterns = draft.split_patterns;
  CRIA_RETURN_IF_ERROR(AddPieces(draft, vocab_size, &vocabulary));
  for (uint32_t id = 0; id < draft.pieces.size(); ++id) {
    if (draft.pieces[id].rstrip) vocabulary.rstrip_ids.push_back(id);
  }
  SortTextPieces(&vocabulary);
  AddMerges(draft, &vocabulary);
  CRIA_RETURN_IF_ERROR(ValidateVocabulary(vocabulary.view()));
  return vocabulary;
}

}  // namespace cria
