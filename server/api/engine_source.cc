#include "server/api/engine_source.h"

#include <utility>

#include "core/format.h"

namespace cria::server {
namespace {

// What the plan has besides `program` and what the program takes for other purposes.
platform::MemoryUsage DemandOf(const MemoryPlan& plan, const platform::MemoryUsage& program) {
  platform::MemoryUsage demand = {
      .private_bytes = plan.private_bytes() - program.private_bytes,
      .file_mapped_bytes = plan.mapped_bytes() - program.file_mapped_bytes,
      .virtual_bytes = plan.address_space_bytes - program.virtual_bytes};
  for (const MemoryLine& line : plan.options.other_memory) {
    if (line.kind == MemoryKind::kPrivate) demand.private_bytes -= line.bytes;
    if (line.kind == MemoryKind::kMapped) demand.file_mapped_bytes -= line.bytes;
    demand.virtual_bytes -= line.bytes;
  }
  return demand;
}

MemoryBounds BoundsOf(const EngineOptions& options) {
  if (options.ignore_memory_limits) return {};
  return MemoryBounds::Of(platform::ReadMemoryLimits(), options.memory_limit_bytes);
}

}  // namespace

EngineSource::EngineSource(Options options)
    : options_(std::move(options)), bounds_(BoundsOf(options_.engine)) {
  description_.path = options_.path;
}

Status EngineSource::Inspect() {
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(options_.path));
  description_ = ModelDescription::Of(file, options_.engine);
  outline_ = OutlineOf(file);
  return {};
}

Result<MemoryPlan> EngineSource::PlanBeside(const platform::MemoryUsage& program) const {
  return PlanMemory(*outline_, ResolveOptions(*outline_, options_.engine), program);
}

bool EngineSource::Fits(const platform::MemoryUsage& program) {
  // Loading it decides.
  if (options_.is_only) return true;
  if (!outline_) {
    const Result<ModelFile> file = ModelFile::Open(options_.path);
    if (!file) return true;
    outline_ = OutlineOf(*file);
  }
  const Result<MemoryPlan> plan = PlanBeside(program);
  return !plan || cria::Fits(*plan, bounds_);
}

Status EngineSource::CheckFits(const platform::MemoryUsage& program) {
  if (Fits(program)) return {};
  CRIA_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanBeside(program));
  return cria::CheckFits(*outline_, plan, bounds_, program);
}

Result<std::unique_ptr<LoadedModel>> EngineSource::Load(const platform::MemoryUsage& program,
                                                        const std::atomic<bool>& ends) {
  EngineOptions engine_options = options_.engine;
  if (!options_.is_only) {
    engine_options.program = program;
    engine_options.packing.on_progress = [&ends](uint64_t, uint64_t, std::string_view) {
      return !ends;
    };
  }
  Result<std::unique_ptr<Engine>> engine = options_.load(options_.path, std::move(engine_options));
  if (!engine) {
    // The file may be another one by now.
    outline_.reset();
    return std::unexpected(std::move(engine.error()));
  }
  ServedModel::Parts parts = {.engine = std::move(*engine),
                              .writing_time = options_.prompt_writing_time};
  // Nobody reads it before.
  if (options_.is_only) description_ = ModelDescription::Of(parts.engine->file(), options_.engine);
  const MemoryPlan& plan = parts.engine->memory_plan();
  parts.demand = options_.is_only ? platform::MemoryUsage{.private_bytes = plan.private_bytes(),
                                                          .file_mapped_bytes = plan.mapped_bytes()}
                                  : DemandOf(plan, program);
  if (!options_.prompt_folder.empty()) {
    CRIA_ASSIGN_OR_RETURN(parts.prompts, PromptFiles::Open({.folder = options_.prompt_folder,
                                                            .max_bytes = options_.max_prompt_bytes,
                                                            .on_notice = options_.on_notice},
                                                           *parts.engine));
  }
  auto model = std::make_unique<ServedModel>(options_.name, std::move(parts), metrics);
  if (options_.on_loaded) options_.on_loaded(*model);
  return model;
}

}  // namespace cria::server
