#include "server/requests/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "core/format.h"
#include "llm/random_seed.h"
#include "server/requests/request_error.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

void AddBias(SamplerOptions& options, int64_t id, double addend) {
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
    RefuseField("logit_bias", Format("has token {}, which does not exist", id));
  }
  options.logit_bias.push_back({static_cast<int32_t>(id), static_cast<float>(addend)});
}

// {"15043": -100}
void ReadBiasObject(SamplerOptions& options, const Json& object) {
  constexpr double kMaxBias = 100;  // OpenAI's.
  for (const auto& [name, value] : object.items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size()) {
      RefuseField("logit_bias", "has a name that is not a token id");
    }
    const auto addend = Fields(object, "logit_bias").Number(name, -kMaxBias, kMaxBias);
    // Null means, as elsewhere, that nothing was said.
    if (addend) AddBias(options, id, *addend);
  }
}

// [[15043, 1.5], [2, false]], where false forbids the token.
void ReadBiasList(SamplerOptions& options, const Json& list) {
  for (const Json& item : list) {
    const bool is_pair = item.is_array() && item.size() == 2 && item[0].is_number_integer() &&
                         (NumberOf(item[1]) || item[1] == Json(false));
    if (!is_pair)
      RefuseField("logit_bias", "has an item that is not a pair of a token id and a number");
    constexpr double kForbidden = -std::numeric_limits<double>::infinity();
    const double addend = NumberOf(item[1]).value_or(kForbidden);
    AddBias(options, item[0].get<int64_t>(), addend);
  }
}

void ReadLogitBias(SamplerOptions& options, const Fields& fields) {
  constexpr size_t kMaxBiases = 1024;
  const Json* const bias = fields.Find("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kMaxBiases) {
    RefuseField("logit_bias", Format("has more than {} tokens", kMaxBiases));
  }
  if (bias->is_object()) return ReadBiasObject(options, *bias);
  if (bias->is_array()) return ReadBiasList(options, *bias);
  RefuseField("logit_bias", "is not an object of token ids");
}

// llama-server's, of which none may be empty.
std::vector<std::string> ReadBreakers(const Fields& fields) {
  constexpr const char* kName = "dry_sequence_breakers";
  std::vector<std::string> texts = fields.Strings(kName, DryBreakers::kMaxTexts);
  for (const std::string& text : texts) {
    if (!text.empty() && text.size() <= DryBreakers::kMaxTextBytes) continue;
    RefuseField(fields.PathOf(kName),
                Format("has a text that does not have 1 to {} bytes", DryBreakers::kMaxTextBytes));
  }
  return texts;
}

}  // namespace

SamplerOptions ReadSampler(const Fields& fields) {
  constexpr double kMaxFactor = 1000;
  SamplerOptions options;
  const auto read = [&](std::string_view name, float& value, double min, double max) {
    if (const auto number = fields.Number(name, min, max)) value = static_cast<float>(*number);
  };
  const auto read_count = [&](std::string_view name, size_t& value, size_t all) {
    if (const auto count = fields.Integer(name, -1, kMaxCount)) {
      value = *count < 0 ? all : static_cast<size_t>(*count);
    }
  };
  read("temperature", options.temperature, 0, kMaxFactor);
  read("top_p", options.top_p, 0, 1);
  read("min_p", options.min_p, 0, 1);
  read("typical_p", options.typical_p, 0, 1);
  read("xtc_probability", options.xtc_probability, 0, 1);
  read("xtc_threshold", options.xtc_threshold, 0, 1);
  read("presence_penalty", options.presence_penalty, -kMaxFactor, kMaxFactor);
  read("frequency_penalty", options.frequency_penalty, -kMaxFactor, kMaxFactor);
  read("dry_multiplier", options.dry.multiplier, 0, kMaxFactor);
  read("dry_base", options.dry.base, 1, kMaxFactor);
  if (const auto length = fields.Integer("dry_allowed_length", 0, kMaxCount)) {
    options.dry.allowed_length = static_cast<size_t>(*length);
  }
  read_count("dry_penalty_last_n", options.dry.last_n, SamplerOptions::kWholeContext);
  if (fields.Has("dry_sequence_breakers")) options.dry.sequence_breakers = ReadBreakers(fields);
  read("repeat_penalty", options.repeat_penalty, 1e-3, kMaxFactor);
  // vLLM's, which holds for the whole context.
  if (fields.Has("repetition_penalty")) options.repeat_last_n = SamplerOptions::kWholeContext;
  read("repetition_penalty", options.repeat_penalty, 1e-3, kMaxFactor);
  read_count("top_k", options.top_k, 0);
  read_count("repeat_last_n", options.repeat_last_n, SamplerOptions::kWholeContext);
  const auto seed = fields.Integer("seed", std::numeric_limits<int64_t>::min());
  options.seed = seed && *seed != -1 ? static_cast<uint64_t>(*seed) : RandomSeed();
  ReadLogitBias(options, fields);
  RefuseUnsupportedSampling(fields);
  return options;
}

size_t ReadMaxTokens(const Fields& fields, std::string_view name) {
  const auto count = fields.Integer(name, -1);
  if (!count || *count < 0) return 0;
  if (*count == 0) RefuseField(fields.PathOf(name), "is 0: there would be no answer");
  return static_cast<size_t>(std::min(*count, kMaxCount));
}

std::vector<std::string> ReadStop(const Fields& fields, std::string_view name) {
  std::vector<std::string> stop = fields.Strings(name, AnswerOptions::kMaxStopStrings);
  size_t bytes = 0;
  for (const std::string& text : stop) bytes += text.size();
  if (bytes > AnswerOptions::kMaxStopBytes) {
    RefuseField(fields.PathOf(name),
                Format("has more than {} bytes", AnswerOptions::kMaxStopBytes));
  }
  return stop;
}

AnswerOptions ReadAnswerOptions(const Fields& request) {
  AnswerOptions options;
  options.sampler = ReadSampler(request);
  options.stop = ReadStop(request);
  options.num_choices =
      static_cast<size_t>(request.Integer("n", 1, AnswerOptions::kMaxChoices).value_or(1));
  const std::string_view limit = request.Has("max_completion_tokens") ? "max_completion_tokens"
                                 : request.Has("max_tokens")          ? "max_tokens"
                                                                      : "n_predict";
  options.max_tokens = ReadMaxTokens(request, limit);
  options.ignore_eos = request.Bool("ignore_eos").value_or(false);
  return options;
}

void ReadLogProbabilities(const Fields& request, AnswerOptions& options) {
  options.log_probabilities = request.Bool("logprobs").value_or(false);
  const auto top = request.Integer("top_logprobs", 0, AnswerOptions::kMaxTopLogProbabilities);
  if (top && *top > 0 && !options.log_probabilities) {
    RefuseField("top_logprobs", "needs logprobs to be true");
  }
  options.top_log_probabilities = static_cast<size_t>(top.value_or(0));
}

void ReadNumProbabilities(const Fields& request, AnswerOptions& options) {
  const auto count = request.Integer("n_probs", 0, AnswerOptions::kMaxTopLogProbabilities);
  if (!count || *count == 0) return;
  options.log_probabilities = true;
  options.top_log_probabilities =
      std::max(options.top_log_probabilities, static_cast<size_t>(*count));
}

}  // namespace cria::server
