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

// Reads consecutive little-endian values from part of a file, through a buffer of 64 KiB. Errors
// name the file. A requested size is compared with the remaining bytes before memory is allocated.
class ByteReader {
 public:
  // Reads the bytes [begin, end) of `file`; they must be inside it, and it must outlive the reader.
  ByteReader(const platform::File& file, uint64_t begin, uint64_t end)
      : file_(file), position_(begin), end_(end) {}

  uint64_t position() const { return position_; }  // From the start of the file.
  uint64_t bytes_left() const { return end_ - position_; }

  // `what` names the value in an error sentence: "the number of tensors".
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  Result<T> Read(std::string_view what) {
    T value;
    CRIA_RETURN_IF_ERROR(ReadBytes(std::as_writable_bytes(std::span(&value, 1)), what));
    return value;
  }
  Result<std::string> ReadString(uint64_t bytes, std::string_view what);
  Status Skip(uint64_t bytes, std::string_view what);

  // Fails with a sentence of the file's path and `what`.
  std::unexpected<Error> Bad(std::string_view what, ErrorCode code = ErrorCode::kInvalidFile) const;

 private:
  Status ReadBytes(std::span<std::byte> destination, std::string_view what);
  Status CheckLeft(uint64_t bytes, std::string_view what) const;

  const platform::File& file_;
  uint64_t position_;
  uint64_t end_;
  std::vector<std::byte> buffer_;
  uint64_t buffer_begin_ = 0;  // Offset of the buffer's bytes in the file.
};

}  // namespace cria
