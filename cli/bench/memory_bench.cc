#include "cli/bench/memory_bench.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/made_up_prompt.h"
#include "cli/engine_loader.h"
#include "cli/parallel_sequences.h"
#include "cli/plan/memory_report.h"
#include "cli/report.h"
#include "core/format_bytes.h"
#include "decode/open_sequence.h"
#include "llm/generator.h"
#include "llm/turn.h"
#include "model/model_outline.h"

namespace cria::cli {
namespace {

// The memory that the process used after a step.
struct Measurement {
  const char* after;
  platform::MemoryUsage usage;
};

// Computes as many rows of logits as drafts take at most: a few short answers do not have to.
Status RunAllLogitRows(Decoder& decoder) {
  const size_t rows = std::min(decoder.max_logit_rows(), decoder.chunk_tokens());
  CRIA_ASSIGN_OR_RETURN(const OpenSequence sequence,
                        OpenSequence::Create(decoder.sequences(), rows));
  const std::vector<int32_t> tokens = MakeUpPrompt(rows, decoder.vocab_size());
  CRIA_RETURN_IF_ERROR(decoder.ForwardSequence(sequence.id(), tokens, 0, rows));
  return decoder.Logits(0).transform([](std::span<float>) {});
}

// Loads the model and fills its context: most of it with a prompt, the last part token by token.
Result<std::vector<Measurement>> MeasureMemory(Engine& engine,
                                               const platform::MemoryUsage& program) {
  std::vector<Measurement> measurements = {{"program", program}};
  const auto measure = [&](const char* after) {
    measurements.push_back({after, platform::ReadMemoryUsage()});
  };
  measure("loading");
  CRIA_RETURN_IF_ERROR(RunAllLogitRows(engine.decoder()));
  std::vector<std::unique_ptr<Session>> sessions(engine.decoder().max_sequences());
  for (std::unique_ptr<Session>& session : sessions) session = engine.NewSession();
  const size_t vocab_size = engine.decoder().vocab_size();
  const size_t share = sessions[0]->share_tokens();
  const size_t generated = std::min<size_t>(share - 1, 16);
  const std::vector<int32_t> prompt = MakeUpPrompt(share - generated, vocab_size);
  const auto generate = [&](Session& session, size_t count) -> Status {
    CRIA_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create({.temperature = 0.0f}, vocab_size));
    return Generate(session, {.max_tokens = count}, sampler,
                    [](const GeneratedToken&) { return true; })
        .transform([](StopReason) {});
  };
  CRIA_RETURN_IF_ERROR(
      Turn(*sessions[0]).Prefill(std::span(prompt).first(std::min(prompt.size(), size_t{1}))));
  CRIA_RETURN_IF_ERROR(generate(*sessions[0], 1));
  measure("first token");
  // Each has a text of its own, so that all pages are filled.
  for (size_t i = 0; i < sessions.size(); ++i) {
    std::vector<int32_t> text = prompt;
    std::ranges::rotate(text, text.begin() + static_cast<ptrdiff_t>(i % text.size()));
    CRIA_RETURN_IF_ERROR(Turn(*sessions[i]).Prefill(text));
  }
  measure(sessions.size() == 1 ? "prompt" : "prompts");
  CRIA_RETURN_IF_ERROR(
      RunSequences(sessions.size(), [&](size_t i) { return generate(*sessions[i], generated); }));
  measure("full context");
  return measurements;
}

void PrintTable(const MemoryPlan& plan, const std::vector<Measurement>& measurements) {
  std::printf("%-14s %12s %12s %12s %13s\n", "after", "private", "file-mapped", "peak",
              "major faults");
  for (const Measurement& measurement : measurements) {
    const platform::MemoryUsage& usage = measurement.usage;
    std::printf("%-14s %12s %12s %12s %13llu\n", measurement.after,
                FormatBytes(usage.private_bytes).c_str(),
                FormatBytes(usage.file_mapped_bytes).c_str(),
                FormatBytes(usage.peak_resident_bytes).c_str(),
                static_cast<unsigned long long>(usage.major_faults));
  }
  std::printf("%-14s %12s %12s %12s\n", "planned", FormatBytes(plan.private_bytes()).c_str(),
              FormatBytes(plan.mapped_bytes()).c_str(), FormatBytes(plan.peak_bytes()).c_str());
  const auto planned = static_cast<double>(plan.private_bytes());
  const auto measured = static_cast<double>(measurements.back().usage.private_bytes);
  std::printf("private memory measured is %+.2f%% (%+.0f bytes) off the plan\n",
              100.0 * (measured - planned) / planned, measured - planned);
}

nlohmann::ordered_json MeasurementsJson(const ModelOutline& model, const MemoryPlan& plan,
                                        const std::vector<Measurement>& measurements) {
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  for (const Measurement& measurement : measurements) {
    const platform::MemoryUsage& usage = measurement.usage;
    measured.push_back({{"after", measurement.after},
                        {"private_bytes", usage.private_bytes},
                        {"file_mapped_bytes", usage.file_mapped_bytes},
                        {"peak_resident_bytes", usage.peak_resident_bytes},
                        {"peak_virtual_bytes", usage.peak_virtual_bytes},
                        {"major_faults", usage.major_faults}});
  }
  return {{"plan", PlanJson(model, plan)}, {"measured", measured}};
}

}  // namespace

Status RunMemoryBench(const std::string& model_path, const EngineOptions& options, bool json) {
  const platform::MemoryUsage program = platform::ReadMemoryUsage();
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, LoadEngine(model_path, options));
  CRIA_ASSIGN_OR_RETURN(const std::vector<Measurement> measurements,
                        MeasureMemory(*engine, program));
  if (json) {
    PrintJson(MeasurementsJson(OutlineOf(engine->file()), engine->memory_plan(), measurements));
  } else {
    PrintTable(engine->memory_plan(), measurements);
  }
  return {};
}

}  // namespace cria::cli
