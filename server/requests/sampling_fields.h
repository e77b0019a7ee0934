#pragma once

#include "server/requests/answer_request.h"
#include "server/requests/fields.h"

namespace cria::server {

// How tokens are chosen: temperature, top_p, top_k, min_p, typical_p, xtc_…, dry_…, repeat_penalty,
// presence_penalty, frequency_penalty, repeat_last_n, seed, and logit_bias as OpenAI's clients or
// llama-server's write it. A field that is missing has the
// default of SamplerOptions, which is that of the program cria, and the seed is a random number.
// Steps that the sampler does not have are refused, unless they are neutral.
SamplerOptions ReadSampler(const Fields& fields);

// Reads what all of OpenAI's requests have: the sampler, stop, n and max_tokens.
AnswerOptions ReadAnswerOptions(const Fields& request);

// `stop`, or the field with another name: a string or several, within bounds.
std::vector<std::string> ReadStop(const Fields& fields, std::string_view name = "stop");

// `max_tokens` under this name: -1 and a missing field are no limit.
size_t ReadMaxTokens(const Fields& fields, std::string_view name);

// `logprobs`, which is true or false, and `top_logprobs`.
void ReadLogProbabilities(const Fields& request, AnswerOptions& options);
// llama-server's `n_probs`: so many of the most likely tokens at each place.
void ReadNumProbabilities(const Fields& request, AnswerOptions& options);

}  // namespace cria::server
