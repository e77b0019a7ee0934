// Any bytes as a model of llama2.c, and as its tokenizer.bin: opening must end in a checkpoint
// whose tensors can be read, in a vocabulary, or in an error.

#include "converter/llama2c/llama2c_checkpoint.h"
#include "fuzz/file_of_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cria::FileOfBytes file("llama2c", data, size);
  if (const auto checkpoint = cria::OpenLlama2cCheckpoint(file.path())) {
    cria::ReadAllTensors(*checkpoint);
  }
  if (auto material = cria::ReadLlama2cTokenizer(file.path())) {
    (void)cria::ImportTokenizer(*std::move(material), std::nullopt);
  }
  return 0;
}
