#include "server/http/refusal.h"

#include "core/format.h"

namespace cria::server {
namespace {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Refused";
  }
}

std::string_view TypeOf(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string RefusalBody(const Refusal& refusal) {
  // Neither has a character that JSON escapes: both are written in this folder.
  return Format(R"({{"error":{{"message":"{}","type":"{}","param":null,"code":"{}"}}}})",
                refusal.sentence, TypeOf(refusal.status), refusal.code);
}

std::string RefusalResponse(const Refusal& refusal) {
  const std::string body = RefusalBody(refusal);
  return Format(
      "HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n{}\r\n{}",
      refusal.status, ReasonPhrase(refusal.status), body.size(),
      refusal.status == 503 ? "Retry-After: 1\r\n" : "", body);
}

}  // namespace cria::server
