#include "server/http/api_keys.h"

#include <algorithm>
#include <cstdint>

#include "core/format.h"
#include "core/platform.h"

namespace cria::server {
namespace {

// A file of keys is a few lines; a longer one is something else.
constexpr uint64_t kMaxFileBytes = 64 << 10;

bool IsVisible(char c) { return c > ' ' && c < 0x7F; }

}  // namespace

bool EqualsInConstantTime(std::string_view given, std::string_view secret) {
  if (secret.empty()) return false;
  // The compiler must not end the loop early when it sees that the result is decided.
  volatile uint8_t difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto one = static_cast<uint8_t>(given[i]);
    const auto other = static_cast<uint8_t>(secret[i % secret.size()]);
    difference = static_cast<uint8_t>(difference | (one ^ other));
  }
  return difference == 0;
}

Result<ApiKeys> ApiKeys::Read(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(const platform::File file, platform::File::Open(path));
  if (file.size_bytes() > kMaxFileBytes) {
    return Fail(ErrorCode::kUsage, Format("{}: is too large for a file of keys, of which each is a "
                                          "line",
                                          path));
  }
  std::string text(file.size_bytes(), '\0');
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  std::vector<std::string> keys;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!std::ranges::all_of(line, IsVisible)) {
      // The line is not shown: it may be a secret.
      return Fail(ErrorCode::kUsage,
                  Format("{}: line {} has a space or another character that a key cannot have; "
                         "write one key on each line, of visible ASCII characters",
                         path, number));
    }
    keys.emplace_back(line);
  }
  if (keys.empty()) {
    return Fail(ErrorCode::kUsage,
                Format("{}: has no key; write one on each line, such as 32 random letters", path));
  }
  return ApiKeys(std::move(keys));
}

bool ApiKeys::Have(std::string_view given) const {
  bool found = false;
  for (const std::string& key : keys_) found |= EqualsInConstantTime(given, key);
  return found;
}

}  // namespace cria::server
