// Any bytes as a safetensors file: opening must end in tensors that lie inside the file, or an
// error.

#include "converter/hugging_face/safetensors.h"
#include "fuzz/file_of_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)cria::ReadSafetensors(cria::FileOfBytes("safetensors", data, size).path());
  return 0;
}
