#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// Reads little-endian values one after another from part of a file, through a buffer of 64 KiB. An
// error names the file. What is asked for is compared with what is left before memory is taken.
class ByteReader {
 public:
  // Of `file`, which must outlive this, the bytes [begin, end), which must lie inside it.
  ByteReader(const platform::File& file, uint64_t begin, uint64_t end)
      : file_(file), position_(begin), end_(end) {}

  uint64_t position() const { return position_; }  // From the start of the file.
  uint64_t bytes_left() const { return end_ - position_; }

  // `what` names it in an error sentence: "the number of tensors".
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  Result<T> Read(std::string_view what) {
    T value;
    CRIA_RETURN_IF_ERROR(ReadBytes(std::as_writable_bytes(std::span(&value, 1)), what));
    return value;
  }
  Result<std::string> ReadString(uint64_t bytes, std::string_view what);
  Status Skip(uint64_t bytes, std::string_view what);

  // A failure of what is read: the file's path, then `what`.
  std::unexpected<Error> Bad(std::string_view what, ErrorCode code = ErrorCode::kInvalidFile) const;

 private:
  Status ReadBytes(std::span<std::byte> destination, std::string_view what);
  Status CheckLeft(uint64_t bytes, std::string_view what) const;

  const platform::File& file_;
  uint64_t position_;
  uint64_t end_;
  std::vector<std::byte> buffer_;
  uint64_t buffer_begin_ = 0;  // Where in the file the buffer's bytes are from.
};

}  // namespace cria
