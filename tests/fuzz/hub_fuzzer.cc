// Any bytes as what the hub says about a model: reading must end in files with safe names or an
// error, and so must the choice of files. corpus/hub/ has answers to begin with.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "converter/hub/checkpoint_name.h"
#include "converter/hub/file_choice.h"
#include "converter/hub/model_info.h"
#include "converter/hub/url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cria::hub;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A redirect names a URL: without TLS, only this machine.
  if (const auto url = ParseUrl(text, "a redirect")) {
    if (url->scheme != "https" && !url->is_loopback()) std::abort();
  }
  const auto info = ParseModelInfo(text, "hf:a/b");
  if (!info) return 0;
  if (info->commit.size() != 40) std::abort();
  for (const RemoteFile& file : info->files) {
    if (!IsSafePath(file.path) || info->Find(file.path) != &file) std::abort();
  }
  for (const char* gguf : {"", "f/model-00001-of-00002.gguf"}) {
    const CheckpointName name = {.organization = "a", .name = "b", .file = gguf};
    for (const Purpose purpose : {Purpose::kConversion, Purpose::kVocabulary, Purpose::kPlan}) {
      const auto chosen = ChooseFiles(name, *info, purpose);
      if (!chosen) continue;
      for (const RemoteFile& file : *chosen) {
        if (info->Find(file.path) == nullptr) std::abort();
      }
    }
  }
  return 0;
}
