#include "cli/convert/converter_engine.h"

#include <utility>

namespace cria::cli {

Result<std::unique_ptr<Engine>> LoadInConverter(platform::File file, const EngineOptions& options) {
  auto engine = Engine::Load(std::move(file), options);
  if (engine) return engine;
  const RemedyKind remedy = engine.error().remedy().kind;
  const bool is_of_running = remedy == RemedyKind::kFitMemory || remedy == RemedyKind::kLessContext;
  if (!is_of_running) return engine;
  return Fail(engine.error().code(), engine.error().message());
}

}  // namespace cria::cli
