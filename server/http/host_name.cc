#include "server/http/host_name.h"

#include <algorithm>

#include "core/ascii.h"

namespace cria::server {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNameCharacter(char c) {
  const char lower = ToLower(c);
  return IsDigit(c) || (lower >= 'a' && lower <= 'z') || c == '-' || c == '.' || c == '_';
}

bool IsAddressCharacter(char c) {
  const char lower = ToLower(c);
  return IsDigit(c) || (lower >= 'a' && lower <= 'f') || c == ':' || c == '.';
}

}  // namespace

std::optional<std::string> HostOf(std::string_view authority) {
  const bool has_brackets = authority.starts_with('[');
  const size_t end = has_brackets ? authority.find(']') : authority.find(':');
  if (has_brackets && end == authority.npos) return std::nullopt;
  const std::string_view host =
      has_brackets ? authority.substr(1, end - 1) : authority.substr(0, end);
  std::string_view port =
      end == authority.npos ? "" : authority.substr(end + (has_brackets ? 1 : 0));
  if (!port.empty()) {
    if (!port.starts_with(':') || !std::ranges::all_of(port.substr(1), IsDigit)) {
      return std::nullopt;
    }
  }
  if (host.empty() ||
      !std::ranges::all_of(host, has_brackets ? IsAddressCharacter : IsNameCharacter)) {
    return std::nullopt;
  }
  std::string result(host);
  std::ranges::transform(result, result.begin(), ToLower);
  // "board.local." is the same host.
  if (result.size() > 1 && result.ends_with('.')) result.pop_back();
  return result;
}

std::optional<std::string_view> AuthorityOfOrigin(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualsIgnoringCase(origin.substr(0, scheme.size()), scheme)) continue;
    const std::string_view authority = origin.substr(scheme.size());
    if (HostOf(authority)) return authority;
  }
  return std::nullopt;
}

bool EqualsIgnoringCase(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, ToLower, ToLower);
}

}  // namespace cria::server
