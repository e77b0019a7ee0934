#include "server/http/access.h"

#include <algorithm>
#include <utility>

#include "server/http/host_name.h"

namespace cria::server {
namespace {

// Without these names for itself, a machine could not call itself.
constexpr std::string_view kOwnNames[] = {"localhost", "127.0.0.1", "::1"};

// The key of "Bearer KEY"; empty if the header has another form.
std::string_view BearerKey(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) return {};
  authorization.remove_prefix(kScheme.size());
  const size_t begin = authorization.find_first_not_of(' ');
  if (begin == authorization.npos) return {};
  return authorization.substr(begin, authorization.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

Access::Access(AccessOptions options) : options_(std::move(options)) {
  std::vector<std::string> hosts = std::exchange(options_.allowed_hosts, {});
  for (const std::string& host : hosts) AllowHost(host);
}

void Access::AllowHost(std::string_view host) {
  // An IPv6 address may be given with brackets or without.
  const bool is_bare_address = host.find(':') != host.rfind(':') && !host.starts_with('[');
  const std::optional<std::string> name =
      HostOf(is_bare_address ? '[' + std::string(host) + ']' : std::string(host));
  if (name) options_.allowed_hosts.push_back(*name);
}

std::optional<Refusal> Access::Check(const RequestHead& head) const {
  if (auto refusal = CheckHost(head)) return refusal;
  if (auto refusal = CheckOrigin(head)) return refusal;
  return CheckKey(head);
}

std::optional<Refusal> Access::CheckHost(const RequestHead& head) const {
  const std::optional<std::string> host =
      head.num_hosts == 1 ? HostOf(head.host) : std::optional<std::string>();
  if (!host) {
    return Refusal{.status = 400,
                   .code = "invalid_host",
                   .sentence = "the request needs one header Host, with a name or address"};
  }
  const auto is_host = [&](std::string_view allowed) { return allowed == *host; };
  if (is_host(head.local_address) || std::ranges::any_of(kOwnNames, is_host) ||
      std::ranges::any_of(options_.allowed_hosts, is_host)) {
    return std::nullopt;
  }
  return Refusal{.status = 403,
                 .code = "host_not_allowed",
                 .sentence =
                     "the server does not answer to the name in the header Host; allow "
                     "that host where the server is started"};
}

std::optional<Refusal> Access::CheckOrigin(const RequestHead& head) const {
  if (!head.origin) return std::nullopt;
  if (head.num_origins <= 1) {
    if (AllowsOrigin(*head.origin)) return std::nullopt;
    const std::optional<std::string_view> authority = AuthorityOfOrigin(*head.origin);
    if (authority && EqualsIgnoringCase(*authority, head.host)) return std::nullopt;
  }
  return Refusal{.status = 403,
                 .code = "origin_not_allowed",
                 .sentence =
                     "pages of other sites may not use the server; allow the page's "
                     "origin where the server is started"};
}

std::optional<Refusal> Access::CheckKey(const RequestHead& head) const {
  // Browsers send no key with a preflight, and its answer has no content.
  if (options_.keys.empty() || head.is_preflight) return std::nullopt;
  if (std::ranges::contains(options_.open_paths, head.path)) return std::nullopt;
  const bool is_right =
      (head.authorization && options_.keys.Have(BearerKey(*head.authorization))) ||
      (head.api_key && options_.keys.Have(*head.api_key));
  if (is_right) return std::nullopt;
  const bool has_key = head.authorization || head.api_key;
  return Refusal{
      .status = 401,
      .code = "invalid_api_key",
      .sentence = has_key ? "the key is not one of the server's"
                          : "the request needs a key, in a header Authorization: Bearer KEY"};
}

bool Access::AllowsOrigin(std::string_view origin) const {
  return std::ranges::any_of(options_.allowed_origins, [&](std::string_view allowed) {
    return EqualsIgnoringCase(allowed, origin);
  });
}

}  // namespace cria::server
