#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "converter/input/element_type.h"
#include "cria/error.h"

namespace cria {

// A tensor as a pickle of torch.save describes it: a row-major range of a storage.
struct PickledTensor {
  std::string name;
  ElementType type;
  std::vector<uint64_t> shape;
  std::string storage;        // The entry of the archive that contains it.
  uint64_t storage_elements;  // As the pickle says.
  uint64_t first_element;     // In the storage; the tensor's end is inside it, too.
};

// Reads a pickle of protocol 2 with a table of tensors by name, as torch.save writes it. Nothing in
// it is executed: of the objects that a pickle can name, only the storages of f32, f16 and bf16,
// the two functions that build tensors and OrderedDict are allowed; any other is an error that
// names it. Time and memory are linear in the size of the pickle, which may be at most 4 MiB.
// `where` begins error sentences.
Result<std::vector<PickledTensor>> ReadTorchPickle(std::string_view pickle, std::string_view where);

}  // namespace cria
