#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c_api/failure.h"
#include "c_api/model_options.h"
#include "c_api/versioned_struct.h"
#include "llm/memory_plan.h"

// NOLINTNEXTLINE(readability-identifier-naming): the C API's name.
struct cria_plan {
  std::string name;
  cria_model_info info;
  cria::ModelOutline outline;
  cria::MemoryPlan plan;
  std::vector<std::string> part_names;  // One for each line of the plan.
  cria::platform::MemoryUsage program;
  std::optional<uint64_t> memory_limit_bytes;
};

namespace cria::c_api {
namespace {

static_assert(sizeof(cria_plan_totals) ==
              offsetof(cria_plan_totals, address_space_bytes) + sizeof(uint64_t));

Status CreatePlan(const cria_model_options* given, cria_plan** plan) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(plan, "plan"));
  *plan = nullptr;
  const platform::MemoryUsage program = platform::ReadMemoryUsage();
  CRIA_ASSIGN_OR_RETURN(const cria_model_options options, ReadModelOptions(given));
  CRIA_ASSIGN_OR_RETURN(const EngineOptions engine_options, ToEngineOptions(options));
  CRIA_ASSIGN_OR_RETURN(platform::File source, OpenSource(options));
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, ModelFile::Open(std::move(source)));
  ModelOutline outline = OutlineOf(file);
  CRIA_ASSIGN_OR_RETURN(std::shared_ptr<const ModelOutline> draft_outline,
                        OutlineOfDraftModel(engine_options, file));
  CRIA_RETURN_IF_ERROR(ValidateDraftOptions(engine_options.drafts));
  const MemoryPlanOptions resolved =
      ResolveOptions(outline, engine_options, std::move(draft_outline));
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(outline.config, resolved.decoder));
  CRIA_ASSIGN_OR_RETURN(MemoryPlan memory, PlanMemory(outline, resolved, program));
  auto* made = new cria_plan{.name = std::string(file.name()),
                             .info = {},
                             .outline = std::move(outline),
                             .plan = std::move(memory),
                             .part_names = {},
                             .program = program,
                             .memory_limit_bytes = engine_options.memory_limit_bytes};
  for (const MemoryLine& line : made->plan.lines) made->part_names.push_back(line.name());
  made->info = DescribeModel(file, resolved, made->name.c_str());
  *plan = made;
  return {};
}

Status GetTotals(const cria_plan* plan, cria_plan_totals* totals) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(plan, "plan"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(totals, "totals"));
  const MemoryPlan& memory = plan->plan;
  return WriteStruct<cria_plan_totals>({.struct_size = sizeof(cria_plan_totals),
                                        .private_bytes = memory.private_bytes(),
                                        .mapped_bytes = memory.mapped_bytes(),
                                        .peak_bytes = memory.peak_bytes(),
                                        .address_space_bytes = memory.address_space_bytes},
                                       totals, "cria_plan_totals");
}

Status GetInfo(const cria_plan* plan, cria_model_info* info) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(plan, "plan"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(info, "info"));
  return WriteStruct(plan->info, info, "cria_model_info");
}

Status Check(const cria_plan* plan) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(plan, "plan"));
  return CheckFits(plan->outline, plan->plan,
                   MemoryBounds::Of(platform::ReadMemoryLimits(), plan->memory_limit_bytes),
                   plan->program);
}

}  // namespace
}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_plan_create(const cria_model_options* options, cria_plan** plan) {
  return c_api::Guarded([&] { return c_api::CreatePlan(options, plan); });
}

void cria_plan_free(cria_plan* plan) { delete plan; }

cria_status cria_plan_get_totals(const cria_plan* plan, cria_plan_totals* totals) {
  return c_api::Guarded([&] { return c_api::GetTotals(plan, totals); });
}

cria_status cria_plan_get_info(const cria_plan* plan, cria_model_info* info) {
  return c_api::Guarded([&] { return c_api::GetInfo(plan, info); });
}

size_t cria_plan_num_parts(const cria_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.lines.size();
}

const char* cria_plan_get_part(const cria_plan* plan, size_t index, uint64_t* bytes,
                               int* is_mapped) {
  if (index >= cria_plan_num_parts(plan)) return nullptr;
  const cria::MemoryLine& line = plan->plan.lines[index];
  if (bytes != nullptr) *bytes = line.bytes;
  if (is_mapped != nullptr) *is_mapped = line.kind != cria::MemoryKind::kPrivate;
  return plan->part_names[index].c_str();
}

cria_status cria_plan_check(const cria_plan* plan) {
  return c_api::Guarded([&] { return c_api::Check(plan); });
}
