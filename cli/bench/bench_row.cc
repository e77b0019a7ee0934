#include "cli/bench/bench_row.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/start_engine.h"
#include "cli/statistics.h"
#include "core/format.h"
#include "core/platform.h"
#include "model/tensor_table.h"
#include "ops/kv_cache_view.h"
#include "ops/simd_target_name.h"
#include "xnn/packing.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Iso8601(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[sizeof "2026-01-01T00:00:00Z"] = {};
  std::strftime(text, sizeof text, "%FT%TZ", &parts);
  return text;
}

// `numerators[i] / denominators[i]` for every repetition; empty if one of them is empty.
std::vector<double> Ratios(const std::vector<double>& numerators,
                           const std::vector<double>& denominators) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i) {
    ratios.push_back(numerators[i] / denominators[i]);
  }
  return ratios;
}

std::vector<double> TokensPerSecond(const SpeedResult& result, std::vector<double> times_ns) {
  for (double& value : times_ns) value = 1e9 * static_cast<double>(result.test.tokens()) / value;
  return times_ns;
}

// Builds an object; fields keep the order in which they are added.
class RowMaker {
 public:
  void Set(const char* name, Json value) { row_[name] = std::move(value); }
  template <typename T>
  void Set(const char* name, const std::optional<T>& value) {
    Set(name, value ? Json(*value) : Json());
  }
  void SetMedian(const char* name, const std::vector<double>& values) {
    Set(name, values.empty() ? Json() : Json(Median(values)));
  }
  void SetNanoseconds(const char* name, const std::vector<double>& values) {
    Json list = Json::array();
    for (const double value : values) list.push_back(std::llround(value));
    Set(name, std::move(list));
  }
  Json Take() { return std::move(row_); }

 private:
  Json row_;
};

void SetMachine(RowMaker& row) {
  row.Set("cpu_info", platform::ReadCpuTopology().name);
  row.Set("isa", platform::InstructionSets());
  row.Set("kernels", Format("{}, XNNPACK layout {:016x}", ops::SimdTargetName(),
                            xnn::LayoutFingerprint().value_or(0)));
}

// A rank among several has a part of the model; the figures describe the whole.
void SetModel(const ModelFile& part, RowMaker& row) {
  Result<ModelFile> whole = Fail(ErrorCode::kNotFound, "");
  if (NumRanks() > 1) whole = ModelFile::Open(part.path());
  const ModelFile& file = whole ? *whole : part;
  uint64_t parameters = 0, bytes = 0;
  for (const TensorSpec& spec : ExpectedTensors(file.config())) {
    // A tied output head has no parameters of its own.
    if (spec.role == TensorRole::kLmHead && file.config().tie_word_embeddings) continue;
    parameters += uint64_t{spec.output_channels} * spec.input_channels;
  }
  for (const StoredTensor& tensor : file.tensors()) {
    bytes += tensor.data.bytes + tensor.scales.bytes;
  }
  // The first matrix of a layer stands for the others.
  const LayerKind& kind = file.config().layer_kind(0);
  const TensorRole first = kind.short_conv         ? TensorRole::kConvInProj
                           : kind.linear_attention ? TensorRole::kLinearInProj
                           : kind.mamba            ? TensorRole::kMambaInProj
                                                   : TensorRole::kQkvProj;
  const Scheme scheme = file.tensor(first, 0).layout.scheme;
  row.Set("model_filename", file.path());
  row.Set("model_type", Format("{} {}", file.name(), SchemeName(scheme)));
  row.Set("model_size", bytes);
  row.Set("model_n_params", parameters);
}

void SetTest(const Engine& engine, const SpeedResult& result, RowMaker& row) {
  const DecoderOptions& options = engine.memory_plan().options.decoder;
  row.Set("n_batch", options.chunk_tokens);
  row.Set("n_ranks", NumRanks());
  row.Set("n_threads", engine.pool().num_threads());
  row.Set("n_threads_batch", engine.batch_pool().num_threads());
  row.Set("type_k", KvTypeName(options.kv_type));
  row.Set("type_v", KvTypeName(options.kv_type));
  row.Set("n_prompt", result.test.prompt_tokens);
  row.Set("n_gen", result.test.generated_tokens);
  row.Set("n_depth", result.test.depth_tokens);
  row.Set("n_parallel", result.test.num_sequences);
  row.Set("kv_pages", result.kv_pages);
  row.Set("test_time", Iso8601(result.begin));
}

void SetSpeed(const SpeedResult& result, RowMaker& row) {
  const std::vector<double> rates = TokensPerSecond(result, result.run_ns);
  row.Set("avg_ns", std::llround(Mean(result.run_ns)));
  row.Set("stddev_ns", std::llround(StandardDeviation(result.run_ns)));
  row.Set("avg_ts", Mean(rates));
  row.Set("stddev_ts", StandardDeviation(rates));
  row.Set("load_ms", result.load_ms);
  row.SetMedian("first_token_ms", result.first_token_ms);

  row.Set("bytes_per_token", result.bytes_per_token);
  std::vector<double> read_by_tokens;  // GB/s
  if (result.bytes_per_token) {
    for (const double rate : rates) read_by_tokens.push_back(*result.bytes_per_token * rate / 1e9);
  }
  row.SetMedian("gb_per_s", read_by_tokens);
  row.SetMedian("read_gb_per_s", result.read_gb_per_s);
  row.SetMedian("read_gb_per_s_one_thread", result.read_gb_per_s_one_thread);
  row.SetMedian("bus_fraction", Ratios(read_by_tokens, result.read_gb_per_s));
  row.SetMedian("products_ts", TokensPerSecond(result, result.products_ns));
  row.SetMedian("products_fraction", Ratios(result.products_ns, result.run_ns));
}

void SetDrafts(const Engine& engine, const SpeedResult& result, RowMaker& row) {
  const DraftOptions& options = engine.memory_plan().options.drafts;
  row.Set("draft_ngram", options.ngram_tokens);
  row.Set("draft_mtp", options.has_mtp);
  row.Set("draft_model_filename",
          options.has_model ? Json(engine.draft_engine()->file().path()) : Json());
  row.Set("draft_max", options.max_tokens);
  row.Set("draft_min", options.min_tokens);
  const auto& drafts = result.drafts;
  row.Set("drafted_tokens", drafts ? Json(drafts->drafted_tokens) : Json());
  row.Set("accepted_tokens", drafts ? Json(drafts->accepted_tokens) : Json());
  row.SetMedian("draft_gain",
                drafts ? Ratios(drafts->undrafted_ns, result.run_ns) : std::vector<double>());
}

void SetState(const char* temperature, const char* frequency, const platform::ProcessorState& state,
              RowMaker& row) {
  row.Set(temperature, state.temperature_celsius);
  row.Set(frequency,
          state.frequency_hz.transform([](uint64_t hz) { return static_cast<double>(hz) / 1e6; }));
}

void SetSamples(const SpeedResult& result, RowMaker& row) {
  row.SetNanoseconds("samples_ns", result.run_ns);
  row.Set("samples_ts", TokensPerSecond(result, result.run_ns));
  row.SetNanoseconds("samples_undrafted_ns",
                     result.drafts ? result.drafts->undrafted_ns : std::vector<double>());
  row.SetNanoseconds("samples_products_ns", result.products_ns);
  row.Set("samples_read_gb_per_s", result.read_gb_per_s);
  row.Set("samples_read_gb_per_s_one_thread", result.read_gb_per_s_one_thread);
}

// Fractions of the time of all repetitions, which is measured with a separate clock.
void SetProfile(const SpeedResult& result, RowMaker& row) {
  if (!result.profile) return;
  const double whole = Mean(result.run_ns) * static_cast<double>(result.run_ns.size());
  const auto fraction = [&](Profile::Clock::duration time) {
    return std::chrono::duration<double, std::nano>(time).count() / whole;
  };
  Json profile;
  for (size_t i = 0; i < kNumOperatorKinds; ++i) {
    const auto kind = static_cast<OperatorKind>(i);
    profile[std::string(OperatorKindName(kind))] = fraction(result.profile->time(kind));
  }
  row.Set("profile", std::move(profile));
  row.Set("profile_sum", fraction(result.profile->total()));
}

}  // namespace

nlohmann::ordered_json BenchRow(const Engine& engine, const SpeedResult& result) {
  RowMaker row;
  SetMachine(row);
  SetModel(engine.file(), row);
  SetTest(engine, result, row);
  SetSpeed(result, row);
  SetDrafts(engine, result, row);
  SetState("temperature_celsius_first", "frequency_mhz_first", result.first_state, row);
  SetState("temperature_celsius_last", "frequency_mhz_last", result.last_state, row);
  SetSamples(result, row);
  SetProfile(result, row);
  return row.Take();
}

}  // namespace cria::cli
