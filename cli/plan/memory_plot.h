#pragma once

#include <memory>

#include "cli/plot/chart.h"
#include "core/platform.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "model/model_outline.h"
#include "raspberry-pi/boards.h"

namespace cria::cli {

// Where the model runs.
struct PlottedProgram {
  const raspberry_pi::Board* board = nullptr;  // Null: any board.
  platform::MemoryUsage program;               // What it uses before it loads a model.
};

// A picture of the memory that a model takes, part by part, over contexts up to the one it was made
// for. What boards have for a program are lines across: the boards near it, or the one of
// `where`. Every other option is that of `options`. A part is bytes of resident memory after a
// conversation has filled the context; parts that are nowhere a fiftieth of the whole are one.
Result<Figure> PlotMemory(const ModelOutline& model, EngineOptions options,
                          const PlottedProgram& where,
                          const std::shared_ptr<const ModelOutline>& draft_model);

}  // namespace cria::cli
