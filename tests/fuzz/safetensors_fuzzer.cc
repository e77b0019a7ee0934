// Any bytes as a safetensors file: opening must end in tensors that lie inside the file, or an
// error.

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "converter/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::array path = std::to_array("/tmp/safetensors_fuzzer.XXXXXX");
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) return 0;
  if (write(descriptor, data, size) == static_cast<ssize_t>(size)) {
    (void)cria::ReadSafetensors(path.data());
  }
  close(descriptor);
  unlink(path.data());
  return 0;
}
