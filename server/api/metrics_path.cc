// GET /metrics, as Prometheus reads it.

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "core/format.h"
#include "core/platform.h"
#include "server/api/paths.h"

namespace cria::server {
namespace {

class MetricsText {
 public:
  void Counter(std::string_view name, std::string_view help, double value) {
    AddHead(name, "counter", help);
    AddValue(name, "", value);
  }
  void Gauge(std::string_view name, std::string_view help, double value) {
    AddHead(name, "gauge", help);
    AddValue(name, "", value);
  }
  // A figure of each model: value(index). With several models, it has the model's name.
  template <typename Value>
  void Counters(std::string_view name, std::string_view help, const ModelStore& models,
                const Value& value) {
    AddHead(name, "counter", help);
    AddValues(name, models, value);
  }
  template <typename Value>
  void Gauges(std::string_view name, std::string_view help, const ModelStore& models,
              const Value& value) {
    AddHead(name, "gauge", help);
    AddValues(name, models, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  void AddHead(std::string_view name, std::string_view type, std::string_view help) {
    text_ += Format("# HELP cria_{0} {1}\n# TYPE cria_{0} {2}\n", name, help, type);
  }
  void AddValue(std::string_view name, std::string_view label, double value) {
    text_ += Format("cria_{}{} {}\n", name, label, value);
  }
  template <typename Value>
  void AddValues(std::string_view name, const ModelStore& models, const Value& value) {
    for (size_t i = 0; i < models.size(); ++i) {
      std::string label;
      if (models.size() > 1) {
        label = "{model=\"";
        // Prometheus escapes what JSON does.
        AppendEscaped(models.name(i), label);
        label += "\"}";
      }
      AddValue(name, label, value(i));
    }
  }

  std::string text_;
};

double Number(uint64_t count) { return static_cast<double>(count); }
double Number(const std::atomic<uint64_t>& count) {
  return Number(count.load(std::memory_order_relaxed));
}

void AddWork(MetricsText& text, const ApiState& state) {
  const WorkQueue::Figures work = state.work.figures();
  text.Gauge("requests_processing", "Requests that are being answered.", Number(work.running));
  text.Gauge("requests_waiting", "Requests in the queue.", Number(work.waiting));
  text.Gauge("requests_waiting_max", "How many requests the queue holds.",
             Number(state.work.max_waiting()));
  text.Counter("requests_accepted_total", "Requests that came into the queue.",
               Number(work.accepted));
  text.Counter("requests_refused_total", "Requests for which the queue was full.",
               Number(work.refused));
  text.Counter("requests_abandoned_total", "Requests whose client left before their turn.",
               Number(work.abandoned));
}

void AddAnswers(MetricsText& text, const ApiState& state) {
  const auto add = [&](std::string_view name, std::string_view help,
                       std::atomic<uint64_t> Metrics::* figure, double unit = 1.0) {
    text.Counters(name, help, state.models,
                  [&](size_t i) { return Number(state.source(i).metrics.*figure) / unit; });
  };
  add("answers_total", "Answers that came to their end.", &Metrics::answers);
  add("answers_cancelled_total", "Answers whose client left.", &Metrics::cancelled_answers);
  add("answers_failed_total", "Answers that failed in the server.", &Metrics::failed_answers);
  add("prompt_tokens_total", "Tokens of prompts that were computed.", &Metrics::prompt_tokens);
  add("prompt_tokens_cached_total", "Tokens of prompts that the KV cache had.",
      &Metrics::cached_tokens);
  add("prompt_seconds_total", "Time for prompts, with waiting for other answers.",
      &Metrics::prompt_microseconds, 1e6);
  add("tokens_predicted_total", "Tokens that were generated.", &Metrics::completion_tokens);
  add("tokens_predicted_seconds_total", "Time for generating them.",
      &Metrics::completion_microseconds, 1e6);
  add("tokens_drafted_total", "Drafts that the model ran.", &Metrics::drafted_tokens);
  add("tokens_drafted_accepted_total", "Drafts that were right.", &Metrics::accepted_tokens);
}

// What only a server with several models has.
void AddModels(MetricsText& text, const ModelStore& models) {
  const auto figures = [&](auto of) {
    return [&models, of](size_t i) { return of(models.figures(i)); };
  };
  text.Gauges("model_loaded", "1 if the model is loaded.", models,
              figures([](const ModelStore::Figures& model) {
                return model.state == ModelStore::State::kLoaded ? 1.0 : 0.0;
              }));
  text.Gauges("model_planned_bytes", "Memory of the model by its plan, while it is loaded.", models,
              figures([](const ModelStore::Figures& model) {
                return Number(model.demand.private_bytes + model.demand.file_mapped_bytes);
              }));
  text.Counters("model_loads_total", "How many times the model was loaded.", models,
                figures([](const ModelStore::Figures& model) { return Number(model.num_loads); }));
  text.Counters("model_load_seconds_total", "Time for loading it.", models,
                figures([](const ModelStore::Figures& model) {
                  return std::chrono::duration<double>(model.load_time).count();
                }));
  text.Gauge("models_requests_waiting", "Requests that wait for their model.",
             Number(models.num_waiting()));
}

void AddUsage(MetricsText& text, uint64_t planned_private, uint64_t planned_mapped) {
  const platform::MemoryUsage usage = platform::ReadMemoryUsage();
  text.Gauge("memory_private_bytes", "Private memory.", Number(usage.private_bytes));
  text.Gauge("memory_private_planned_bytes", "Private memory by the plan.",
             Number(planned_private));
  text.Gauge("memory_mapped_bytes", "Resident pages of files.", Number(usage.file_mapped_bytes));
  text.Gauge("memory_mapped_planned_bytes", "Resident pages of files by the plan.",
             Number(planned_mapped));
}

void AddCache(MetricsText& text, ServedModel& model) {
  Engine& engine = model.engine;
  const auto pages = [&](size_t tokens) {
    return Number((tokens + kKvPageTokens - 1) / kKvPageTokens);
  };
  const Scheduler::Stats stats = engine.scheduler().stats();
  text.Gauge("kv_cache_tokens", "Tokens in the KV cache; those of two sequences count twice.",
             Number(stats.num_kept_tokens));
  text.Gauge("kv_cache_pages", "Pages of the KV cache.", pages(engine.decoder().cache_tokens()));
  text.Gauge("kv_page_tokens", "Tokens of a page.", Number(kKvPageTokens));
  text.Counter("kv_cache_shared_tokens_total", "Tokens found in another sequence.",
               Number(stats.num_shared_tokens));
  text.Counter("prompt_tokens_repeated_total",
               "Tokens computed again because others before them had changed.",
               Number(stats.repeats.num_tokens));
  text.Counter("kv_cache_stored_tokens_total", "Tokens read from the disk.",
               Number(stats.num_stored_tokens));
}

void AddHeat(MetricsText& text, const ThermalPacer& pacer) {
  const ThermalPacer::Figures figures = pacer.figures();
  text.Gauge("temperature_max_celsius", "Near it, the model computes more slowly.",
             pacer.max_celsius());
  if (figures.celsius) {
    text.Gauge("temperature_celsius", "The processor's, when tokens were last computed.",
               *figures.celsius);
  }
  text.Gauge("heat_threads", "Threads that the heat allows.",
             static_cast<double>(figures.num_threads));
  text.Counter("heat_pause_seconds_total", "Pauses for the processor to cool.",
               figures.paused_seconds);
}

void AddPrompts(MetricsText& text, const PromptFiles& prompts) {
  const PromptFiles::Figures figures = prompts.figures();
  text.Gauge("prompt_files", "Prompts on the disk.", Number(figures.num_files));
  text.Gauge("prompt_files_bytes", "Bytes of their files.", Number(figures.bytes));
  text.Gauge("prompt_files_max_bytes", "How many bytes they may have.", Number(figures.max_bytes));
  text.Counter("prompt_files_read_total", "Prompts that were read from the disk.",
               Number(figures.files_read));
  text.Counter("prompt_files_written_total", "Prompts that were written.",
               Number(figures.files_written));
  text.Counter("prompt_files_refused_total", "Files of prompts that were of no use.",
               Number(figures.files_refused));
}

}  // namespace

void HandleMetrics(Exchange& exchange) {
  const ApiState& state = exchange.state;
  MetricsText text;
  AddWork(text, state);
  AddAnswers(text, state);
  if (state.has_one_model()) {
    const ModelStore::Lease lease = std::move(*state.models.Peek(0));
    auto& model = static_cast<ServedModel&>(lease.model());
    const MemoryPlan& plan = model.engine.memory_plan();
    AddCache(text, model);
    AddUsage(text, plan.private_bytes(), plan.mapped_bytes());
    if (const ThermalPacer* const pacer = model.engine.pacer()) AddHeat(text, *pacer);
    if (model.parts.prompts) AddPrompts(text, *model.parts.prompts);
  } else {
    const platform::MemoryUsage planned = state.models.planned();
    AddModels(text, state.models);
    AddUsage(text, planned.private_bytes, planned.file_mapped_bytes);
  }
  Response(exchange.http, exchange.style)
      .SendText("text/plain; version=0.0.4; charset=utf-8", text.Take());
}

}  // namespace cria::server
