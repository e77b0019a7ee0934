#include "converter/gguf/gguf_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "converter/input/byte_reader.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMaxGgufMetadataBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxKeys = 4096;
constexpr uint64_t kMaxKeyBytes = 65535;  // The format's own limit.
constexpr uint64_t kMaxTensors = 65536;
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMaxTensorNameBytes = 256;
constexpr uint64_t kMaxVocabularyElements = uint64_t{1} << 22;
// For arrays that do not belong to a vocabulary: at most one value for each layer is needed.
constexpr uint64_t kMaxKeptElements = 4096;
constexpr uint64_t kDefaultAlignment = 32;

enum ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// ggml's numbers of types that are supported.
struct GgmlType {
  uint32_t number;
  ElementType type;
};
constexpr std::array kGgmlTypes = {
    GgmlType{0, ElementType::kF32},    GgmlType{1, ElementType::kF16},
    GgmlType{2, ElementType::kQ4_0},   GgmlType{3, ElementType::kQ4_1},
    GgmlType{6, ElementType::kQ5_0},   GgmlType{7, ElementType::kQ5_1},
    GgmlType{8, ElementType::kQ8_0},   GgmlType{10, ElementType::kQ2K},
    GgmlType{11, ElementType::kQ3K},   GgmlType{12, ElementType::kQ4K},
    GgmlType{13, ElementType::kQ5K},   GgmlType{14, ElementType::kQ6K},
    GgmlType{20, ElementType::kIq4Nl}, GgmlType{23, ElementType::kIq4Xs},
    GgmlType{30, ElementType::kBf16},  GgmlType{39, ElementType::kMxfp4},
};
// All but bytes.
static_assert(kGgmlTypes.size() == kNumElementTypes - 1);

// ggml's other types, for error messages.
struct OtherType {
  uint32_t number;
  std::string_view name;
};
constexpr std::array kOtherTypes = {
    OtherType{9, "Q8_1"},    OtherType{15, "Q8_K"},    OtherType{16, "IQ2_XXS"},
    OtherType{17, "IQ2_XS"}, OtherType{18, "IQ3_XXS"}, OtherType{19, "IQ1_S"},
    OtherType{21, "IQ3_S"},  OtherType{22, "IQ2_S"},   OtherType{24, "I8"},
    OtherType{25, "I16"},    OtherType{26, "I32"},     OtherType{27, "I64"},
    OtherType{28, "F64"},    OtherType{29, "IQ1_M"},   OtherType{34, "TQ1_0"},
    OtherType{35, "TQ2_0"},
};

std::string NameOfUnknown(uint32_t number) {
  const auto* found = std::ranges::find(kOtherTypes, number, &OtherType::number);
  return found == kOtherTypes.end() ? Format("number {}", number) : std::string(found->name);
}

// Arrays of these keys may be as long as a vocabulary.
bool IsVocabularyKey(std::string_view key) {
  constexpr std::array<std::string_view, 4> kKeys = {
      "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type",
      "tokenizer.ggml.merges"};
  return std::ranges::contains(kKeys, key);
}

class FileReader {
 public:
  explicit FileReader(std::shared_ptr<const platform::File> file)
      : file_(std::move(file)),
        reader_(*file_, 0, std::min(file_->size_bytes(), kMaxGgufMetadataBytes)),
        metadata_(file_->path()) {}

  Result<GgufFile> Read() {
    CRIA_RETURN_IF_ERROR(ReadHead());
    for (uint64_t i = 0; i < num_keys_; ++i) CRIA_RETURN_IF_ERROR(ReadKey());
    CRIA_ASSIGN_OR_RETURN(const uint32_t alignment,
                          metadata_.Integer("general.alignment", kDefaultAlignment));
    if (alignment == 0 || alignment % 8 != 0) {
      return metadata_.Bad("general.alignment",
                           Format("is {}, which is not a multiple of 8", alignment));
    }
    alignment_ = alignment;
    std::vector<TensorSource> tensors;
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      CRIA_ASSIGN_OR_RETURN(TensorSource tensor, ReadTensor());
      tensors.push_back(std::move(tensor));
    }
    CRIA_RETURN_IF_ERROR(PlaceTensors(tensors));
    return GgufFile{std::move(metadata_), std::move(tensors)};
  }

 private:
  Status ReadHead() {
    CRIA_ASSIGN_OR_RETURN(const std::string magic, reader_.ReadString(4, "the magic number"));
    if (magic != kMagic) return reader_.Bad("is not a GGUF file");
    CRIA_ASSIGN_OR_RETURN(const auto version, reader_.Read<uint32_t>("the version"));
    if (version != 2 && version != 3) {
      const bool is_big_endian = version != 0 && (version & 0xffff) == 0;
      return reader_.Bad(is_big_endian ? "is a big-endian file; only little-endian GGUF "
                                         "files can be converted"
                                       : Format("is of GGUF version {}; versions 2 and 3 can "
                                                "be converted",
                                                version),
                         ErrorCode::kUnsupported);
    }
    CRIA_ASSIGN_OR_RETURN(num_tensors_, reader_.Read<uint64_t>("the number of tensors"));
    CRIA_ASSIGN_OR_RETURN(num_keys_, reader_.Read<uint64_t>("the number of keys"));
    if (num_tensors_ <= kMaxTensors && num_keys_ <= kMaxKeys) return {};
    return reader_.Bad(Format("claims {} tensors and {} keys; at most {} and {} are supported",
                              num_tensors_, num_keys_, kMaxTensors, kMaxKeys));
  }

  Result<std::string> ReadText(uint64_t max_bytes, std::string_view what) {
    CRIA_ASSIGN_OR_RETURN(const auto bytes, reader_.Read<uint64_t>(what));
    if (bytes > max_bytes) {
      return reader_.Bad(Format("{} has {} bytes, more than {}", Quotable(what), bytes, max_bytes));
    }
    return reader_.ReadString(bytes, what);
  }

  Status ReadKey() {
    CRIA_ASSIGN_OR_RETURN(std::string key, ReadText(kMaxKeyBytes, "a key"));
    CRIA_ASSIGN_OR_RETURN(const auto type, reader_.Read<uint32_t>(key));
    Result<GgufValue> value = type == kArray ? ReadArray(key) : ReadValue(type, key);
    if (!value) return std::unexpected(std::move(value).error());
    if (metadata_.Add(key, *std::move(value))) return {};
    return metadata_.Bad(key, "appears twice");
  }

  template <typename T>
  Result<GgufValue> ReadWhole(std::string_view key) {
    CRIA_ASSIGN_OR_RETURN(const T value, reader_.Read<T>(key));
    if (!std::in_range<int64_t>(value)) return metadata_.Bad(key, "is larger than 2^63");
    return GgufValue(static_cast<int64_t>(value));
  }

  Result<GgufValue> ReadValue(uint32_t type, std::string_view key) {
    switch (type) {
      case kUint8:
        return ReadWhole<uint8_t>(key);
      case kInt8:
        return ReadWhole<int8_t>(key);
      case kUint16:
        return ReadWhole<uint16_t>(key);
      case kInt16:
        return ReadWhole<int16_t>(key);
      case kUint32:
        return ReadWhole<uint32_t>(key);
      case kInt32:
        return ReadWhole<int32_t>(key);
      case kUint64:
        return ReadWhole<uint64_t>(key);
      case kInt64:
        return ReadWhole<int64_t>(key);
      case kFloat32:
        return reader_.Read<float>(key).transform([](float x) { return GgufValue(double{x}); });
      case kFloat64:
        return reader_.Read<double>(key).transform([](double x) { return GgufValue(x); });
      case kBool:
        return reader_.Read<uint8_t>(key).transform([](uint8_t x) { return GgufValue(x != 0); });
      case kString:
        return ReadText(kMaxGgufMetadataBytes, key).transform([](std::string&& text) {
          return GgufValue(std::move(text));
        });
      default:
        return metadata_.Bad(key, Format("has a value of type {}, which is not known", type),
                             ErrorCode::kUnsupported);
    }
  }

  Result<GgufValue> ReadArray(std::string_view key) {
    constexpr std::array<uint64_t, 13> kMinBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    CRIA_ASSIGN_OR_RETURN(const auto type, reader_.Read<uint32_t>(key));
    CRIA_ASSIGN_OR_RETURN(const auto size, reader_.Read<uint64_t>(key));
    if (type == kArray || type >= kMinBytes.size()) {
      return metadata_.Bad(key,
                           type == kArray
                               ? "is an array of arrays, which is not supported"
                               : Format("is an array of type {}, which is not known", type),
                           ErrorCode::kUnsupported);
    }
    if (size > reader_.bytes_left() / kMinBytes[type]) {
      return metadata_.Bad(key, Format("claims {} elements, more than the file has bytes for; "
                                       "it may have been cut short: copy it again",
                                       size));
    }
    const uint64_t max_kept = IsVocabularyKey(key) ? kMaxVocabularyElements : kMaxKeptElements;
    if (size > max_kept) {
      CRIA_RETURN_IF_ERROR(SkipArray(type, size, kMinBytes[type], key));
      return GgufValue(SkippedArray());
    }
    switch (type) {
      case kString:
        return ReadStrings(size, key);
      case kBool:
        return ReadElements<bool>(type, size, key);
      case kFloat32:
      case kFloat64:
        return ReadElements<double>(type, size, key);
      default:
        return ReadElements<int64_t>(type, size, key);
    }
  }

  Status SkipArray(uint32_t type, uint64_t size, uint64_t element_bytes, std::string_view key) {
    if (type != kString) return reader_.Skip(size * element_bytes, key);
    for (uint64_t i = 0; i < size; ++i) {
      CRIA_ASSIGN_OR_RETURN(const auto bytes, reader_.Read<uint64_t>(key));
      CRIA_RETURN_IF_ERROR(reader_.Skip(bytes, key));
    }
    return {};
  }

  Result<GgufValue> ReadStrings(uint64_t size, std::string_view key) {
    StringList strings;
    for (uint64_t i = 0; i < size; ++i) {
      CRIA_ASSIGN_OR_RETURN(const std::string text, ReadText(kMaxGgufMetadataBytes, key));
      strings.Add(text);
    }
    return GgufValue(std::move(strings));
  }

  template <typename T>
  Result<GgufValue> ReadElements(uint32_t type, uint64_t size, std::string_view key) {
    std::vector<T> elements;
    elements.reserve(size);
    for (uint64_t i = 0; i < size; ++i) {
      CRIA_ASSIGN_OR_RETURN(const GgufValue value, ReadValue(type, key));
      elements.push_back(std::get<T>(value));
    }
    return GgufValue(std::move(elements));
  }

  Result<TensorSource> ReadTensor() {
    CRIA_ASSIGN_OR_RETURN(std::string name, ReadText(kMaxTensorNameBytes, "a tensor's name"));
    TensorSource tensor = {.name = std::move(name), .file = file_};
    CRIA_ASSIGN_OR_RETURN(const auto dimensions, reader_.Read<uint32_t>("a tensor"));
    if (dimensions == 0 || dimensions > kMaxDimensions) {
      return BadTensor(tensor, Format("has {} dimensions", dimensions));
    }
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
      CRIA_ASSIGN_OR_RETURN(const auto extent, reader_.Read<uint64_t>("a tensor"));
      constexpr uint64_t kMaxElements = uint64_t{1} << 60;
      if (extent == 0 || elements > kMaxElements / extent) {
        return BadTensor(tensor, "has an impossible shape");
      }
      elements *= extent;
      // The file has the innermost extent first.
      tensor.shape.insert(tensor.shape.begin(), extent);
    }
    CRIA_ASSIGN_OR_RETURN(const auto number, reader_.Read<uint32_t>("a tensor"));
    const auto* type = std::ranges::find(kGgmlTypes, number, &GgmlType::number);
    if (type == kGgmlTypes.end()) {
      return BadTensor(tensor,
                       Format("has the type {}, which this version does not convert; take a "
                              "file of another quantization",
                              NameOfUnknown(number)),
                       ErrorCode::kUnsupported);
    }
    tensor.type = type->type;
    if (tensor.shape.back() % BlockOf(tensor.type).elements != 0) {
      return BadTensor(tensor,
                       Format("has rows of {}, which is not a multiple of the block size of {}",
                              tensor.shape.back(), ElementTypeName(tensor.type)));
    }
    CRIA_ASSIGN_OR_RETURN(tensor.offset, reader_.Read<uint64_t>("a tensor"));
    if (tensor.offset % alignment_ != 0) {
      return BadTensor(tensor, Format("is not aligned to {} bytes", alignment_));
    }
    if (!names_.insert(tensor.name).second) return BadTensor(tensor, "appears twice");
    return tensor;
  }

  // Offsets count from the first aligned byte after the tensors' descriptions.
  Status PlaceTensors(std::vector<TensorSource>& tensors) const {
    const uint64_t file_bytes = file_->size_bytes();
    const uint64_t begin = (reader_.position() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes = file_bytes - std::min(begin, file_bytes);
    std::vector<const TensorSource*> by_offset;
    for (TensorSource& tensor : tensors) {
      if (tensor.offset > data_bytes || tensor.num_bytes() > data_bytes - tensor.offset) {
        return BadTensor(tensor, Format("is not inside the file, which has {} bytes of "
                                        "tensors; it may have been cut short: copy it again",
                                        data_bytes));
      }
      tensor.offset += begin;
      by_offset.push_back(&tensor);
    }
    std::ranges::sort(by_offset, {}, &TensorSource::offset);
    for (size_t i = 1; i < by_offset.size(); ++i) {
      if (by_offset[i]->offset < by_offset[i - 1]->offset + by_offset[i - 1]->num_bytes()) {
        return BadTensor(*by_offset[i], "overlaps another tensor");
      }
    }
    return {};
  }

  std::unexpected<Error> BadTensor(const TensorSource& tensor, std::string_view what,
                                   ErrorCode code = ErrorCode::kInvalidFile) const {
    return reader_.Bad(Format("tensor \"{}\" {}", Quotable(tensor.name), what), code);
  }

  std::shared_ptr<const platform::File> file_;
  ByteReader reader_;
  GgufMetadata metadata_;
  uint64_t num_tensors_ = 0;
  uint64_t num_keys_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

Result<GgufFile> ReadGgufFile(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(auto file, platform::File::Open(path.string()));
  return FileReader(std::make_shared<const platform::File>(std::move(file))).Read();
}

}  // namespace cria
