#include "converter/hugging_face/safetensors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "converter/input/json_file.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
// The format's own limit.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDimensions = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

std::optional<ElementType> ParseElementType(std::string_view name) {
  if (name == "F32") return ElementType::kF32;
  if (name == "F16") return ElementType::kF16;
  if (name == "BF16") return ElementType::kBf16;
  if (name == "U8") return ElementType::kU8;
  return std::nullopt;
}

class HeaderReader {
 public:
  HeaderReader(std::shared_ptr<const platform::File> file, uint64_t data_begin)
      : file_(std::move(file)),
        data_begin_(data_begin),
        data_bytes_(file_->size_bytes() - data_begin) {}

  Result<TensorSources> Read(const json& header) {
    TensorSources sources;
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadataKey) continue;
      CRIA_ASSIGN_OR_RETURN(TensorSource source, ReadEntry(name, entry));
      sources.emplace(name, std::move(source));
    }
    CRIA_RETURN_IF_ERROR(CheckCoverage());
    return sources;
  }

 private:
  struct Range {
    uint64_t begin;  // Counted from data_begin_.
    uint64_t end;
    std::string tensor;
  };

  std::unexpected<Error> Bad(std::string_view tensor, std::string_view what) const {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: tensor \"{}\" {}", file_->path(), Quotable(tensor), what));
  }

  Result<TensorSource> ReadEntry(const std::string& name, const json& entry) {
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets")) {
      return Bad(name, "has no dtype, shape or data_offsets");
    }
    TensorSource source = {.name = name, .file = file_};
    CRIA_ASSIGN_OR_RETURN(source.type, ReadType(name, entry["dtype"]));
    CRIA_ASSIGN_OR_RETURN(source.shape, ReadShape(name, entry["shape"]));
    CRIA_ASSIGN_OR_RETURN(const Range range, ReadRange(name, entry["data_offsets"]));
    const uint64_t bytes = source.num_bytes();
    if (range.end - range.begin != bytes) {
      return Bad(name, Format("has {} bytes, but its shape {} and dtype need {}",
                              range.end - range.begin, source.ShapeText(), bytes));
    }
    source.offset = data_begin_ + range.begin;
    ranges_.push_back(range);
    return source;
  }

  Result<ElementType> ReadType(const std::string& name, const json& dtype) const {
    if (!dtype.is_string()) return Bad(name, "has a dtype that is not a string");
    const auto& text = dtype.get_ref<const std::string&>();
    const auto type = ParseElementType(text);
    if (type.has_value()) return *type;
    return UnsupportedDtype(file_->path(), name, text);
  }

  // Also checks that the number of bytes does not overflow.
  Result<std::vector<uint64_t>> ReadShape(const std::string& name, const json& shape) const {
    constexpr uint64_t kMaxElements = uint64_t{1} << 60;
    if (!shape.is_array() || shape.size() > kMaxDimensions) {
      return Bad(name, "has a shape that is not a list of at most 8 numbers");
    }
    std::vector<uint64_t> extents;
    uint64_t elements = 1;
    for (const json& extent : shape) {
      if (!extent.is_number_unsigned())
        return Bad(name, "has a shape with a value that is not a number");
      extents.push_back(extent.get<uint64_t>());
      if (extents.back() != 0 && elements > kMaxElements / extents.back()) {
        return Bad(name, "has an impossibly large shape");
      }
      elements *= extents.back();
    }
    return extents;
  }

  Result<Range> ReadRange(const std::string& name, const json& offsets) const {
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      return Bad(name, "has malformed data_offsets");
    }
    Range range = {offsets[0].get<uint64_t>(), offsets[1].get<uint64_t>(), name};
    if (range.begin > range.end || range.end > data_bytes_) {
      return Bad(name, Format("has data_offsets {} to {}, but the file holds {} bytes of "
                              "tensors; it may have been cut short: download it again",
                              range.begin, range.end, data_bytes_));
    }
    return range;
  }

  Status CheckCoverage() {
    std::ranges::sort(ranges_, {},
                      [](const Range& range) { return std::pair(range.begin, range.end); });
    uint64_t end = 0;
    for (const Range& range : ranges_) {
      if (range.begin < end) return Bad(range.tensor, "overlaps the tensor before it");
      if (range.begin > end) return Bad(range.tensor, "has unused bytes before it");
      end = range.end;
    }
    if (end == data_bytes_) return {};
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: has {} bytes after its last tensor", file_->path(), data_bytes_ - end));
  }

  std::shared_ptr<const platform::File> file_;
  uint64_t data_begin_;
  uint64_t data_bytes_;
  std::vector<Range> ranges_;
};

}  // namespace

Result<TensorSources> ReadSafetensors(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(auto opened, platform::File::Open(path.string()));
  const auto file = std::make_shared<const platform::File>(std::move(opened));
  if (file->size_bytes() < kLengthBytes) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: is too short for a safetensors file", file->path()));
  }
  uint64_t header_bytes = 0;
  CRIA_RETURN_IF_ERROR(file->ReadAt(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > kMaxHeaderBytes || header_bytes > file->size_bytes() - kLengthBytes) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: claims a header of {} bytes in a file of {}; it was cut short or "
                       "is not a safetensors file",
                       file->path(), header_bytes, file->size_bytes()));
  }
  std::string text(header_bytes, '\0');
  CRIA_RETURN_IF_ERROR(file->ReadAt(kLengthBytes, std::as_writable_bytes(std::span(text))));
  CRIA_ASSIGN_OR_RETURN(const json header, ParseJsonObject(text, file->path()));
  return HeaderReader(file, kLengthBytes + header_bytes).Read(header);
}

std::unexpected<Error> UnsupportedDtype(std::string_view path, std::string_view tensor,
                                        std::string_view dtype) {
  return Fail(ErrorCode::kUnsupported,
              Format("{}: tensor \"{}\" has dtype {}; only F32, F16 and BF16 can be converted "
                     "(quantized checkpoints cannot, but for MXFP4)",
                     path, Quotable(tensor), Quotable(dtype)));
}

}  // namespace cria
