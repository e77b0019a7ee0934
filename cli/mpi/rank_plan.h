#pragma once

#include <cstddef>
#include <string>

#include "cli/plan/memory_report.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "model/model_file.h"
#include "ranks/collective_link.h"
#include "ranks/rank_costs.h"

namespace cria::cli {

// Leaves the part of one rank in `model`, as it is when so many ranks run; they are counted from 0.
Status TakePartOf(size_t rank, const ranks::LinkOptions& link_options, ModelFile& model);

// Prints what each rank takes and sends, and how fast they are expected to be on the board of the
// arguments, if there is one.
Status PrintRankPlan(const ModelFile& model, const EngineOptions& options,
                     const ranks::LinkOptions& link_options, const ranks::Network& network,
                     const PlanArguments& arguments);

}  // namespace cria::cli
