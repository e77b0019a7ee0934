#include "server/api/sampling_json.h"

namespace cria::server {
namespace {

// -1 is the whole context.
Json LastN(size_t count) { return count == SamplerOptions::kWholeContext ? Json(-1) : Json(count); }

}  // namespace

Json SamplerJson(const SamplerOptions& sampler) {
  return {{"temperature", sampler.temperature},
          {"top_k", sampler.top_k},
          {"top_p", sampler.top_p},
          {"min_p", sampler.min_p},
          {"typical_p", sampler.typical_p},
          {"xtc_probability", sampler.xtc_probability},
          {"xtc_threshold", sampler.xtc_threshold},
          {"repeat_penalty", sampler.repeat_penalty},
          {"presence_penalty", sampler.presence_penalty},
          {"frequency_penalty", sampler.frequency_penalty},
          {"repeat_last_n", LastN(sampler.repeat_last_n)},
          {"dry_multiplier", sampler.dry.multiplier},
          {"dry_base", sampler.dry.base},
          {"dry_allowed_length", sampler.dry.allowed_length},
          {"dry_penalty_last_n", LastN(sampler.dry.last_n)}};
}

}  // namespace cria::server
