// Any bytes as a file of torch.save, and as the pickle in one: reading must end in tensors that lie
// inside the file, or in an error.

#include <cstdlib>
#include <string_view>

#include "converter/torch/torch_archive.h"
#include "converter/torch/torch_pickle.h"
#include "fuzz/file_of_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cria::FileOfBytes file("torch", data, size);
  if (const auto tensors = cria::ReadTorchArchive(file.path())) {
    for (const auto& [name, tensor] : *tensors) {
      if (tensor.offset + tensor.num_bytes() > tensor.file->size_bytes()) abort();
    }
  }
  (void)cria::ReadTorchPickle({reinterpret_cast<const char*>(data), size}, "pickle");
  return 0;
}
