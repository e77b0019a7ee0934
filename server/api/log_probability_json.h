#pragma once

#include "server/answers/answer_listener.h"
#include "server/requests/json_body.h"

namespace cria::server {

// {"token", "logprob", "bytes", "top_logprobs"}: bytes that are not UTF-8 are replaced in `token`.
Json LogProbabilityJson(const TokenLogProbability& token);
// The token's text, with bytes that are not UTF-8 replaced.
std::string ValidText(std::string_view bytes);

}  // namespace cria::server
