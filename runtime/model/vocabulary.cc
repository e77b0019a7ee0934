#include "model/vocabulary.h"

#include <limits>
#include <string>

#include "core/format.h"

namespace cria {
namespace {

std::unexpected<Error> Invalid(const std::string& what) {
  return Fail(ErrorCode::kInvalidFile,
              Format("The tokenizer is invalid: {}. Convert the model again", what));
}

// An offset table must have one entry more than there are ids, begin at 0, never decrease, and end
// at `end`.
Status CheckOffsets(std::string_view name, std::span<const uint32_t> offsets, size_t num_ids,
                    size_t end) {
  if (offsets.size() != num_ids + 1) {
    return Invalid(Format("{} has {} entries instead of {}", name, offsets.size(), num_ids + 1));
  }
  if (offsets.front() != 0) return Invalid(Format("{}[0] is {}", name, offsets.front()));
  for (size_t i = 0; i < num_ids; ++i) {
    if (offsets[i + 1] < offsets[i]) {
      return Invalid(Format("{}[{}] is below the entry before it", name, i + 1));
    }
  }
  if (offsets.back() != end) {
    return Invalid(Format("{} ends at {} instead of {}", name, offsets.back(), end));
  }
  return {};
}

Status CheckPieces(const Vocabulary& vocabulary) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const PieceType type = vocabulary.piece_types[id];
    if (static_cast<int>(type) >= kNumPieceTypes) {
      return Invalid(
          Format("piece_types[{}] is {}, which is not a type", id, static_cast<int>(type)));
    }
    const size_t piece_bytes = vocabulary.piece(id).size();
    if (piece_bytes > kMaxPieceBytes) {
      return Invalid(
          Format("piece {} has {} bytes, more than {}", id, piece_bytes, kMaxPieceBytes));
    }
    if (type == PieceType::kByte && piece_bytes != 1) {
      return Invalid(Format("piece {} stands for a byte but has {}", id, piece_bytes));
    }
  }
  return {};
}

Status CheckSortedIds(const Vocabulary& vocabulary) {
  std::string_view previous;
  for (size_t i = 0; i < vocabulary.sorted_ids.size(); ++i) {
    const uint32_t id = vocabulary.sorted_ids[i];
    if (id >= vocabulary.size()) {
      return Invalid(Format("sorted_ids[{}] is {}, outside the vocabulary", i, id));
    }
    if (vocabulary.piece_types[id] != PieceType::kNormal) {
      return Invalid(Format("sorted_ids[{}] is {}, which is not a piece of text", i, id));
    }
    const std::string_view piece = vocabulary.piece(id);
    // No piece of text is empty: the first one must be greater than the empty string.
    if (piece <= previous) return Invalid(Format("sorted_ids[{}] is out of order", i));
    previous = piece;
  }
  return {};
}

Status CheckMerges(const Vocabulary& vocabulary) {
  for (size_t left = 0; left < vocabulary.size(); ++left) {
    const size_t begin = vocabulary.merge_offsets[left];
    for (size_t i = begin; i < vocabulary.merge_offsets[left + 1]; ++i) {
      const Merge& merge = vocabulary.merges[i];
      if (merge.right >= vocabulary.size()) {
        return Invalid(Format("merges[{}].right is {}, outside the vocabulary", i, merge.right));
      }
      if (merge.merged >= vocabulary.size()) {
        return Invalid(Format("merges[{}].merged is {}, outside the vocabulary", i, merge.merged));
      }
      if (i > begin && merge.right <= vocabulary.merges[i - 1].right) {
        return Invalid(Format("merges[{}] is out of order", i));
      }
    }
  }
  return {};
}

Status CheckSpecialId(std::string_view name, int32_t id, size_t vocab_size) {
  if (id < -1 || (id >= 0 && static_cast<size_t>(id) >= vocab_size)) {
    return Invalid(Format("{} is {} in a vocabulary of {}", name, id, vocab_size));
  }
  return {};
}

Status CheckRstripIds(const Vocabulary& vocabulary) {
  for (size_t i = 0; i < vocabulary.rstrip_ids.size(); ++i) {
    const uint32_t id = vocabulary.rstrip_ids[i];
    if (id >= vocabulary.size() || (i > 0 && id <= vocabulary.rstrip_ids[i - 1])) {
      return Invalid(Format("rstrip_ids[{}] is {}, which is out of order or of range", i, id));
    }
    const PieceType type = vocabulary.piece_types[id];
    if (type != PieceType::kControl && type != PieceType::kUserDefined) {
      return Invalid(Format("rstrip_ids[{}] is {}, which is no special token", i, id));
    }
  }
  return {};
}

}  // namespace

Status ValidateVocabulary(const Vocabulary& vocabulary) {
  const size_t vocab_size = vocabulary.size();
  if (vocab_size == 0) return Invalid("piece_types is empty");
  if (vocab_size >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return Invalid(Format("piece_types has {} entries", vocab_size));
  }
  if (vocabulary.family != TokenizerFamily::kSentencePieceBpe &&
      vocabulary.family != TokenizerFamily::kByteLevelBpe) {
    return Invalid(Format("family is {}", static_cast<int>(vocabulary.family)));
  }
  CRIA_RETURN_IF_ERROR(CheckOffsets("piece_offsets", vocabulary.piece_offsets, vocab_size,
                                    vocabulary.piece_bytes.size()));
  CRIA_RETURN_IF_ERROR(CheckOffsets("merge_offsets", vocabulary.merge_offsets, vocab_size,
                                    vocabulary.merges.size()));
  CRIA_RETURN_IF_ERROR(CheckPieces(vocabulary));
  CRIA_RETURN_IF_ERROR(CheckSortedIds(vocabulary));
  CRIA_RETURN_IF_ERROR(CheckMerges(vocabulary));
  CRIA_RETURN_IF_ERROR(CheckRstripIds(vocabulary));
  CRIA_RETURN_IF_ERROR(CheckSpecialId("bos_token_id", vocabulary.bos_token_id, vocab_size));
  CRIA_RETURN_IF_ERROR(CheckSpecialId("unk_token_id", vocabulary.unk_token_id, vocab_size));
  CRIA_RETURN_IF_ERROR(CheckSpecialId("eos_token_id", vocabulary.eos_token_id, vocab_size));
  CRIA_RETURN_IF_ERROR(
      CheckSpecialId("appended_token_id", vocabulary.appended_token_id, vocab_size));
  if (vocabulary.add_bos_token && vocabulary.bos_token_id < 0) {
    return Invalid("add_bos_token is set but there is no bos_token_id");
  }
  return {};
}

Digest DigestOfPieces(const Vocabulary& vocabulary) {
  const std::array<Digest, 3> digests = {Digest128(std::as_bytes(vocabulary.piece_bytes)),
                                         Digest128(std::as_bytes(vocabulary.piece_offsets)),
                                         Digest128(std::as_bytes(vocabulary.piece_types))};
  return Digest128(std::as_bytes(std::span(digests)));
}

}  // namespace cria
