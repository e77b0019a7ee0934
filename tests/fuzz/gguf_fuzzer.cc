// Any bytes as a GGUF file: opening must end in a checkpoint whose tensors can be read, or an
// error.

#include "converter/gguf/gguf_checkpoint.h"
#include "fuzz/file_of_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cria::FileOfBytes file("gguf", data, size);
  if (const auto checkpoint = cria::OpenGgufCheckpoint(file.path())) {
    cria::ReadAllTensors(*checkpoint);
  }
  (void)cria::OpenGgufVocabulary(file.path());
  return 0;
}
