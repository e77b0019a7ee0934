#pragma once

#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "converter/convert.h"

namespace cria::cli {

// What --weights says.
struct WeightsChoice {
  Scheme scheme = Scheme::kQb4w;
  std::optional<bool> keeps_codes = {};  // Absent: the flag is not given.
};

struct CheckpointArguments {
  std::string checkpoint;
  WeightsChoice weights;
  ConvertOptions options;
};

// Adds the options for the checkpoint to convert and for how its tensors are stored.
void AddCheckpointOptions(CommandLine& command, CheckpointArguments& arguments);

// Sets how weights are stored. Without --weights, the codes of a GGUF file are kept, unless other
// options, which `chooses_codes` stands for, ask for new ones; everything else becomes int4. The
// checkpoint is on this machine.
Status ChooseWeights(bool chooses_codes, CheckpointArguments& arguments);

}  // namespace cria::cli
