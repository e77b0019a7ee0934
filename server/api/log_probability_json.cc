#include "server/api/log_probability_json.h"

#include <utility>

#include "core/utf8.h"

namespace cria::server {
namespace {

Json OneToken(std::string_view bytes, double log_probability) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return {{"token", ValidText(bytes)}, {"logprob", log_probability}, {"bytes", std::move(list)}};
}

}  // namespace

std::string ValidText(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t valid = ValidUtf8Prefix(bytes);
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text += kReplacementCharacter;
    bytes.remove_prefix(FirstUtf8Character(bytes).size_bytes);
  }
  return text;
}

Json LogProbabilityJson(const TokenLogProbability& token) {
  Json json = OneToken(token.text, token.log_probability);
  Json most_likely = Json::array();
  for (const auto& [text, log_probability] : token.most_likely) {
    most_likely.push_back(OneToken(text, log_probability));
  }
  json["top_logprobs"] = std::move(most_likely);
  return json;
}

}  // namespace cria::server
