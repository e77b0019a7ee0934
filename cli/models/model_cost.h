#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/models/model_source.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

// What it takes to get a model, as cria-convert estimates it. What is absent is not known before
// the checkpoint is there.
struct ModelCost {
  std::string licence;  // Empty if it is not known.
  std::optional<uint64_t> download_bytes;
  std::optional<uint64_t> file_bytes;
  std::optional<double> convert_seconds;
  std::optional<uint64_t> peak_bytes;  // While it runs with these options.
  uint64_t context_tokens = 0;
};

// Asks cria-convert, which asks the hub. `downloads` is where it may keep a checkpoint's
// configuration; `lock` is as for RunConverter.
Result<ModelCost> AskForCost(const ModelSource& source, const EngineOptions& options,
                             const std::filesystem::path& downloads, int lock);

// What is going to happen, in lines for people; safe for a terminal.
std::string CostText(const ModelSource& source, const ModelCost& cost,
                     const std::filesystem::path& store);

// Fails if the download and the model do not fit the disk of the folder.
Status CheckDisk(const ModelSource& source, const ModelCost& cost,
                 const std::filesystem::path& store);

}  // namespace cria::cli
