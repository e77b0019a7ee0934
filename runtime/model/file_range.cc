#include "model/file_range.h"

#include <algorithm>
#include <span>
#include <vector>

namespace cria {

Status AddToChecksum(const platform::File& file, FileRange range, Checksum64& checksum) {
  constexpr size_t kSliceBytes = size_t{1} << 20;
  std::vector<std::byte> slice(std::min<uint64_t>(kSliceBytes, range.bytes));
  for (uint64_t done = 0; done < range.bytes; done += slice.size()) {
    const size_t count = std::min<uint64_t>(slice.size(), range.bytes - done);
    const std::span<std::byte> part = std::span(slice).first(count);
    CRIA_RETURN_IF_ERROR(file.ReadAt(range.offset + done, part));
    checksum.Update(part);
  }
  return {};
}

}  // namespace cria
