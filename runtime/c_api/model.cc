#include <thread>
#include <utility>

#include "c_api/failure.h"
#include "c_api/handles.h"
#include "c_api/model_options.h"
#include "c_api/versioned_struct.h"

namespace cria::c_api {
namespace {

thread_local ModelUse* innermost_use = nullptr;

// Calls the caller's progress callback, but only on the thread that loads the model. Other threads
// pack, too, but the caller's virtual machine may not know them.
class PackingReport {
 public:
  explicit PackingReport(const cria_model_options& options) : options_(options) {}

  // Called once at a time, on any thread.
  bool Update(uint64_t done_bytes, uint64_t total_bytes) {
    if (std::this_thread::get_id() == thread_) Tell(done_bytes, total_bytes);
    total_bytes_ = total_bytes;
    return !is_stopped_;
  }

  // The last matrix may have been packed by another thread.
  void Finish() {
    if (told_bytes_ < total_bytes_) Tell(total_bytes_, total_bytes_);
  }

 private:
  void Tell(uint64_t done_bytes, uint64_t total_bytes) {
    told_bytes_ = done_bytes;
    if (options_.on_progress(done_bytes, total_bytes, options_.callback_data) != 0) {
      is_stopped_ = true;
    }
  }

  const cria_model_options& options_;
  const std::thread::id thread_ = std::this_thread::get_id();
  uint64_t told_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  bool is_stopped_ = false;
};

Status Load(const cria_model_options* given, cria_model** model) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(model, "model"));
  *model = nullptr;
  CRIA_ASSIGN_OR_RETURN(const cria_model_options options, ReadModelOptions(given));
  CRIA_ASSIGN_OR_RETURN(EngineOptions engine_options, ToEngineOptions(options));
  PackingReport report(options);
  if (options.on_progress != nullptr) {
    engine_options.packing.on_progress = [&](uint64_t done, uint64_t total, std::string_view) {
      return report.Update(done, total);
    };
  }
  if (options.on_notice != nullptr) {
    engine_options.on_notice = [&](std::string_view sentence) {
      options.on_notice(std::string(sentence).c_str(), options.callback_data);
    };
    engine_options.packing.on_notice = engine_options.on_notice;
  }
  CRIA_ASSIGN_OR_RETURN(platform::File file, OpenSource(options));
  auto loaded = std::make_shared<LoadedModel>();
  CRIA_ASSIGN_OR_RETURN(loaded->engine, Engine::Load(std::move(file), engine_options));
  report.Finish();
  loaded->name = loaded->engine->file().name();
  *model = new cria_model{std::move(loaded)};
  return {};
}

Status GetInfo(const cria_model* model, cria_model_info* info) {
  CRIA_RETURN_IF_ERROR(CheckNotNull(model, "model"));
  CRIA_RETURN_IF_ERROR(CheckNotNull(info, "info"));
  const Engine& engine = *model->loaded->engine;
  return WriteStruct(
      DescribeModel(engine.file(), engine.memory_plan().options, model->loaded->name.c_str()), info,
      "cria_model_info");
}

}  // namespace

Status ModelUse::Begin(const LoadedModel& model) {
  for (const ModelUse* use = innermost_use; use != nullptr; use = use->outer_) {
    if (use->model_ != &model) continue;
    return Fail(ErrorCode::kUsage,
                "the model is in use: the caller of this callback waits for an answer; call this "
                "function when it has ended, or from another thread");
  }
  model_ = &model;
  outer_ = innermost_use;
  innermost_use = this;
  return {};
}

ModelUse::~ModelUse() {
  if (model_ != nullptr) innermost_use = outer_;
}

}  // namespace cria::c_api

namespace c_api = cria::c_api;

cria_status cria_model_load(const cria_model_options* options, cria_model** model) {
  return c_api::Guarded([&] { return c_api::Load(options, model); });
}

void cria_model_free(cria_model* model) { delete model; }

cria_status cria_model_get_info(const cria_model* model, cria_model_info* info) {
  return c_api::Guarded([&] { return c_api::GetInfo(model, info); });
}

void cria_model_cancel(cria_model* model) {
  if (model != nullptr) ++model->loaded->cancels;
}
