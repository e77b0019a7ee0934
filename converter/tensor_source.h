#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

enum class ElementType : uint8_t { kF32, kF16, kBf16 };
size_t ElementBytes(ElementType type);

// A tensor of a checkpoint: where its elements lie, row-major. They are read where they are wanted
// rather than mapped: what is resident stays known, and a checkpoint that is cut short meanwhile,
// or lies on a failing disk, is an error instead of a SIGBUS.
struct TensorSource {
  std::string name = {};  // Hugging Face's.
  ElementType type = ElementType::kF32;
  std::vector<uint64_t> shape = {};  // Outermost first.
  std::shared_ptr<const platform::File> file = {};
  uint64_t offset = 0;  // From the start of the file.

  uint64_t num_elements() const;
  std::string ShapeText() const;  // "[512, 64]"
};

// By name.
using TensorSources = std::map<std::string, TensorSource, std::less<>>;

// Reads elements of one tensor as floats. Not for two threads at once.
class TensorReader {
 public:
  // Elements [first, first + destination.size()), which must lie inside the tensor. One that is not
  // finite is an error that names the tensor and the element.
  Status Read(const TensorSource& source, uint64_t first, std::span<float> destination);

 private:
  std::vector<std::byte> raw_;
};

}  // namespace cria
