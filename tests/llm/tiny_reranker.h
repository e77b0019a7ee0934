#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "converter/convert.h"
#include "reference/reference_model.h"
#include "support/checkpoint_writer.h"
#include "support/convert_model.h"
#include "support/files.h"
#include "support/tiny_checkpoint.h"

namespace cria {

// A random Qwen3 whose vocabulary has "yes" and "no", as a checkpoint whose README.md has the title
// of Qwen3-Reranker.
class TinyReranker {
 public:
  // Writes the checkpoint into `folder`.
  TinyReranker(support::CheckpointSpec spec, const std::filesystem::path& folder)
      : model_(support::MakeModel(WithLength(spec))), folder_(folder) {
    support::WriteHuggingFaceDirectory(model_, folder, spec.format);
    for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
      std::string text = support::ReadFile(folder / name);
      Replace("<|start_header_id|>", "yes", text);
      Replace("<|end_header_id|>", "no", text);
      support::WriteFile(folder / name, text);
    }
    support::WriteFile(folder / "README.md", "---\nlicense: any\n---\n# Qwen3-Reranker-0.6B\n");
  }

  void Convert(const std::filesystem::path& path, bool overwrite = false) const {
    support::ConvertModel(folder_, path, {.weights = Scheme::kF32, .overwrite = overwrite});
  }
  const reference::ReferenceModel& model() const { return model_; }
  // The places of the two in AddedTokens.
  int yes() const { return FirstSpecial() + 2; }
  int no() const { return FirstSpecial() + 3; }

 private:
  static support::CheckpointSpec& WithLength(support::CheckpointSpec& spec) {
    spec.config.max_position_embeddings = 1024;
    return spec;
  }
  static void Replace(std::string_view from, std::string_view to, std::string& text) {
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }
  int FirstSpecial() const {
    return static_cast<int>(model_.config.vocab_size - support::kNumNamedSpecialTokens);
  }

  reference::ReferenceModel model_;
  std::filesystem::path folder_;
};

}  // namespace cria
