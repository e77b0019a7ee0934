#pragma once

#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "converter/convert.h"

namespace cria::cli {

// What --weights says.
struct WeightsChoice {
  Scheme scheme = Scheme::kW4G64;
  std::optional<bool> keeps_codes = {};  // Absent: the flag is not given.
};

struct CheckpointArguments {
  std::string checkpoint;
  WeightsChoice weights;
  std::optional<size_t> block_size;
  ConvertOptions options;
};

// Adds the options for the checkpoint to convert and for how its tensors are stored.
void AddCheckpointOptions(CommandLine& command, CheckpointArguments& arguments);

// What the options for codes ask for.
struct CodesChoice {
  bool are_chosen = false;   // Codes that the checkpoint does not have yet.
  bool are_rounded = false;  // Without regard to the inputs.
};

// Sets how weights are stored. Without --weights, the codes of a checkpoint in blocks are kept,
// unless new ones are chosen; everything else becomes int4. That is w4g64, or qb4w if weights are
// rounded or the size of blocks is given. The checkpoint is on this machine.
Status ChooseWeights(const CodesChoice& codes, CheckpointArguments& arguments);

// Whether matrices are calibrated without being asked for. With `rounds`, they are rounded plainly.
bool CalibratesByDefault(const ConvertOptions& options, bool rounds);

// How many tokens of the converter's own text these options take by default: more for few bits, and
// for a target, which may choose them.
size_t DefaultShippedTextTokens(const ConvertOptions& options, const ModelConfig& config);

}  // namespace cria::cli
