#include "c_api/generation.h"

#include <cstddef>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "c_api/texts.h"
#include "c_api/versioned_struct.h"

namespace cria::c_api {

template <>
inline constexpr size_t kFirstVersionBytes<cria_generation_options> =
    offsetof(cria_generation_options, parse_special) + sizeof(int32_t);

namespace {

static_assert(sizeof(cria_generation_options) ==
              offsetof(cria_generation_options, num_logit_bias) + sizeof(size_t));
// The second version's fields directly follow those of the first.
static_assert(kFirstVersionBytes<cria_generation_options> ==
              offsetof(cria_generation_options, stop_strings));

Result<WhenFull> ToWhenFull(int32_t when_full) {
  if (when_full == CRIA_WHEN_FULL_STOP) return WhenFull::kStop;
  if (when_full == CRIA_WHEN_FULL_SHIFT) return WhenFull::kShift;
  return Fail(ErrorCode::kUsage,
              std::format("when_full is {}, which is not one of CRIA_WHEN_FULL_...", when_full));
}

Result<StopStrings> ReadStopStrings(const cria_generation_options& options) {
  CRIA_ASSIGN_OR_RETURN(const std::span<const cria_text> given,
                        ReadArray(options.stop_strings, options.num_stop_strings, "stop_strings"));
  std::vector<std::string> strings;
  for (const cria_text& text : given) {
    CRIA_ASSIGN_OR_RETURN(const std::string_view read,
                          ReadText(text.text, text.text_bytes, "a stop string"));
    strings.emplace_back(read);
  }
  return StopStrings::Create(std::move(strings));
}

Result<Sampler> MakeSampler(const LoadedModel& model, const cria_generation_options& options) {
  CRIA_ASSIGN_OR_RETURN(const std::span<const cria_logit_bias> given,
                        ReadArray(options.logit_bias, options.num_logit_bias, "logit_bias"));
  std::vector<LogitBias> logit_bias;
  logit_bias.reserve(given.size());
  for (const cria_logit_bias& bias : given) logit_bias.push_back({bias.token, bias.addend});
  return Sampler::Create({.logit_bias = std::move(logit_bias),
                          .repeat_penalty = options.repeat_penalty,
                          .repeat_last_n = options.repeat_last_n,
                          .top_k = options.top_k,
                          .top_p = options.top_p,
                          .min_p = options.min_p,
                          .temperature = options.temperature,
                          .seed = options.seed},
                         model.engine->decoder().vocab_size());
}

}  // namespace

Result<Generation> MakeGeneration(const LoadedModel& model, const cria_generation_options* given) {
  CRIA_ASSIGN_OR_RETURN(const cria_generation_options options,
                        ReadStruct(given, cria_generation_options CRIA_GENERATION_OPTIONS_INIT,
                                   "cria_generation_options"));
  CRIA_ASSIGN_OR_RETURN(const WhenFull when_full, ToWhenFull(options.when_full));
  CRIA_ASSIGN_OR_RETURN(StopStrings stop_strings, ReadStopStrings(options));
  CRIA_ASSIGN_OR_RETURN(Sampler sampler, MakeSampler(model, options));
  return Generation{.sampler = std::move(sampler),
                    .stop_strings = std::move(stop_strings),
                    .max_tokens = options.max_tokens,
                    .keep_tokens = options.keep_tokens,
                    .when_full = when_full,
                    .parse_special = options.parse_special != 0};
}

}  // namespace cria::c_api
