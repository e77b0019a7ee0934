#include "llm/kv_state_file.h"

#include <cstring>

#include "llm/session_metadata.h"
#include "model/checksum.h"

namespace cria {

Status WriteKvState(OutputFile& file, uint64_t offset, const KvState& state,
                    std::span<std::byte> checksums) {
  for (size_t block = 0; block < state.num_blocks(); ++block) {
    const auto held = state.HoldBlock();
    CRIA_RETURN_IF_ERROR(state.Exchange(block, KvDirection::kToRank0));
    Checksum64 checksum;
    for (size_t head = 0; head < state.NumHeads(block); ++head) {
      for (const std::span<const std::byte> part : state.Rows(block, head)) {
        checksum.Update(part);
        CRIA_RETURN_IF_ERROR(file.WriteAt(offset, part));
        offset += part.size();
      }
    }
    const uint64_t finished = checksum.Finish();
    std::memcpy(&checksums[block * sizeof finished], &finished, sizeof finished);
  }
  return {};
}

Status ReadKvBlock(const platform::File& file, uint64_t offset, const KvState& state, size_t block,
                   uint64_t expected_checksum) {
  const auto held = state.HoldBlock();
  Checksum64 checksum;
  bool are_finite = true;
  for (size_t head = 0; head < state.NumHeads(block); ++head) {
    const auto rows = state.Rows(block, head);
    for (const std::span<std::byte> part : rows) {
      CRIA_RETURN_IF_ERROR(file.ReadAt(offset, part));
      checksum.Update(part);
      offset += part.size();
    }
    are_finite = are_finite && state.AreFinite(block, rows);
  }
  if (checksum.Finish() != expected_checksum) {
    return FailInvalidSession(file, "its KV cache is damaged (a checksum does not match)");
  }
  if (!are_finite) return FailInvalidSession(file, "its KV cache has a value that is not a number");
  return state.Exchange(block, KvDirection::kFromRank0);
}

}  // namespace cria
