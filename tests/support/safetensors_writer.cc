#include "support/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cria::support {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are written as they lie in memory");

// The upper half of a float that is not NaN, rounded to nearest, ties to even.
uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

size_t ElementBytes(StorageType type) {
  return type == StorageType::kF32 ? 4 : type == StorageType::kU8 ? 1 : 2;
}

std::string Encode(StorageType type, std::span<const float> values) {
  std::string bytes(values.size() * ElementBytes(type), '\0');
  switch (type) {
    case StorageType::kF32:
      std::memcpy(bytes.data(), values.data(), values.size_bytes());
      break;
    case StorageType::kBf16:
      for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t bits = ToBf16(values[i]);
        std::memcpy(bytes.data() + 2 * i, &bits, 2);
      }
      break;
    case StorageType::kF16:
      for (size_t i = 0; i < values.size(); ++i) {
        const auto half = static_cast<_Float16>(values[i]);
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      }
      break;
    case StorageType::kU8:
      for (size_t i = 0; i < values.size(); ++i) {
        bytes[i] = static_cast<char>(static_cast<uint8_t>(values[i]));
      }
      break;
  }
  return bytes;
}

std::string SafetensorsName(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return "F32";
    case StorageType::kBf16:
      return "BF16";
    case StorageType::kF16:
      return "F16";
    case StorageType::kU8:
      return "U8";
  }
  throw std::runtime_error("unknown storage type");
}

std::string TorchName(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return "float32";
    case StorageType::kBf16:
      return "bfloat16";
    case StorageType::kF16:
      return "float16";
    case StorageType::kU8:
      return "uint8";
  }
  throw std::runtime_error("unknown storage type");
}

void RoundTo(StorageType type, std::span<float> values) {
  if (type == StorageType::kBf16) {
    for (float& value : values) {
      value = std::bit_cast<float>(static_cast<uint32_t>(ToBf16(value)) << 16);
    }
  } else if (type == StorageType::kF16) {
    for (float& value : values) value = static_cast<float>(static_cast<_Float16>(value));
  }
}

size_t TensorShape::elements() const {
  size_t count = 1;
  for (const size_t extent : shape) count *= extent;
  return count;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, StorageType type,
                                     const std::vector<TensorShape>& tensors)
    : path_(path), stream_(path, std::ios::binary | std::ios::trunc) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  size_t offset = 0;
  for (const TensorShape& tensor : tensors) {
    const StorageType stored = tensor.is_bytes ? StorageType::kU8 : type;
    const size_t end = offset + tensor.elements() * ElementBytes(stored);
    header[tensor.name] = {{"dtype", SafetensorsName(stored)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
    left_.push_back({stored, tensor.elements()});
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // So that the data is aligned.
  const uint64_t header_bytes = text.size();
  stream_.write(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
  stream_.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void SafetensorsWriter::Write(std::span<const float> values) {
  size_t elements_left = 0;
  for (const Left& tensor : left_) elements_left += tensor.elements;
  if (values.size() > elements_left) {
    throw std::runtime_error(path_.string() + ": more values than the shapes have");
  }
  while (!values.empty()) {
    Left& tensor = left_.front();
    const size_t count = std::min(values.size(), tensor.elements);
    const std::string bytes = Encode(tensor.type, values.first(count));
    stream_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    values = values.subspan(count);
    tensor.elements -= count;
    if (tensor.elements == 0) left_.pop_front();
  }
  if (!stream_) throw std::runtime_error("cannot write " + path_.string());
}

void SafetensorsWriter::Finish() {
  if (std::ranges::any_of(left_, [](const Left& tensor) { return tensor.elements != 0; })) {
    throw std::runtime_error(path_.string() + ": fewer values than the shapes have");
  }
  stream_.close();
  if (!stream_) throw std::runtime_error("cannot write " + path_.string());
}

}  // namespace cria::support
