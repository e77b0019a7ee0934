#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/input/element_type.h"
#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// Where elements lie: row-major from `offset` on.
struct TensorShard {
  std::shared_ptr<const platform::File> file;
  uint64_t offset;  // From the start of the file.
};

// A tensor of a checkpoint: where its elements lie, row-major. They are read where they are wanted
// rather than mapped: what is resident stays known, and a checkpoint that is cut short meanwhile,
// or lies on a failing disk, is an error instead of a SIGBUS.
struct TensorSource {
  std::string name = {};  // As the checkpoint has it.
  ElementType type = ElementType::kF32;
  std::vector<uint64_t> shape = {};  // Outermost first, of the whole tensor.
  std::shared_ptr<const platform::File> file = {};
  uint64_t offset = 0;  // From the start of the file.

  // What was split for several processors has equal shares of its rows, or of its columns, in
  // `file` and in each of these.
  std::vector<TensorShard> other_shards = {};
  bool is_split_by_columns = false;

  // Not 0: the rows of each head of this size are stored with those that turn together side by
  // side, 2 * i and 2 * i + 1. They are read in half-split order, i and i + head_dim / 2.
  uint32_t interleaved_head_dim = 0;

  uint64_t num_elements() const;
  uint64_t num_bytes() const;     // As stored, all shards.
  std::string ShapeText() const;  // "[512, 64]"
};

// By name.
using TensorSources = std::map<std::string, TensorSource, std::less<>>;

// Reads elements of one tensor as floats. Not for two threads at once.
class TensorReader {
 public:
  // Elements [first, first + destination.size()), which must lie inside the tensor: whole blocks,
  // and whole rows where the tensor is split or interleaved. One that is not finite is an error
  // that names the tensor and the element.
  Status Read(const TensorSource& source, uint64_t first, std::span<float> destination);

 private:
  std::vector<std::byte> raw_;
};

}  // namespace cria
