#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cria/error.h"
#include "llm/engine.h"
#include "model/model_outline.h"

namespace cria::cli {

struct PlanArguments {
  std::string board;  // Name of a board of raspberry_pi::Boards that is checked; may be empty.
  bool json = false;
};

// Prints the memory that the model will take with these options, part by part.
Status PrintPlan(const ModelOutline& model, EngineOptions options, const PlanArguments& arguments,
                 const platform::MemoryUsage& program);

nlohmann::ordered_json PlanJson(const ModelOutline& model, const MemoryPlan& plan);

}  // namespace cria::cli
