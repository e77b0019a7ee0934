#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "converter/input/element_type.h"
#include "cria/error.h"

namespace cria {

// A tensor as the pickle in a file of torch.save describes it: a stretch of a storage, row-major.
struct PickledTensor {
  std::string name;
  ElementType type;
  std::vector<uint64_t> shape;
  std::string storage;        // The entry of the archive that holds it.
  uint64_t storage_elements;  // As the pickle says.
  uint64_t first_element;     // In the storage; the tensor ends inside it.
};

// Reads a pickle of protocol 2 that holds a table of tensors by name, as torch.save writes it.
// Nothing is ever run: of the things that a pickle can name, the storages of f32, f16 and bf16, the
// two functions that put tensors together and OrderedDict are known, and any other is an error with
// its name. Time and memory are linear in the size of the pickle, which `where`, the beginning of
// error sentences, has at most 4 MiB of.
Result<std::vector<PickledTensor>> ReadTorchPickle(std::string_view pickle, std::string_view where);

}  // namespace cria
