#include "converter/input/byte_reader.h"

#include <algorithm>
#include <cstring>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr uint64_t kBufferBytes = 64 << 10;

}  // namespace

std::unexpected<Error> ByteReader::Bad(std::string_view what, ErrorCode code) const {
  return Fail(code, Format("{}: {}", file_.path(), what));
}

Status ByteReader::CheckLeft(uint64_t bytes, std::string_view what) const {
  if (bytes <= bytes_left()) return {};
  return Bad(
      Format("{} at byte {} takes {} bytes, but only {} are left; the file may have "
             "been cut short: copy it again",
             Quotable(what), position_, bytes, bytes_left()));
}

Status ByteReader::ReadBytes(std::span<std::byte> destination, std::string_view what) {
  CRIA_RETURN_IF_ERROR(CheckLeft(destination.size(), what));
  while (!destination.empty()) {
    if (position_ < buffer_begin_ || position_ >= buffer_begin_ + buffer_.size()) {
      buffer_.resize(std::min(kBufferBytes, bytes_left()));
      buffer_begin_ = position_;
      CRIA_RETURN_IF_ERROR(file_.ReadAt(position_, buffer_));
    }
    const auto buffered = std::span(buffer_).subspan(position_ - buffer_begin_);
    const size_t bytes = std::min(destination.size(), buffered.size());
    std::memcpy(destination.data(), buffered.data(), bytes);
    destination = destination.subspan(bytes);
    position_ += bytes;
  }
  return {};
}

Result<std::string> ByteReader::ReadString(uint64_t bytes, std::string_view what) {
  CRIA_RETURN_IF_ERROR(CheckLeft(bytes, what));
  std::string text(bytes, '\0');
  CRIA_RETURN_IF_ERROR(ReadBytes(std::as_writable_bytes(std::span(text)), what));
  return text;
}

Status ByteReader::Skip(uint64_t bytes, std::string_view what) {
  CRIA_RETURN_IF_ERROR(CheckLeft(bytes, what));
  position_ += bytes;
  return {};
}

}  // namespace cria
