#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace cria::support {

// How a checkpoint stores its numbers.
enum class StorageType { kF32, kBf16, kF16, kU8 };

size_t ElementBytes(StorageType type);

// The names in a safetensors header ("BF16") and in config.json ("bfloat16").
std::string SafetensorsName(StorageType type);
std::string TorchName(StorageType type);

// The bytes of the values, each rounded to the nearest value of the type.
std::string Encode(StorageType type, std::span<const float> values);

// Rounds each value to the nearest value of the type.
void RoundTo(StorageType type, std::span<float> values);

struct TensorShape {
  std::string name;
  std::vector<size_t> shape;  // Outermost first.
  bool is_bytes = false;      // The values are bytes, whatever type the others have.

  size_t elements() const;
};

// Writes one safetensors file from front to back, without keeping it in memory. The functions throw
// std::runtime_error with the file's name if it cannot be written or if the number of values is not
// that of the shapes.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, StorageType type,
                    const std::vector<TensorShape>& tensors);

  // Writes the next values, in the order of the tensors; a call may end inside a tensor.
  void Write(std::span<const float> values);

  // Must be called after the last value.
  void Finish();

 private:
  std::filesystem::path path_;
  // A tensor that is not written whole.
  struct Left {
    StorageType type;
    size_t elements;
  };
  std::deque<Left> left_;
  std::ofstream stream_;
};

}  // namespace cria::support
