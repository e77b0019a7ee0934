#pragma once

#include <string>
#include <string_view>

namespace cria::server {

// Why the HTTP layer answers a request itself. The sentence does not repeat what the client sent.
struct Refusal {
  int status = 400;
  std::string_view code;  // "invalid_api_key"; a word for programs.
  std::string_view sentence;
};

// {"error": {"message": …, "type": …, "param": null, "code": …}}, as OpenAI's API has it.
std::string RefusalBody(const Refusal& refusal);

// A whole response that is written to a socket directly, after which the connection is closed: for
// moments at which libmicrohttpd takes no answer.
std::string RefusalResponse(const Refusal& refusal);

}  // namespace cria::server
