// GET /metrics, as Prometheus reads it.

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
    Add(name, "counter", help, value);
  }
  void Gauge(std::string_view name, std::string_view help, double value) {
    Add(name, "gauge", help, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  void Add(std::string_view name, std::string_view type, std::string_view help, double value) {
    text_ +=
        Format("# HELP cria_{0} {1}\n# TYPE cria_{0} {2}\ncria_{0} {3}\n", name, help, type, value);
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

void AddAnswers(MetricsText& text, const Metrics& metrics) {
  text.Counter("answers_total", "Answers that came to their end.", Number(metrics.answers));
  text.Counter("answers_cancelled_total", "Answers whose client left.",
               Number(metrics.cancelled_answers));
  text.Counter("answers_failed_total", "Answers that failed in the server.",
               Number(metrics.failed_answers));
  text.Counter("prompt_tokens_total", "Tokens of prompts that were computed.",
               Number(metrics.prompt_tokens));
  text.Counter("prompt_tokens_cached_total", "Tokens of prompts that the KV cache had.",
               Number(metrics.cached_tokens));
  text.Counter("prompt_seconds_total", "Time for prompts, with waiting for other answers.",
               Number(metrics.prompt_microseconds) / 1e6);
  text.Counter("tokens_predicted_total", "Tokens that were generated.",
               Number(metrics.completion_tokens));
  text.Counter("tokens_predicted_seconds_total", "Time for generating them.",
               Number(metrics.completion_microseconds) / 1e6);
  text.Counter("tokens_drafted_total", "Drafts that the model ran.",
               Number(metrics.drafted_tokens));
  text.Counter("tokens_drafted_accepted_total", "Drafts that were right.",
               Number(metrics.accepted_tokens));
}

void AddMemory(MetricsText& text, ServedModel& model) {
  Engine& engine = model.engine;
  const auto pages = [&](size_t tokens) {
    return Number((tokens + kKvPageTokens - 1) / kKvPageTokens);
  };
  const Scheduler::Stats stats = engine.scheduler().stats();
  const MemoryPlan& plan = engine.memory_plan();
  const platform::MemoryUsage usage = platform::ReadMemoryUsage();
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
  text.Gauge("memory_private_bytes", "Private memory.", Number(usage.private_bytes));
  text.Gauge("memory_private_planned_bytes", "Private memory by the plan.",
             Number(plan.private_bytes()));
  text.Gauge("memory_mapped_bytes", "Resident pages of files.", Number(usage.file_mapped_bytes));
  text.Gauge("memory_mapped_planned_bytes", "Resident pages of files by the plan.",
             Number(plan.mapped_bytes()));
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
  MetricsText text;
  AddWork(text, exchange.state);
  AddAnswers(text, exchange.model().metrics);
  AddMemory(text, exchange.model());
  if (const ThermalPacer* const pacer = exchange.model().engine.pacer()) AddHeat(text, *pacer);
  if (exchange.model().prompts) AddPrompts(text, *exchange.model().prompts);
  Response(exchange.http, exchange.style)
      .SendText("text/plain; version=0.0.4; charset=utf-8", text.Take());
}

}  // namespace cria::server
