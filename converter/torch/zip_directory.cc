#include "converter/torch/zip_directory.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kMaxCommentBytes = 65535;
constexpr uint64_t kLocatorBytes = 20;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kLocalHeaderBytes = 30;
constexpr uint64_t kMaxEntries = 65536;
constexpr uint64_t kMaxDirectoryBytes = 16 << 20;
constexpr uint32_t kAllOnes32 = 0xffffffff;

// The place of the directory in the file.
struct Directory {
  uint64_t num_entries;
  uint64_t bytes;
  uint64_t offset;
};

template <typename T>
T Load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool HasSignature(std::string_view bytes, size_t at, std::string_view signature) {
  return bytes.substr(at).starts_with("PK") && bytes.substr(at + 2).starts_with(signature);
}

class Reader {
 public:
  explicit Reader(const platform::File& file) : file_(file) {}

  Result<ZipDirectory> Read() {
    CRIA_ASSIGN_OR_RETURN(const Directory directory, FindDirectory());
    if (directory.num_entries > kMaxEntries || directory.bytes > kMaxDirectoryBytes) {
      return Bad(Format("its directory has {} entries in {} bytes, too many", directory.num_entries,
                        directory.bytes));
    }
    CRIA_ASSIGN_OR_RETURN(const std::string bytes, ReadAt(directory.offset, directory.bytes));
    size_t at = 0;
    for (uint64_t i = 0; i < directory.num_entries; ++i) {
      CRIA_RETURN_IF_ERROR(ReadEntry(bytes, &at));
    }
    CRIA_RETURN_IF_ERROR(CheckNoOverlap());
    return std::move(entries_);
  }

 private:
  std::unexpected<Error> Bad(std::string_view what,
                             ErrorCode code = ErrorCode::kInvalidFile) const {
    return Fail(code, Format("{}: {}", file_.path(), what));
  }
  std::unexpected<Error> Damaged() const {
    return Bad("its directory of entries is damaged or cut short: copy the file again");
  }

  Result<std::string> ReadAt(uint64_t offset, uint64_t bytes) const {
    if (offset > file_.size_bytes() || bytes > file_.size_bytes() - offset) return Damaged();
    std::string text(bytes, '\0');
    CRIA_RETURN_IF_ERROR(file_.ReadAt(offset, std::as_writable_bytes(std::span(text))));
    return text;
  }

  // The end record is the last thing in the file except for a comment, whose size is in the record.
  Result<Directory> FindDirectory() const {
    const uint64_t tail_bytes = std::min(file_.size_bytes(), kEndBytes + kMaxCommentBytes);
    const uint64_t tail_begin = file_.size_bytes() - tail_bytes;
    CRIA_ASSIGN_OR_RETURN(const std::string tail, ReadAt(tail_begin, tail_bytes));
    for (uint64_t at = tail_bytes; at-- > 0;) {
      if (tail_bytes - at < kEndBytes || !HasSignature(tail, at, "\5\6") ||
          Load<uint16_t>(tail, at + 20) != tail_bytes - at - kEndBytes) {
        continue;
      }
      const Directory directory = {Load<uint16_t>(tail, at + 10), Load<uint32_t>(tail, at + 12),
                                   Load<uint32_t>(tail, at + 16)};
      CRIA_ASSIGN_OR_RETURN(const auto large, FindLargeDirectory(tail_begin + at));
      return large.value_or(directory);
    }
    return Bad("is not a zip archive, or was cut short: copy it again");
  }

  // Archives over 4 GiB have a second record; its position is right before the first record.
  Result<std::optional<Directory>> FindLargeDirectory(uint64_t end) const {
    if (end < kLocatorBytes) return std::nullopt;
    CRIA_ASSIGN_OR_RETURN(const std::string locator, ReadAt(end - kLocatorBytes, kLocatorBytes));
    if (!HasSignature(locator, 0, "\6\7")) return std::nullopt;
    CRIA_ASSIGN_OR_RETURN(const std::string record,
                          ReadAt(Load<uint64_t>(locator, 8), kEnd64Bytes));
    if (!HasSignature(record, 0, "\6\6")) return Damaged();
    return Directory{Load<uint64_t>(record, 32), Load<uint64_t>(record, 40),
                     Load<uint64_t>(record, 48)};
  }

  Status ReadEntry(std::string_view directory, size_t* at) {
    constexpr size_t kHeaderBytes = 46;
    const std::string_view header = directory.substr(*at);
    if (header.size() < kHeaderBytes || !HasSignature(header, 0, "\1\2")) return Damaged();
    const size_t name_bytes = Load<uint16_t>(header, 28);
    const size_t extra_bytes = Load<uint16_t>(header, 30);
    const size_t all_bytes = kHeaderBytes + name_bytes + extra_bytes + Load<uint16_t>(header, 32);
    if (header.size() < all_bytes) return Damaged();
    *at += all_bytes;
    std::string name(header.substr(kHeaderBytes, name_bytes));
    uint64_t stored = Load<uint32_t>(header, 20);
    uint64_t bytes = Load<uint32_t>(header, 24);
    uint64_t local = Load<uint32_t>(header, 42);
    CRIA_RETURN_IF_ERROR(ReadLargeNumbers(header.substr(kHeaderBytes + name_bytes, extra_bytes),
                                          &bytes, &stored, &local));
    const bool is_encrypted = (Load<uint16_t>(header, 8) & 1) != 0;
    if (is_encrypted || Load<uint16_t>(header, 10) != 0 || stored != bytes) {
      return Bad(Format("its entry \"{}\" is {}; only archives whose entries are stored as "
                        "they are can be read",
                        Quotable(name), is_encrypted ? "encrypted" : "compressed"),
                 ErrorCode::kUnsupported);
    }
    CRIA_ASSIGN_OR_RETURN(const std::string local_header, ReadAt(local, kLocalHeaderBytes));
    if (!HasSignature(local_header, 0, "\3\4")) return Damaged();
    const uint64_t offset = local + kLocalHeaderBytes + Load<uint16_t>(local_header, 26) +
                            Load<uint16_t>(local_header, 28);
    if (offset > file_.size_bytes() || bytes > file_.size_bytes() - offset) return Damaged();
    if (entries_.emplace(name, ZipEntry{offset, bytes}).second) return {};
    return Bad(Format("its entry \"{}\" appears twice", Quotable(name)));
  }

  // Numbers whose bits are all ones are stored in an extra field, in this order.
  Status ReadLargeNumbers(std::string_view extra, uint64_t* bytes, uint64_t* stored,
                          uint64_t* local) const {
    constexpr uint16_t kLargeNumbers = 1;
    while (extra.size() >= 4) {
      const auto kind = Load<uint16_t>(extra, 0);
      const size_t size = Load<uint16_t>(extra, 2);
      extra.remove_prefix(4);
      if (size > extra.size()) return Damaged();
      std::string_view field = extra.substr(0, size);
      extra.remove_prefix(size);
      if (kind != kLargeNumbers) continue;
      for (uint64_t* number : {bytes, stored, local}) {
        if (*number != kAllOnes32) continue;
        if (field.size() < sizeof *number) return Damaged();
        *number = Load<uint64_t>(field, 0);
        field.remove_prefix(sizeof *number);
      }
    }
    return {};
  }

  Status CheckNoOverlap() const {
    std::vector<ZipEntry> by_offset;
    for (const auto& [name, entry] : entries_) by_offset.push_back(entry);
    std::ranges::sort(by_offset, {}, &ZipEntry::offset);
    for (size_t i = 1; i < by_offset.size(); ++i) {
      if (by_offset[i].offset < by_offset[i - 1].offset + by_offset[i - 1].bytes) {
        return Bad(Format("two of its entries share byte {}", by_offset[i].offset));
      }
    }
    return {};
  }

  const platform::File& file_;
  ZipDirectory entries_;
};

}  // namespace

Result<ZipDirectory> ReadZipDirectory(const platform::File& file) { return Reader(file).Read(); }

}  // namespace cria
