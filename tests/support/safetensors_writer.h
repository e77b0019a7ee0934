#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace cria::support {

// How a checkpoint stores its numbers.
enum class StorageType { kF32, kBf16, kF16 };

size_t ElementBytes(StorageType type);

// The names in a safetensors header ("BF16") and in config.json ("bfloat16").
std::string SafetensorsName(StorageType type);
std::string TorchName(StorageType type);

// The bytes of values, each rounded to the nearest that the type can store.
std::string Encode(StorageType type, std::span<const float> values);

// Replaces each value by the nearest that the type can store.
void RoundTo(StorageType type, std::span<float> values);

struct TensorShape {
  std::string name;
  std::vector<size_t> shape;  // Outermost first.

  size_t elements() const;
};

// Writes one safetensors file front to back, holding nothing of it in memory. Every function throws
// std::runtime_error naming the file where it cannot be written or the values do not fit the
// shapes.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, StorageType type,
                    const std::vector<TensorShape>& tensors);

  // The next values, in the order of the tensors; a call need not end where a tensor ends.
  void Write(std::span<const float> values);

  // Must be called when every value is written.
  void Finish();

 private:
  std::filesystem::path path_;
  StorageType type_;
  size_t elements_left_ = 0;
  std::ofstream stream_;
};

}  // namespace cria::support
