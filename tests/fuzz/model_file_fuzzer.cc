// Any bytes as the metadata of a model file, behind a preamble that vouches for them: opening must
// end in a model or an error.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/file_layout.h"
#include "model/model_file.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cria;
  const std::span<const std::byte> metadata(reinterpret_cast<const std::byte*>(data), size);
  FilePreamble preamble;
  preamble.metadata_bytes = size;
  preamble.file_bytes = AlignUp(sizeof preamble + size, kSectionAlignment) + kSectionAlignment;
  preamble.metadata_digest = Digest128(metadata);
  preamble.preamble_checksum = PreambleChecksum(preamble);

  std::array path = std::to_array("/tmp/model_file_fuzzer.XXXXXX");
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) return 0;
  const bool written = write(descriptor, &preamble, sizeof preamble) == sizeof preamble &&
                       write(descriptor, data, size) == static_cast<ssize_t>(size) &&
                       ftruncate(descriptor, static_cast<off_t>(preamble.file_bytes)) == 0;
  if (written) {
    if (const auto file = ModelFile::Open(path.data())) {
      // What validation let through must be usable.
      if (const auto tokenizer = Tokenizer::Create(file->vocabulary())) {
        (void)tokenizer->Encode("A text, with 123 and \xF0\x9F\xA6\x99.");
      }
      (void)file->VerifyPayload();
    }
  }
  close(descriptor);
  unlink(path.data());
  return 0;
}
