#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/plan/program_memory.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "model/model_outline.h"

namespace cria::cli {

struct PlanArguments {
  // Name of a board of raspberry_pi::Boards that is checked; may be empty. Of several ranks, there
  // may be one name for each, with commas between them.
  std::string board;
  std::optional<uint64_t> memory_limit_bytes;
  bool json = false;
  // Where PlotMemory's picture is written; empty: nowhere.
  std::string plot_path;
  ProgramName program = ProgramName::kCria;
};

// Prints the memory that the model will take with these options, part by part. Fails after that if
// it does not fit the board or the limit.
Status PrintPlan(const ModelOutline& model, EngineOptions options, const PlanArguments& arguments,
                 const std::shared_ptr<const ModelOutline>& draft_model = nullptr);

// What a disk makes of the experts that a token has to read with so much memory, if a token whose
// weights are all in memory takes `seconds`; empty if it reads none.
std::string DiskText(const MemoryPlan& plan, uint64_t resident_bytes, double seconds);

// The parts of a plan, each with its name, kind and bytes.
nlohmann::ordered_json LinesJson(const MemoryPlan& plan);
nlohmann::ordered_json PlanJson(const ModelOutline& model, const MemoryPlan& plan);

}  // namespace cria::cli
